-- Part: the end of a visit.
-- Needs C.max_tries, C.retry_ms, C.retry_max_ms, C.failed_due_ms, C.revisit_ms, C.robots_max_age_ms,
-- C.robots_retry_ms.
local DAY_MS = 86400000

-- An ack is a list; behind the record, where there are any, stands a cmsgpack list of {rest, robots or false, links}.
-- header: of the record as it was granted, which nobody changes while it is leased, or zeros: the record is to be read.
-- rest: of the record, "" = it stays as it is.
--@fields a @ACK rest
local NO_LINKS = {}

-- The place in its domain's queue of a page that was visited, when its next visit is due. Lists first in their band, as
-- when they were found (discovery/sites.py): a day ahead of any article. Pages go to the last band, as if they were three
-- days old: behind what is new whatever it is (a new page without a date counts half a day for each level of its depth),
-- before an archive.
local function place_again(h)
  if is_list(h.kind) then
    h.band = h.kind == KIND.SECTION and 1 or 0
    h.score = h.depth - now_s - DAY_MS / 1000
  else
    h.band = 2
    h.score = 3 * DAY_MS / 1000 - h.discovered
  end
end

-- The fleet's robots.txt (RFC 9309): 2xx rules, 4xx free, unreachable or 5xx = nothing is fetched until it answers.
-- robots: {status, body, crawl-delay ms, retry-after ms}
local function ack_robots(name, d, robots)
  local status, body = 0, ""
  if robots then status, body = robots[1], robots[2] end
  local key = P .. ":rb:" .. name
  if status >= 200 and status < 300 then
    d.robots, d.crawl_delay = ROBOTS.RULES, min(robots[3], DAY_MS)
  elseif status >= 400 and status < 500 and status ~= 429 then
    d.robots, d.crawl_delay, body = ROBOTS.FREE, 0, ""
  else
    d.robots = ROBOTS.WAIT
    -- Nothing of the domain is fetched meanwhile: seconds, growing. A 429 waits like that of any page.
    local first = status == 429 and C.backoff_start_ms or C.robots_retry_ms
    local wait = first * 2 ^ min(d.robots_tries, 20)
    if robots then wait = max(wait, robots[4]) end  -- retry-after
    wait = min(wait, C.backoff_max_ms)
    d.robots_due = now + floor(wait * (1 + 0.1 * jitter))
    d.robots_tries = min(d.robots_tries + 1, 255)
    count("robots_unreachable")
    return
  end
  d.robots_tries = 0
  d.robots_due = now + C.robots_max_age_ms
  d.gate = max(d.gate, d.last + delay_of(d))  -- a Crawl-delay that was just read holds from the first page on
  local old = call("HMGET", key, "status", "body")
  if d.robots_version == 0 or old[1] ~= tostring(status) or old[2] ~= body then
    d.robots_version = (d.robots_version % 4294967295) + 1
  end
  call("HSET", key, "status", status, "body", body, "fetched", now, "version", d.robots_version)
end

local function retry_due(h, a)
  if a.next > now then return a.next end
  local wait = min(C.retry_ms * 4 ^ min(h.tries - 1, 10), C.retry_max_ms)
  if h.outcome == OUT.CHALLENGE then wait = max(wait, C.retry_max_ms) end
  return now + max(floor(wait), min(a.retry_after, C.backoff_max_ms))
end

-- When a page that was visited is looked at again; 0 = never. The spider's word, else the default of the kind.
local function next_visit(h, a)
  if a.next > 0 then return a.next end
  if a.next == 0 or not is_list(h.kind) then return 0 end
  if h.outcome == OUT.GONE then return now + 30 * DAY_MS end
  if h.outcome == OUT.REFUSED or h.outcome == OUT.FAILED then return now + DAY_MS end
  return now + C.revisit_ms[h.kind + 1]
end

-- The record behind its header.
local function rest_of(name, id, a)
  if a.rest == "" then a.rest = (call("HGET", P .. ":r:" .. name, id) or ""):sub(HEADER.size + 1) end
  return a.rest
end

local function requeue(name, d, id, h, a, due_ms)
  call("HSET", P .. ":r:" .. name, id, write_header(h, rest_of(name, id, a)))
  if due_ms <= now then
    enqueue(name, d, id, queue_score(h, d))
  else
    enqueue_due(name, d, id, due_ms, h.outcome)
  end
end

