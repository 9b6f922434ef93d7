-- Part: granting, ending and reaping leases.
-- Needs C.lease_ms, C.obey_robots, C.poison_candidate_after, C.max_isolated_retries, C.retry_max_ms, C.backoff_start_ms,
-- C.backoff_max_ms, W (worker id).
local TURNS = { 0, 1, 0, 2, 0, 1, 0, 1, 0 }  -- high 5, mid 3, low 1
local TURNS_OF = { 5, 3, 1 }
local lease_end = real + C.lease_ms
local lease_end_text, now_text = whole(lease_end), whole(now)

local function robots_id(name)
  return (redis.sha1hex("robots:" .. name):sub(1, 32):gsub("..", function(h) return string.char(tonumber(h, 16)) end))
end

local function needs_robots(d)
  if not C.obey_robots then return false end
  if d.robots == ROBOTS.NONE then return true end
  return now >= d.robots_due
end

-- What wants a URL, for its worker: {f}:want is there only while a bounded crawl runs.
local has_wanted
local function wanted_by(id)
  if has_wanted == nil then has_wanted = call("EXISTS", P .. ":want") == 1 end
  return has_wanted and call("HGET", P .. ":want", id) or ""
end

-- A lease as its worker gets it; record: "" = robots.txt.
local function grant_url(granted, name, d, id, record, score, is_robots)
  S.fence = max(S.fence + 1, real_us)  -- by time, so that it grows even past a second that a killed Redis forgot
  new_lease(id, S.fence, score, is_robots, name, W, lease_end_text)
  d.id = id
  take_request(1)
  granted[#granted + 1] = GRANT.pack{ url_id = id, fence = S.fence, robots_version = d.robots_version, scheme = d.scheme,
    domain = name, site = d.site, wanted = wanted_by(id) } .. record
end

local given = {}  -- url ids that were granted in this call
local BESIDE_MS = 10000

-- Domains whose best URL is a second look at an article give way to those with something new, where the workers are
-- what is short. They stand in {f}:later meanwhile, by how long they have waited. A new link puts them back into their
-- class at once. What comes due there does so at its time, but not sooner than after ASIDE_MS of the frontier's clock:
-- a list waits for no more than that.
local ASIDE_MS, LONGEST_ASIDE_MS = 30000, 3600000
local function aside_until(d)
  return max(now + ASIDE_MS, d.next_due > 0 and min(d.next_due, now + LONGEST_ASIDE_MS) or now + LONGEST_ASIDE_MS)
end

local SECOND_LOOK = 2 * 8589934592 * 262144  -- the least queue score of band 2
local function is_second_look(raw, score, id)
  return score >= SECOND_LOOK and is_waiting(raw:byte(HEADER.at.outcome)) and not is_list(raw:byte(HEADER.at.kind) % 16)
    and wanted_by(id) == ""
end

