-- Part: the gate of a domain: when the next fetch may begin.
-- Needs C.autothrottle, C.autothrottle_start_ms, C.autothrottle_max_ms, C.autothrottle_target, C.backoff_start_ms,
-- C.backoff_max_ms, C.backoff_forgive_ms, C.log_entries.

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

-- The fetch ended: the gate opens ``delay`` from now. status 0: no answer; 65535: the worker never said.
local function open_gate(name, d, granted, latency_ms, status, retry_after_ms)
  if status ~= 65535 then throttle(d, latency_ms, status) end
  if status == 0 or status == 429 or status == 503 then
    back_off(d, retry_after_ms)
  end
  if status == 0 or status == 429 or status >= 500 then d.errors = d.errors + 1 end
  -- ``now`` is cut to whole ms: a millisecond more, or the gate would open up to one too early.
  d.last = delay_of(d) > 0 and now + 1 or now
  d.gate = max(d.gate, d.last + delay_of(d))
  d.fetched = d.fetched + 1
  local key = P .. ":log:" .. name
  local wait = min(max(d.gate, d.back_until) - d.last, 4294967295)
  local length = call("RPUSH", key, struct.pack(">ddI4I2", granted, now, wait, status))
  if length > C.log_entries + 64 then call("LTRIM", key, -C.log_entries, -1) end
end