local function finish(name, d, id, h, a)
  local reason = a.reason
  local more = { reason = reason, digest = a.digest ~= ZERO and a.digest, file = a.file, offset = a.offset, length = a.length }
  if h.outcome == OUT.FAILED then
    more.next_s = floor((now + C.failed_due_ms) / 1000)
    put_in_quarantine(id, name, reason, write_header(h, rest_of(name, id, a)))
  elseif h.outcome == OUT.REFUSED and reason == "robots" then
    more.robots = d.robots_version
  end
  call("HDEL", P .. ":r:" .. name, id)
  write_finished(id, h, more)
end

-- One visit's outcome: comes again when due, or is finished. What was taken down during its visit never comes again.
local function settle(name, d, id, h, a)
  if is_taken(id) then a.outcome, a.reason, a.next = OUT.REFUSED, "takedown", 0 end
  local outcome = a.outcome
  if d.flags % 2 == AUTO and outcome == OUT.DONE and h.kind >= KIND.ARTICLE and not is_waiting(h.outcome) then
    local x = extra(d)
    x.articles = x.articles + 1  -- its yield, by which its class is worked out
  end
  h.outcome, h.status, h.last = outcome, a.status, now_s
  if outcome == OUT.RETRY or outcome == OUT.CHALLENGE then
    h.tries = h.tries + 1
    h.band = 1
    if h.tries < C.max_tries then
      requeue(name, d, id, h, a, a.moved == MOVED.IN_DOMAIN and now or retry_due(h, a))
      return
    end
    if is_list(h.kind) then
      -- A home page is never given up: it leaves what the crawl waits for and is asked again now and then.
      h.outcome = OUT.FAILED
      h.tries = min(h.tries, 15)
      count("list_failed")
      requeue(name, d, id, h, a, now + max(C.retry_max_ms, a.retry_after))
      return
    end
    h.outcome = OUT.FAILED
  else
    h.tries, h.crashes = 0, 0
    place_again(h)
  end
  local next_ms = (h.outcome ~= OUT.FAILED or is_list(h.kind)) and next_visit(h, a) or 0
  if next_ms > 0 then
    requeue(name, d, id, h, a, next_ms)
  else
    finish(name, d, id, h, a)
  end
end

-- Returns whether it was accepted, and the statuses of its links. Links first: the target of a
-- redirect must be queued before its source is done. nil: the archive must be asked for some of them first (letter ?);
-- nothing else was done then, and the ack comes again without its links.
local function ack(packed)
  local a = { ACK.unpack(packed) }
  local id, at, robots, groups = a.url_id, a.rest, false, NO_LINKS
  local e = read_lease(id)
  if not e or e.fence ~= a.fence then return false, "" end
  a.rest = ""
  if at <= #packed then a.rest, robots, groups = unpack(cmsgpack.unpack(packed:sub(at))) end
  local target = a.moved == MOVED.HERE and table.remove(groups) or nil
  local statuses = #groups > 0 and shared.offer_all(groups) or ""
  if statuses:find("?", 1, true) then return nil, statuses end
  if target then statuses = statuses .. shared.offer_all({ target }) end
  local name = e.domain
  drop_lease(id)
  count("outcome:" .. a.outcome)
  local d = touch(name)
  if not d then return true, statuses end
  if d.id == id then
    -- What robots.txt forbids was never asked for: the next URL of the domain need not wait for it.
    if not is_fetched(e) and not (a.outcome == OUT.REFUSED and a.reason == "robots") then
      open_gate(name, d, id, e.granted, 0, a.status > 0 and a.status or 65535, a.retry_after,
        e.robots == 1)
    end
    d.id = ZERO
  end
  if e.robots == 1 then
    ack_robots(name, d, robots)
    return true, statuses
  end
  local raw, h = a.header, nil
  if raw:byte(1) == SCHEMA.NUMBER then
    h = unpack_header(raw)
  else
    raw = call("HGET", P .. ":r:" .. name, id)
    h = read_header(raw)
  end
  if not h then
    call("HDEL", P .. ":r:" .. name, id)
    put_in_quarantine(id, name, "poison", raw)
  elseif a.moved == MOVED.AWAY or (a.moved == MOVED.HERE and statuses:find("[as]$")) then
    call("HDEL", P .. ":r:" .. name, id)  -- it lives on under another domain, as one of the links
    call("HSET", P .. ":moved", id .. name, target and target[1] or "")
  else
    if a.moved == MOVED.IN_DOMAIN then h.scheme = a.scheme end
    if a.moved == MOVED.HERE then a.outcome, a.reason = OUT.REFUSED, "queue_full" end
    settle(name, d, id, h, a)
  end
  return true, statuses
end
