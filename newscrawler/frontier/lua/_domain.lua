-- Part: domains. Each is loaded once per call, put where it belongs in the ready sets by place_domains(), and
-- saved once by save_domains(), leases with them.
-- A domain is a list, as a table of so many names is 2.5 KB to be made anew for each one touched. First what is not of
-- its record: the record as it was read, what stands behind it, flags, extra(); then the record, and where it ended.
--@fields d raw tail flags x @DOMAIN at
local domains, groups = {}, {}

-- What only some domains have, behind the site's name: a domain without it pays one byte of a comparison. A list as well,
-- with the failures in a row, which are a byte behind it where they are not 0.
--@fields x @EXTRA failures
local AUTO, QUOTA, OWN_QUOTA, GROUP = 1, 2, 4, 8
local FOR_GOOD = 9007199254740991

local function extra(d)
  local x = d.x
  if x then return x end
  if d.tail == "" then
    x = { EXTRA.zeros }
    x.failures = 0
  else
    x = { EXTRA.unpack(d.tail) }
    x.failures = d.tail:byte(x.failures) or 0  -- until now where it ended
  end
  d.x = x
  return x
end

-- Sets or clears one flag of extra(d); d.flags is the copy that the hot path looks at.
local function set_flag(d, flag, is_on)
  local x = extra(d)
  local has = floor(x.flags / flag) % 2 == 1
  if has ~= is_on then x.flags = x.flags + (is_on and flag or -flag) end
  d.flags = x.flags
end

local function write_extra(d)
  local x = d.x
  if not x then return d.tail end
  if x.flags == 0 and x.articles == 0 and x.failures == 0 then return "" end
  x.latency, x.idle_h = min(x.latency, 4294967295), min(x.idle_h, 65535)
  return EXTRA.pack(x) .. (x.failures > 0 and string.char(x.failures) or "")
end

local function new_domain()
  local d = { false, "", 0, false, DOMAIN.zeros }
  d.schema, d.cls, d.own_cls, d.enabled = SCHEMA.NUMBER, 1, 9, 1
  d.id = ZERO
  return d
end

-- Reads many with one command; touch() finds them here.
local raws = {}
local function read_domains(names)
  if #names == 0 then return end
  local found = call("HMGET", P .. ":dom", unpack(names))
  for i = 1, #names do raws[names[i]] = found[i] end
end

-- nil: not one of ours. Every domain that was touched is saved.
local function touch(name)
  local d = domains[name]
  if d then return d end
  local raw = raws[name]
  if raw == nil then raw = call("HGET", P .. ":dom", name) end
  if not raw then return nil end
  d = { raw, "", 0, false, DOMAIN.unpack(raw) }
  local at = d.at
  if at <= #raw then d.flags, d.tail = raw:byte(at), raw:sub(at) end
  domains[name] = d
  return d
end

local function class_of(d)
  return d.own_cls == 9 and d.cls or d.own_cls
end

local function ready_key(class)
  return P .. ":ready:" .. class
end

-- Least ms between two fetches of the domain; back-off comes on top as a time until which nothing is fetched.
local function delay_of(d)
  return max(d.floor, d.set_delay, d.crawl_delay, d.throttle)
end

-- The time from which a URL of the domain may be leased; 0 = not at all for now. A domain that is being
-- fetched is in nobody's reach until the fetch ended. Among those whose time has come the smallest time
-- has waited longest.
local function ready_at(d)
  if d.enabled == 0 or d.paused == 1 or d.id ~= ZERO then return 0 end
  local at = max(d.gate, d.blocked, d.back_until)
  if S.reborn + 86400000 > now then at = max(at, S.reborn + delay_of(d)) end  -- a fetch may have been forgotten
  if d.flags >= QUOTA then
    local x = extra(d)
    at = max(at, x.held)
  end
  if d.robots == ROBOTS.WAIT then at = max(at, d.robots_due) end
  if d.queued > 0 then return max(at, d.since, 1) end
  if d.due > 0 then return max(at, d.next_due, 1) end
  return 0
end

