-- Part: admission of links. "Seen" is written with the enqueue, so a crash leaves both or neither.
-- Needs C.revisit_ms, C.queue_limit, C.pattern_budget, C.asks_elsewhere.

local added_links = 0

-- Whether a finished URL may be queued again.
local function is_due_again(f, d, revisit, is_wanted)
  if f.outcome == OUT.REFUSED and f.reason == "robots" then
    return f.version ~= d.robots_version  -- a refusal holds until robots.txt changes
  end
  local next_s = f.next_s
  if f.outcome == OUT.FAILED or (f.outcome == OUT.REFUSED and f.reason == "queue_full") then
    return now_s >= next_s
  end
  if is_wanted then return true end
  if not revisit then return false end
  if next_s == 0 then next_s = f.last + floor((C.revisit_ms[f.kind + 1] or 0) / 1000) end
  return now_s >= next_s
end

-- Whether a page was read so lately that a bounded crawl does not ask for it again.
local function is_fresh(outcome, last)
  return shared.fresh_from and last >= shared.fresh_from
    and (outcome == OUT.DONE or outcome == OUT.UNCHANGED or outcome == OUT.NOT_ARTICLE)
end

-- Whether the URL lives on under another domain to which it was redirected, as _ack.lua noted. "" stands for one
-- in another shard, which cannot be looked at from here.
local function has_left(id, name)
  for _ = 1, 6 do
    local target = call("HGET", P .. ":moved", id .. name)
    if not target then return false end
    if target == "" or call("HEXISTS", P .. ":r:" .. target, id) == 1 then return true end
    name = target
  end
  return false
end

-- The queue is full. Three offers of one URL, then it is dropped, and counted: a drop that nobody counts is a loss.
local function refuse_full(name, d, id, h)
  local key, field = P .. ":o:" .. name, id:sub(1, 8)
  local offers = call("HINCRBY", key, field, 1)
  if offers < 3 then
    -- the table is bounded: one that finds no place is only counted, those in it go on towards their drop
    if offers == 1 and call("HLEN", key) > 1000 then call("HDEL", key, field) end
    count("queue_full")
    return "f"
  end
  call("HDEL", key, field)
  h.outcome = OUT.REFUSED
  h.last = now_s
  write_finished(id, h, { next_s = now_s + 86400, reason = "queue_full" })
  if not is_seen(id) then add_seen(id) end
  d.dropped = d.dropped + 1
  count("dropped")
  return "d"
end

-- Whether a shape of URL has had its share of the day: calendars and filters make as many as they are asked for.
-- Articles get ten times as much. A domain that makes shapes without end gets one share for all that are new.
local function is_trap(name, kind, shape)
  local key = P .. ":pat:" .. name
  local shapes = call("HLEN", key)
  if shapes >= 2000 and call("HEXISTS", key, shape) == 0 then shape = "*" end
  local n = call("HINCRBY", key, shape, 1)
  if shapes == 0 then call("EXPIRE", key, math.ceil(86400 / (clock[1] and tonumber(clock[1]) or 1))) end
  return n > C.pattern_budget * (kind == KIND.ARTICLE and 10 or 1)
end

-- What is to be written of the group that is at work: records {id, record, ...}, queue {score, id, ...}.
local new_records, new_queued, is_new = {}, {}, {}
local function admit(name, d, id, link, h, due)
  if d.queued == 0 then
    d.seq = 0
    if d.dropped > 0 then call("DEL", P .. ":o:" .. name) end
  end
  if h.scheme > 0 and d.scheme == 0 then d.scheme = h.scheme end
  local n = #new_records
  new_records[n + 1], new_records[n + 2] = id, write_header(h, link:sub(LINK.size + 1))
  is_new[id] = true
  if due > now then
    enqueue_due(name, d, id, due, 0)
  else
    n = #new_queued
    new_queued[n + 1], new_queued[n + 2] = whole(queue_score(h, d)), id
    count_queued(d)
  end
  d.added = d.added + 1
  added_links = added_links + 1
  return "a"
end

