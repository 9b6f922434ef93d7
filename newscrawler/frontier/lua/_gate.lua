-- Part: the gate of a domain: when the next fetch may begin; its quota; the fleet's caps.
-- Needs C.requests_per_minute, C.bytes_per_minute (this shard's share, 0 = none), C.autothrottle, C.autothrottle_start_ms, C.autothrottle_max_ms, C.autothrottle_target, C.backoff_start_ms,
-- C.backoff_max_ms, C.backoff_forgive_ms, C.log_entries. Writes {f}:log:<domain> and {f}:hours:<domain>.

-- Caps of the whole fleet: {f}:caps holds what may still be asked and read, and refills with time. A tenth of a cap may
-- be taken at once and the rest comes evenly, so that no minute, wherever it begins, sees more than the cap.
local caps
local function burst_of(cap) return max(1, floor(cap / 10)) end

local function read_caps()
  if caps ~= nil then return caps end
  local r, b = C.requests_per_minute or 0, C.bytes_per_minute or 0
  if r == 0 and b == 0 then
    caps = false
    return false
  end
  local raw = call("GET", P .. ":caps")
  caps = { at = now, requests = burst_of(r), bytes = b / 10, size = 100000, raw = raw }
  if raw then caps.at, caps.requests, caps.bytes, caps.size = CAPS.unpack(raw) end
  local passed = max(0, now - caps.at) / 60000
  caps.requests = min(burst_of(r), caps.requests + passed * (r - burst_of(r) + 1))
  caps.bytes = min(b / 10, caps.bytes + passed * b * 0.9)
  caps.at = now
  return caps
end

function shared.save_caps()
  if caps and caps.changed then
    call("SET", P .. ":caps", CAPS.pack{ at = caps.at, requests = caps.requests, bytes = caps.bytes, size = caps.size,
      most_requests = C.requests_per_minute, most_bytes = C.bytes_per_minute })
  end
end

-- How many of k may be leased now, and real ms until one more may be. What is out already is reckoned with its
-- likely size, as its bytes are known only after the fetch.
local function cap_room(k)
  if not read_caps() then return k, 0 end
  local room, wait = k, 0
  if C.requests_per_minute > 0 then
    room = min(room, floor(caps.requests))
    if caps.requests < 1 then wait = (1 - caps.requests) / (C.requests_per_minute - burst_of(C.requests_per_minute) + 1) end
  end
  if C.bytes_per_minute > 0 then
    local left = caps.bytes - call("ZCARD", P .. ":deadlines") * caps.size
    room = min(room, left > 0 and max(1, floor(left / caps.size)) or 0)
    if left <= 0 then wait = max(wait, -left / (C.bytes_per_minute * 0.9)) end
  end
  return max(0, room), wait * 60000 / (clock[1] and tonumber(clock[1]) or 1)
end

-- n: requests taken, or less than 0 where they were not made after all
local function take_request(n)
  if read_caps() and C.requests_per_minute > 0 then
    caps.requests = min(burst_of(C.requests_per_minute), caps.requests - n)
    caps.changed = true
  end
end

local function take_bytes(n)
  if n and n > 0 and read_caps() and C.bytes_per_minute > 0 then
    caps.bytes = caps.bytes - n
    caps.size = max(1000, caps.size * 0.95 + n * 0.05)
    caps.changed = true
  end
end

-- Quotas. A spent one holds the domain back until its window ends, or for good (until the operator sets another).
local function quota_is_spent(d)
  local x = extra(d)
  if x.quota == 0 then return false end
  if x.quota_s > 0 and now_s >= x.quota_from + x.quota_s then
    x.quota_from, x.quota_base, x.held = now_s, d.fetched, 0
  end
  if d.fetched - x.quota_base < x.quota then return false end
  x.held = x.quota_s > 0 and (x.quota_from + x.quota_s) * 1000 or FOR_GOOD
  return true
end

-- AutoThrottle's formula (scrapy.extensions.throttle), over what the whole fleet measures.
local function throttle(d, latency_ms, status)
  if not C.autothrottle then
    d.throttle = 0
    return
  end
  local target = latency_ms / C.autothrottle_target
  local delay = max(target, (d.throttle + target) / 2)
  delay = min(max(delay, d.floor), max(C.autothrottle_max_ms, d.floor))
  -- Error pages are small and quick: following them would speed us up just when the site is in trouble.
  if status ~= 200 and delay <= d.throttle then return end
  d.throttle = floor(delay)
end

-- Back-off. A lone 503 or a fetch without an answer is the trouble of its URL, whose retry waits; so many in a row
-- are the domain's. Where the site itself says that we are too much, one is enough.
local FAILURES_OF_DOMAIN = 3

-- Whether the domain is to be left alone for a while after such an end of a fetch. is_robots: robots.txt, of which
-- nothing but robots.txt depends: it has retries of its own (ack_robots), and says nothing of the pages.
local function is_in_trouble(d, status, retry_after_ms, is_robots)
  local asks_for_rest = status == 429 or (status == 503 and retry_after_ms >= 0)
  if asks_for_rest or (not is_robots and (status == 0 or status == 503)) then
    local x = extra(d)
    x.failures = min(x.failures + 1, 255)
    return asks_for_rest or x.failures >= FAILURES_OF_DOMAIN
  end
  return false
end

-- A page was served, or is not there: each time halves the wait, the second in a row ends it. Answers that say neither
-- (403, 500, 502 ...) are no failure here, and forgive none.
local function recover(d, status)
  local is_success = (status >= 200 and status < 400) or status == 404 or status == 410
  if not is_success or (d.step == 0 and d.tail == "" and not d.x) then return end
  local x = extra(d)
  d.step = x.failures > 0 and floor(d.step / 2) or 0
  x.failures = 0
end

-- What the site asks for, else a minute, doubling; 10 % more at random, so that domains on one host do not come
-- back together.
local function back_off(d, retry_after_ms)
  if d.step == 0 or now - d.back_until >= C.backoff_forgive_ms then
    d.step = C.backoff_start_ms
  else
    d.step = min(max(d.step * 2, C.backoff_start_ms), C.backoff_max_ms)
  end
  local wait = retry_after_ms >= 0 and min(retry_after_ms, C.backoff_max_ms) or d.step
  d.back_until = now + floor(wait * (1 + 0.1 * jitter))
end

-- An entry of the log of fetches (LOG, HOUR). Of the log's oldest entries, which are about to be cut
-- off, the sums of their hours remain: for each entry its fetch and the gap between it and the next one. An hour's field is
-- its number modulo the hours kept, so that it takes the place of one that is too old. "from": ms from which the sums
-- are complete, 0 = nothing was cut off before there were any. Only what is cut off is summed: a fetch is either in
-- the log or in a sum, and a domain with fewer fetches than the log holds pays nothing.
--@fields sum @HOUR at
local MOST_MS = 2147483647
local function sum_hours(name, entries, is_complete)
  local key, sums, numbers = P .. ":hours:" .. name, {}, {}
  local _, ended, delay = LOG.unpack(entries[1])
  call("HSETNX", key, "from", is_complete and "0" or whole(ended))
  for i = 2, #entries do
    local granted, next_ended, next_delay = LOG.unpack(entries[i])
    local hour = floor(ended / HOURS.MS)
    local sum = sums[hour]
    if not sum then
      local raw = call("HGET", key, whole(hour % HOURS.KEPT))
      sum = raw and { HOUR.unpack(raw) } or {}
      if sum.hour ~= hour then
        sum = { HOUR.list{ hour = hour, fetches = 0, least_gap = MOST_MS, delay = 0, too_soon = 0 } }
      end
      sums[hour], numbers[#numbers + 1] = sum, hour
    end
    local gap = granted - ended
    sum.fetches = sum.fetches + 1
    if gap < sum.least_gap then sum.least_gap, sum.delay = max(gap, -MOST_MS), delay end
    if gap < delay then sum.too_soon = sum.too_soon + 1 end
    ended, delay = next_ended, next_delay
  end
  for i = 1, #numbers do
    local sum = sums[numbers[i]]
    call("HSET", key, whole(sum.hour % HOURS.KEPT), HOUR.pack(sum))
  end
end

-- Cut off 64 entries at once, as that costs a fetch less than one each time; at most 256, where the limit was lowered.
local function cut_log(key, name, length, fetches)
  local n = min(length - C.log_entries, 256)
  sum_hours(name, call("LRANGE", key, "0", whole(n)), fetches <= length)
  call("LTRIM", key, whole(n), "-1")
end

-- The fetch of ``id`` ended: the gate opens ``delay`` from now. status 0: no answer; 65535: the worker never said.
local function open_gate(name, d, id, granted, latency_ms, status, retry_after_ms, is_robots, bytes)
  take_bytes(bytes)
  if status > 0 and status < 65535 then throttle(d, latency_ms, status) end  -- no answer has no latency
  if not is_robots then recover(d, status) end
  if is_in_trouble(d, status, retry_after_ms, is_robots) then
    back_off(d, retry_after_ms)
    -- A host that is too busy is so for all of its domains; one name that does not resolve is its own trouble.
    if d.flags >= GROUP and status > 0 then
      local x = extra(d)
      local g = touch_group(x.group)
      g.gate = max(g.gate, d.back_until)
    end
  end
  if status == 0 or status == 429 or status >= 500 then d.errors = d.errors + 1 end
  -- ``now`` is cut to whole ms: a millisecond more, or the gate would open up to one too early.
  local delay = delay_of(d)
  d.last = delay > 0 and now + 1 or now
  d.gate = max(d.gate, d.last + delay)
  d.fetched = d.fetched + 1
  if d.flags % 2 == AUTO then
    local x = extra(d)
    if status > 0 and status < 65535 then
      x.latency = floor(x.latency == 0 and latency_ms or x.latency * 0.9 + latency_ms * 0.1)
    end
    if d.fetched - x.judged_fetched >= JUDGE_EVERY then judge_class(name, d) end
  end
  local key = P .. ":log:" .. name
  local wait = min(max(d.gate, d.back_until) - d.last, 4294967295)
  local length = call("RPUSH", key,
    LOG.pack{ granted = granted, ended = now, delay = wait, status = status } .. id:sub(1, 8))
  if length > C.log_entries + 64 then cut_log(key, name, length, d.fetched) end
end