-- Places in the ready sets that change in this call: class + 1 -> domain -> ms, 0 = none. flush_ready() writes them.
local places = { {}, {}, {} }
local aside = {}  -- domains that give way in this call -> ms until which
local later_key = P .. ":later"
local function put_ready(name, d, at)
  if at > 0 and aside[name] then
    call("ZADD", later_key, whole(at), name)
    at = max(at, aside[name])
  end
  if at == d.ready then return end
  places[class_of(d) + 1][name] = at
  d.ready = at
end

local function flush_ready()
  for class = 1, 3 do
    if next(places[class]) then
      local added, removed = {}, {}
      for name, at in pairs(places[class]) do
        if at == 0 then
          removed[#removed + 1] = name
        else
          added[#added + 1], added[#added + 2] = whole(at), name
        end
      end
      call_many("ZREM", ready_key(class - 1), removed)
      call_many("ZADD", ready_key(class - 1), added)
      places[class] = {}
    end
  end
end

-- Groups: domains that share one gate, as they are one host. Only one member of a group, the front, is in the ready
-- sets; the others wait in {f}:grp:<group>, so that a lease never tries one after the other in vain.
-- {f}:grp  group -> gate ms, member being fetched, front
local function touch_group(group)
  local g = groups[group]
  if g then return g end
  local raw = call("HGET", P .. ":grp", group)
  g = { gate = 0, holder = "", front = "", raw = raw }
  if raw then g.gate, g.holder, g.front = GATE_GROUP.unpack(raw) end
  groups[group] = g
  return g
end

local function place_in_group(name, d)
  local x = extra(d)
  local group = x.group
  local g = touch_group(group)
  if d.id ~= ZERO then g.holder = name elseif g.holder == name then g.holder = "" end
  g.gate = max(g.gate, d.gate)
  local at = ready_at(d)
  if at == 0 then
    call("ZREM", P .. ":grp:" .. group, name)
  else
    call("ZADD", P .. ":grp:" .. group, at, name)
  end
end

local function settle_group(group, g)
  local front, at = "", 0
  if g.holder == "" then
    local first = call("ZRANGE", P .. ":grp:" .. group, "0", "0", "WITHSCORES")
    if first[2] then front, at = first[1], max(tonumber(first[2]), g.gate) end
  end
  if g.front ~= front and g.front ~= "" then
    local old = touch(g.front)
    if old then put_ready(g.front, old, 0) end
  end
  if front ~= "" then put_ready(front, touch(front), at) end
  g.front = front
  local raw = GATE_GROUP.pack{ gate = g.gate, holder = g.holder, front = g.front }
  if raw ~= g.raw then
    call("HSET", P .. ":grp", group, raw)
    g.raw = raw
  end
end

-- Out of its group, wherever it stands there.
local function leave_group(name, d)
  local x = extra(d)
  if x.group == "" then return end
  local g = touch_group(x.group)
  call("ZREM", P .. ":grp:" .. x.group, name)
  if g.holder == name then g.holder = "" end
  put_ready(name, d, 0)
  if g.front == name then g.front = "" end
  x.group = ""
  set_flag(d, GROUP, false)
end

local function place_domains()
  for name, d in pairs(domains) do
    if d.flags >= GROUP then
      place_in_group(name, d)
    else
      put_ready(name, d, ready_at(d))
    end
  end
  for group, g in pairs(groups) do settle_group(group, g) end
  flush_ready()
end

-- The last word of every script that changes anything of a domain.
local function save_domains()
  save_leases()
  place_domains()
  if shared.save_caps then shared.save_caps() end
  local changed = {}
  for name, d in pairs(domains) do
    local raw = DOMAIN.pack(d) .. write_extra(d)
    if raw ~= d.raw then changed[#changed + 1], changed[#changed + 2] = name, raw end
  end
  call_many("HSET", P .. ":dom", changed)
end

-- A change of class takes the domain out of the old class' set before save_domains() puts it into the new.
local function leave_ready(name, d)
  flush_ready()
  if d.ready > 0 then
    call("ZREM", ready_key(class_of(d)), name)
    d.ready = 0
  end
end

-- The class of a domain whose admin chose none: what its fetches bring and cost, and how long it was left alone. One
-- step at a time and none within an hour of the last, so that a bad quarter of an hour moves nothing.
local JUDGE_EVERY, JUDGE_FROM, CLASS_HOLD_S, IDLE_MS = 64, 32, 3600, 86400000
local function judge_class(name, d)
  local x = extra(d)
  local n = d.fetched - x.judged_fetched
  if n >= JUDGE_FROM then
    x.yield_share = min(255, floor(100 * (x.articles - x.judged_articles) / n))
    x.error_share = min(255, floor(100 * (d.errors - x.judged_errors) / n))
    x.judged_articles, x.judged_fetched, x.judged_errors = x.articles, d.fetched, d.errors
  end
  local idle_ms = d.last > 0 and now - d.last or 0
  x.idle_h = floor(max(0, idle_ms) / 3600000)
  local points = 0
  if x.judged_fetched > 0 then
    if x.yield_share >= 25 then points = 1 elseif x.yield_share < 5 then points = -1 end
    if x.error_share > 30 then points = points - 1 end
    if x.latency > 4000 then points = points - 1 end
  end
  if idle_ms >= IDLE_MS and d.queued + d.due > 0 then points = points + 1 end
  local wanted = points > 0 and 0 or points < 0 and 2 or 1
  if wanted == d.cls or now_s - x.judged_at < CLASS_HOLD_S then return end
  if d.own_cls == 9 then leave_ready(name, d) end
  d.cls = wanted < d.cls and d.cls - 1 or d.cls + 1
  x.judged_at = now_s
end

-- pages 0 = no quota. The same quota again does not begin anew, nor does a reload of the policy.
local function set_quota(d, pages, window_s)
  local x = extra(d)
  if x.quota == pages and (pages == 0 or x.quota_s == window_s) then return end
  x.quota, x.quota_s, x.quota_from, x.quota_base, x.held = pages, window_s, now_s, d.fetched, 0
  set_flag(d, QUOTA, pages > 0)
end

local function count_queued(d)
  if d.queued == 0 then d.since = now end
  d.queued = d.queued + 1
  S.queued = S.queued + 1
end

-- Into the queue, to be leased as soon as the gate opens.
local function enqueue(name, d, id, score)
  call("ZADD", P .. ":q:" .. name, whole(score), id)
  count_queued(d)
end

-- Not before due_ms. ``outcome``: of the last visit, tells work that is left from a planned revisit.
local function enqueue_due(name, d, id, due_ms, outcome)
  due_ms = floor(due_ms)
  call("ZADD", P .. ":due:" .. name, whole(due_ms), id)
  d.due = d.due + 1
  if d.next_due == 0 or due_ms < d.next_due then d.next_due = due_ms end
  if is_waiting(outcome) then S.waiting = S.waiting + 1 else S.queued = S.queued + 1 end
end

-- Moves what has come due into the queue, at most ``limit`` URLs; 64 a call in all, as after a long rest much is due in
-- every domain, and one of each of the further ones.
local most_due = 64
local function move_due(name, d, limit)
  if d.due == 0 or d.next_due > now then return end
  local key, records, queued = P .. ":due:" .. name, P .. ":r:" .. name, {}
  local ids = call("ZRANGEBYSCORE", key, "-inf", whole(now), "LIMIT", "0", whole(max(1, min(limit, most_due))))
  local raws = #ids > 0 and call("HMGET", records, unpack(ids)) or {}
  call_many("ZREM", key, ids)
  most_due = most_due - #ids
  d.due = d.due - #ids
  for i = 1, #ids do
    local raw = raws[i]
    local h = read_header(raw)
    if h and is_waiting(h.outcome) then S.waiting = S.waiting - 1 else S.queued = S.queued - 1 end
    if h then
      queued[#queued + 1], queued[#queued + 2] = whole(queue_score(h, d)), ids[i]
      count_queued(d)
    else
      call("HDEL", records, ids[i])
      put_in_quarantine(ids[i], name, "poison", raw)
    end
  end
  call_many("ZADD", P .. ":q:" .. name, queued)
  local first = call("ZRANGE", P .. ":due:" .. name, "0", "0", "WITHSCORES")
  d.next_due = first[2] and tonumber(first[2]) or 0
end