-- The best URL of the domain, if it may be fetched now. A domain that may not be is put right by save_domains().
-- second_looks: list of names; a domain that has nothing but these is added to it and grants nothing. A group has one
-- gate and one front, who would keep the others from it: it does not give way.
local function grant(granted, name, second_looks)
  local d = touch(name)
  if not d then return false end
  local at = ready_at(d)
  if at == 0 or at > now then return false end
  if d.flags >= QUOTA and quota_is_spent(d) then return false end
  if needs_robots(d) then
    grant_url(granted, name, d, robots_id(name), "", 0, 1)
    return true
  end
  move_due(name, d, 32)
  for _ = 1, 8 do  -- past records that cannot be read
    local top = call("ZPOPMIN", P .. ":q:" .. name)
    if #top == 0 then
      S.queued = S.queued - d.queued
      d.queued = 0
      return false
    end
    d.queued = d.queued - 1
    S.queued = S.queued - 1
    local id = top[1]
    local raw = call("HGET", P .. ":r:" .. name, id)
    if not is_readable(raw) then
      call("HDEL", P .. ":r:" .. name, id)
      put_in_quarantine(id, name, "poison", raw)
    elseif given[id] or call("HEXISTS", leases_key, id) == 1 then
      -- The same page is being fetched under another of its site's hosts. A second lease of the url id would take the
      -- place of the first, whose domain would then wait for ever.
      enqueue_due(name, d, id, now + BESIDE_MS, raw:byte(HEADER.at.outcome))
    elseif second_looks and d.flags < GROUP and is_second_look(raw, tonumber(top[2]), id) then
      call("ZADD", P .. ":q:" .. name, top[2], id)
      d.queued = d.queued + 1
      S.queued = S.queued + 1
      second_looks[#second_looks + 1] = name
      return false
    else
      given[id] = true
      grant_url(granted, name, d, id, raw, tonumber(top[2]), 0)
      return true
    end
  end
  return false
end

-- Up to n second looks, of the domains that have waited longest for one; how many.
local function lease_second_looks(granted, n)
  local names = call("ZRANGE", later_key, "0", whole(n - 1))
  if #names == 0 then return 0 end
  call("ZREM", later_key, unpack(names))
  read_domains(names)
  local before = #granted
  for i = 1, #names do grant(granted, names[i]) end
  return #granted - before
end

-- Up to k URLs, fewer where the call gets late: classes in turns, a class with nothing due passes its turn on; inside a
-- class the domain that has waited longest; inside a domain the lowest queue score. Domains that have only second looks
-- come when nothing else is due, and one after each nine others.
local function lease(k)
  local granted, ready, at, offset, asked = {}, {}, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }
  local second_looks = {}
  local left, tries = cap_room(k), 2 * k + 16
  -- The domains of a class whose time has come, by chunks: they leave the set only in place_domains(). First as many
  -- as are its turns, then as many as are still wanted.
  local function has_next(class)
    local names = ready[class]
    if names and (at[class] <= #names or #names < asked[class]) then return at[class] <= #names end
    local chunk = names and max(left, 4) or floor(left * TURNS_OF[class] / 9) + 2
    names = call("ZRANGEBYSCORE", ready_key(class - 1), "-inf", now_text, "LIMIT", whole(offset[class]), whole(chunk))
    read_domains(names)
    ready[class], asked[class], offset[class], at[class] = names, chunk, offset[class] + chunk, 1
    return #names > 0
  end
  local turn, since_look = S.turn % 9, floor(S.turn / 9)
  while left > 0 and tries > 0 do
    tries = tries - 1
    if since_look == 9 then
      since_look = 0
      left = left - lease_second_looks(granted, 1)
      if left == 0 then break end
    end
    local class
    for i = 0, 8 do
      local at_turn = (turn + i) % 9
      class = TURNS[at_turn + 1] + 1
      if has_next(class) then
        turn = at_turn
        break
      end
      class = nil
    end
    if not class then break end
    local name = ready[class][at[class]]
    at[class] = at[class] + 1
    if grant(granted, name, second_looks) then
      left = left - 1
      turn, since_look = (turn + 1) % 9, since_look + 1
      if #granted % 4 == 0 and is_late() then break end
    end
  end
  S.turn = turn + 9 * since_look
  while left > 0 and call("EXISTS", later_key) == 1 do
    left = left - lease_second_looks(granted, min(left, 8))
    if is_late() then break end  -- after some, so that a late call brings something as well
  end
  for i = 1, #second_looks do
    local name = second_looks[i]
    if left > 0 and grant(granted, name) then
      left = left - 1
    else
      aside[name] = aside_until(touch(name))
    end
  end
  return granted
end

-- The worker died, and held this URL among others, which says little: after C.poison_candidate_after such deaths it is a
-- poison candidate. That rests, and is then retried by itself (isolated_retry.lua); only deaths during such a retry
-- count further.
-- Returns ms to rest, or nil when there is no doubt left.
local function crash(h, e)
  if e.state >= RETRIED_ALONE or h.crashes < C.poison_candidate_after then h.crashes = h.crashes + 1 end
  local deaths_alone = h.crashes - C.poison_candidate_after
  if deaths_alone >= C.max_isolated_retries then
    if not is_list(h.kind) then return nil end
    h.crashes = h.crashes - 1  -- a home page is never given up
    return C.retry_max_ms
  end
  return deaths_alone < 0 and 0 or min(C.lease_ms * 4 ^ deaths_alone, C.retry_max_ms)
end

-- robots.txt is never given up: what seems to kill workers is asked for ever more rarely, and its domain waits.
local function robots_crash(d)
  d.robots_tries = min(d.robots_tries + 1, 255)
  if d.robots_tries <= C.poison_candidate_after then return end
  d.robots = ROBOTS.WAIT
  d.robots_due = now + min(C.backoff_start_ms * 2 ^ min(d.robots_tries - C.poison_candidate_after, 20), C.backoff_max_ms)
end

-- Ends a lease whose visit came to nothing.
-- how: "unfetched" given back, nothing was asked of the site; "lost" the worker died or went silent
local function return_lease(id, e, how)
  drop_lease(id)
  local d = touch(e.domain)
  if not d then return end
  if d.id == id then
    d.id = ZERO
    -- A silent worker may have fetched until this moment.
    -- Of robots.txt only the first answer is told: it may have been following redirects.
    if how == "lost" and (not is_fetched(e) or e.robots == 1) then open_gate(e.domain, d, id, e.granted, 0, 65535, -1, e.robots == 1) end
    if how == "unfetched" and not is_fetched(e) then take_request(-1) end
  end
  if e.robots == 1 then
    if how == "lost" then robots_crash(d) end
    return
  end
  local key = P .. ":r:" .. e.domain
  local raw = call("HGET", key, id)
  local h = read_header(raw)
  if not h then
    call("HDEL", key, id)
    put_in_quarantine(id, e.domain, "poison", raw)
    return
  end
  if is_taken(id) then  -- while it was leased: the record is gone for good, as after a visit (settle() in _ack.lua)
    h.outcome, h.last = OUT.REFUSED, now_s
    call("HDEL", key, id)
    write_finished(id, h, { reason = "takedown" })
    return
  end
  if how == "lost" then
    local rest, rest_ms = raw:sub(HEADER.size + 1), crash(h, e)
    if not rest_ms then
      h.outcome, h.last = OUT.FAILED, now_s
      call("HDEL", key, id)
      put_in_quarantine(id, e.domain, "crashes", write_header(h, rest))
      write_finished(id, h, { next_s = now_s + floor(C.failed_due_ms / 1000), reason = "crashes" })
      return
    end
    call("HSET", key, id, write_header(h, rest))
    if rest_ms > 0 then
      enqueue_due(e.domain, d, id, now + rest_ms, h.outcome)
      return
    end
  end
  enqueue(e.domain, d, id, e.score)
end

-- Leases that ran out, at most ``limit``.
local function reap(limit)
  if real < reap_from() then return end
  local ids = call("ZRANGEBYSCORE", P .. ":deadlines", "-inf", whole(real), "LIMIT", "0", whole(limit))
  for i = 1, #ids do
    local e = read_lease(ids[i])
    if e then
      return_lease(ids[i], e, "lost")
      count("expired")
    else
      call("ZREM", P .. ":deadlines", ids[i])
    end
  end
end
