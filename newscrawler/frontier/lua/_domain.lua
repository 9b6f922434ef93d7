-- Part: domains. Each is loaded once per call, put where it belongs in the ready sets by place_domains(), and
-- saved once by save_domains(), leases with them.
local DOMAIN = ">BBBBBBBI4I4I4I4I4ddddddddBBI4I4I4I4I4I4I4I4c16Bc0"
local ROBOTS_NONE, ROBOTS_RULES, ROBOTS_FREE, ROBOTS_WAIT = 0, 1, 2, 3
local domains = {}

local function new_domain()
  return { class = 1, own_class = 9, enabled = 1, paused = 0, loopback = 0, scheme = 0, floor = 0, set_delay = 0,
    throttle = 0, crawl_delay = 0, step = 0, gate = 0, last = 0, back_until = 0, blocked = 0, robots_due = 0,
    since = 0, ready = 0, next_due = 0, robots = 0, robots_tries = 0, robots_version = 0, seq = 0, queued = 0,
    due = 0, fetched = 0, errors = 0, dropped = 0, added = 0, id = ZERO, site = "" }
end

-- nil: not one of ours. Every domain that was touched is saved.
local function touch(name)
  local d = domains[name]
  if d then return d end
  local raw = call("HGET", P .. ":dom", name)
  if not raw then return nil end
  local _, class, own_class, enabled, paused, loopback, scheme, least, set_delay, throttle, crawl_delay, step, gate,
    last, back_until, blocked, robots_due, since, ready, next_due, robots, robots_tries, robots_version, seq, queued,
    due, fetched, errors, dropped, added, id, site = struct.unpack(DOMAIN, raw)
  -- one constructor: a table that grows field by field is built five times over
  d = { class = class, own_class = own_class, enabled = enabled, paused = paused, loopback = loopback, scheme = scheme,
    floor = least, set_delay = set_delay, throttle = throttle, crawl_delay = crawl_delay, step = step, gate = gate,
    last = last, back_until = back_until, blocked = blocked, robots_due = robots_due, since = since, ready = ready,
    next_due = next_due, robots = robots, robots_tries = robots_tries, robots_version = robots_version, seq = seq,
    queued = queued, due = due, fetched = fetched, errors = errors, dropped = dropped, added = added, id = id,
    site = site, raw = raw }
  domains[name] = d
  return d
end

local function class_of(d)
  return d.own_class == 9 and d.class or d.own_class
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
  if d.robots == ROBOTS_WAIT then at = max(at, d.robots_due) end
  if d.queued > 0 then return max(at, d.since, 1) end
  if d.due > 0 then return max(at, d.next_due, 1) end
  return 0
end

local function place_domains()
  for name, d in pairs(domains) do
    local at = ready_at(d)
    if at ~= d.ready then
      if at == 0 then
        call("ZREM", ready_key(class_of(d)), name)
      else
        call("ZADD", ready_key(class_of(d)), at, name)
      end
      d.ready = at
    end
  end
end

-- The last word of every script that changes anything of a domain.
local function save_domains()
  save_leases()
  place_domains()
  for name, d in pairs(domains) do
    local raw = struct.pack(DOMAIN, 1, d.class, d.own_class, d.enabled, d.paused, d.loopback, d.scheme, d.floor,
      d.set_delay, d.throttle, d.crawl_delay, d.step, d.gate, d.last, d.back_until, d.blocked, d.robots_due, d.since,
      d.ready, d.next_due, d.robots, d.robots_tries, d.robots_version, d.seq, d.queued, d.due, d.fetched, d.errors,
      d.dropped, d.added, d.id, #d.site, d.site)
    if raw ~= d.raw then call("HSET", P .. ":dom", name, raw) end
  end
end

-- A change of class takes the domain out of the old class' set before save_domains() puts it into the new.
local function leave_ready(name, d)
  if d.ready > 0 then
    call("ZREM", ready_key(class_of(d)), name)
    d.ready = 0
  end
end

-- Into the queue, to be leased as soon as the gate opens.
local function enqueue(name, d, id, score)
  call("ZADD", P .. ":q:" .. name, score, id)
  if d.queued == 0 then d.since = now end
  d.queued = d.queued + 1
  S.queued = S.queued + 1
end

-- Not before due_ms. ``outcome``: of the last visit, tells work that is left from a planned revisit.
local function enqueue_due(name, d, id, due_ms, outcome)
  call("ZADD", P .. ":due:" .. name, due_ms, id)
  d.due = d.due + 1
  if d.next_due == 0 or due_ms < d.next_due then d.next_due = due_ms end
  if is_waiting(outcome) then S.waiting = S.waiting + 1 else S.queued = S.queued + 1 end
end

-- Moves what has come due into the queue, at most ``limit`` URLs.
local function move_due(name, d, limit)
  if d.due == 0 or d.next_due > now then return end
  local ids = call("ZRANGEBYSCORE", P .. ":due:" .. name, "-inf", now, "LIMIT", 0, limit)
  for i = 1, #ids do
    local id = ids[i]
    local raw = call("HGET", P .. ":r:" .. name, id)
    local h = read_header(raw)
    call("ZREM", P .. ":due:" .. name, id)
    d.due = d.due - 1
    if h and is_waiting(h.outcome) then S.waiting = S.waiting - 1 else S.queued = S.queued - 1 end
    if h then
      enqueue(name, d, id, queue_score(h, d))
    else
      call("HDEL", P .. ":r:" .. name, id)
      put_in_quarantine(id, name, "poison", raw)
    end
  end
  local first = call("ZRANGE", P .. ":due:" .. name, 0, 0, "WITHSCORES")
  d.next_due = first[2] and tonumber(first[2]) or 0
end