--@fields l @LINK rest
-- A link that no queue holds. shape: 32 bits of what the URL looks like, 0 or nil = it is not counted.
-- flags of a link: 1 revisit, 2 moved (it replaces a URL of the same id under another domain), 4 the archive was asked,
-- 8 a bounded crawl wants it, due or not (want.lua; with 1).
local function offer(name, id, link, shape)
  if is_taken(id) then return "x" end
  local flags = link:byte(LINK.at.flags)
  local revisit, is_moved, is_asked, is_wanted = flags % 2 == 1, flags % 4 >= 2, flags % 8 >= 4, flags >= 8
  -- The record answers first, as it costs less than the filter and never lies. It may also be older than the
  -- filter's window, so it is asked even for what the filter does not know.
  local bucket, field = finished_place(id)
  local raw = call("HGET", bucket, field)
  if raw and flags % 4 == 0 and not may_come_back(raw) then return "s" end
  local d = touch(name)
  if not d then return "o" end
  if d.enabled == 0 then return "x" end
  local is_hit = is_seen(id)
  if is_hit and not raw and not is_moved then
    if has_left(id, name) then return "s" end
    raw = shared.archived[id]
    if not raw and not is_asked and C.asks_elsewhere then return "?" end
  end
  local f = raw and read_finished(raw)
  if f and is_wanted and is_fresh(f.outcome, f.last) then return "w" end
  if f and not is_moved and not is_due_again(f, d, revisit, is_wanted) then
    if shared.archived[id] then put_back(id, raw, f) end
    return "s"
  end
  if is_hit and not f then count("filter_lied") end

  local l = { LINK.unpack(link) }
  local h = { HEADER.list{ schema = SCHEMA.NUMBER, kind = l.kind % 16, band = l.band, tries = 0, crashes = 0, depth = l.depth,
    score = l.score, discovered = f and f.discovered or now_s, outcome = 0, status = 0, last = f and f.last or 0,
    parent = l.parent }, floor(l.kind / 16) }  -- and the scheme
  if shape and shape ~= 0 and not f and flags % 4 == 0 and C.pattern_budget > 0 and is_trap(name, h.kind, shape) then
    count("trap")
    return "t"
  end
  -- Over the limit a URL falls one band, over twice the limit two: below the last band it falls out.
  -- What a bounded crawl wants is bounded by the crawl.
  h.band = is_wanted and l.band or l.band + floor((d.queued + d.due) / C.queue_limit)
  if h.band > 2 then return refuse_full(name, d, id, h) end
  if f then
    call("HDEL", bucket, field)
    if f.outcome == OUT.FAILED then call("HDEL", P .. ":quar", id) end
  end
  if is_hit then call("HDEL", P .. ":moved", id .. name) else add_seen(id) end
  return admit(name, d, id, link, h, l.due)
end

-- The links of one domain: what is queued, waiting or leased is found with one command, what is new written with two.
-- Returns whether it stopped before the last one, which only a call that may_stop does.
local function offer_group(statuses, name, links, shapes, may_stop)
  local stopped = false
  local key, at = P .. ":r:" .. name, #statuses
  if #links == 1 then
    local id = links[1]:sub(1, LINK.at.flags - 1)
    statuses[at + 1] = call("HEXISTS", key, id) == 1 and "s" or offer(name, id, links[1], shapes and shapes[1])
  else
    local ids = {}
    for i = 1, #links do ids[i] = links[i]:sub(1, LINK.at.flags - 1) end
    local known = call("HMGET", key, unpack(ids))
    for i = 1, #ids do
      if may_stop and i % 8 == 0 and is_late() then
        stopped = true
        break
      end
      local id = ids[i]
      statuses[at + i] = (known[i] or is_new[id]) and "s" or offer(name, id, links[i], shapes and shapes[i])
    end
  end
  if #new_records > 0 then
    call_many("HSET", key, new_records)
    call_many("ZADD", P .. ":q:" .. name, new_queued)
    new_records, new_queued, is_new = {}, {}, {}
  end
  return stopped
end

-- groups: {domain, {link, ...}, {shape, ...} or nothing}...
-- Returns one status a link, a letter: a added, s seen, f queue full, d dropped, o not ours, x disabled, t trap,
-- ? the filter knows it and no record here does: it is to be looked for in the archive and offered again.
-- may_stop: the call may end when it gets late; links without a status are offered again.
local function offer_all(groups, may_stop)
  if #groups == 0 then return "" end
  local statuses = {}
  added_links = 0
  for g = 1, #groups do
    if offer_group(statuses, groups[g][1], groups[g][2], groups[g][3], may_stop) then break end
    if may_stop and g % 8 == 0 and is_late() then break end
  end
  if added_links > 0 then count("added", added_links) end
  return table.concat(statuses)
end
