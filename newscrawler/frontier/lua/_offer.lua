-- Part: admission of one link. "Seen" is written with the enqueue, so a crash leaves both or neither.

-- Whether a finished URL may be queued again.
local function is_due_again(f, d, revisit)
  if f.outcome == OUT.REFUSED and f.reason == "robots" then
    return (f.robots or 0) ~= d.robots_version  -- a refusal holds until robots.txt changes
  end
  local next_s = f.next_s
  if f.outcome == OUT.FAILED or (f.outcome == OUT.REFUSED and f.reason == "queue_full") then
    return now_s >= next_s
  end
  if not revisit then return false end
  if next_s == 0 then next_s = f.last + floor((C.revisit_ms[f.kind + 1] or 0) / 1000) end
  return now_s >= next_s
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

-- shape: 32 bits of what the URL looks like, 0 or nil = it is not counted.
-- Returns one letter: a added, s seen, f queue full, d dropped, o not ours, x disabled, t trap.
local function offer(name, link, shape)
  local id = link:sub(1, 16)
  -- The records answer first, as they cost less than the filter and never lie; nine of ten links end here.
  -- A record may be older than the filter's window, so they are asked even for what the filter does not know.
  if call("HEXISTS", P .. ":r:" .. name, id) == 1 then return "s" end
  local flags = link:byte(17)
  local bucket, field = finished_place(id)
  local raw = call("HGET", bucket, field)
  if raw and flags == 0 and not may_come_back(raw) then return "s" end
  local d = touch(name)
  if not d then return "o" end
  if d.enabled == 0 then return "x" end
  local f = raw and read_finished(raw)
  if f and flags < 2 and not is_due_again(f, d, flags % 2 == 1) then return "s" end
  local is_hit = is_seen(id)
  if is_hit and not f then
    if flags < 2 and has_left(id, name) then return "s" end
    count("filter_lied")
  end

  local _, due, kind, band, depth, score, parent
  _, _, due, kind, band, depth, score, parent = struct.unpack(LINK, link)
  local h = { kind = kind % 16, scheme = floor(kind / 16), band = band, tries = 0, crashes = 0, depth = depth,
    score = score, discovered = f and f.discovered or now_s, outcome = 0, status = 0, last = f and f.last or 0,
    parent = parent }
  if shape and shape ~= 0 and not f and flags == 0 and C.pattern_budget > 0 and is_trap(name, h.kind, shape) then
    count("trap")
    return "t"
  end
  -- Over the limit a URL falls one band, over twice the limit two: below the last band it falls out.
  h.band = band + floor((d.queued + d.due) / C.queue_limit)
  if h.band > 2 then return refuse_full(name, d, id, h) end

  if d.queued == 0 then
    d.seq = 0
    if d.dropped > 0 then call("DEL", P .. ":o:" .. name) end
  end
  if h.scheme > 0 and d.scheme == 0 then d.scheme = h.scheme end
  if raw then
    call("HDEL", bucket, field)
    if f.outcome == OUT.FAILED then call("HDEL", P .. ":quar", id) end
  end
  if is_hit then call("HDEL", P .. ":moved", id .. name) end
  call("HSET", P .. ":r:" .. name, id, write_header(h, link:sub(LINK_SIZE + 1)))
  if not is_hit then add_seen(id) end
  if due > now then
    enqueue_due(name, d, id, due, 0)
  else
    enqueue(name, d, id, queue_score(h, d))
  end
  d.added = d.added + 1
  count("added")
  return "a"
end

-- groups: {domain, {link, ...}, {shape, ...} or nothing}...; returns one letter a link
local function offer_all(groups)
  local letters = {}
  for g = 1, #groups do
    local name, links, shapes = groups[g][1], groups[g][2], groups[g][3]
    for i = 1, #links do letters[#letters + 1] = offer(name, links[i], shapes and shapes[i]) end
  end
  return table.concat(letters)
end
