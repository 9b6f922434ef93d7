-- Part: the gate of a domain: when the next fetch may begin; its quota; the fleet's caps.
-- Needs C.requests_per_minute, C.bytes_per_minute (this shard's share, 0 = none), C.autothrottle, C.autothrottle_start_ms, C.autothrottle_max_ms, C.autothrottle_target, C.backoff_start_ms,
-- C.backoff_max_ms, C.backoff_forgive_ms, C.log_entries.

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
  if raw then caps.at, caps.requests, caps.bytes, caps.size = struct.unpack(">dddd", raw) end
  local passed = max(0, now - caps.at) / 60000
  caps.requests = min(burst_of(r), caps.requests + passed * (r - burst_of(r) + 1))
  caps.bytes = min(b / 10, caps.bytes + passed * b * 0.9)
  caps.at = now
  return caps
end

function shared.save_caps()
  if caps and caps.changed then
    call("SET", P .. ":caps", struct.pack(">dddddd", caps.at, caps.requests, caps.bytes, caps.size,
      C.requests_per_minute, C.bytes_per_minute))
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

-- 429, 503, no answer: what the site asks for, else a minute, doubling; 10 % more at random, so that
-- domains on one host do not come back together.
local function back_off(d, retry_after_ms)
  if d.step == 0 or now - d.back_until >= C.backoff_forgive_ms then
    d.step = C.backoff_start_ms
  else
    d.step = min(d.step * 2, C.backoff_max_ms)
  end
  local wait = retry_after_ms >= 0 and min(retry_after_ms, C.backoff_max_ms) or d.step
  d.back_until = now + floor(wait * (1 + 0.1 * jitter))
end

-- The fetch of ``id`` ended: the gate opens ``delay`` from now. status 0: no answer; 65535: the worker never said.
local function open_gate(name, d, id, granted, latency_ms, status, retry_after_ms, bytes)
  take_bytes(bytes)
  if status ~= 65535 then throttle(d, latency_ms, status) end
  if status == 0 or status == 429 or status == 503 then
    back_off(d, retry_after_ms)
    -- A host that is too busy is so for all of its domains; one name that does not resolve is its own trouble.
    if d.flags >= GROUP and status > 0 then
      local g = touch_group(extra(d).group)
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
  local length = call("RPUSH", key, struct.pack(">ddI4I2c8", granted, now, wait, status, id))
  if length > C.log_entries + 64 then call("LTRIM", key, -C.log_entries, -1) end
end
