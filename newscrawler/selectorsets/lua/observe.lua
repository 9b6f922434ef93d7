-- Take in what pages said about the sets that they were read with; say which fields began to fail.
--
-- KEYS[1..n]     hash per domain: v (version that is watched), c (JSON of the counters), alarm (JSON), ready
-- KEYS[n+1..2n]  hash per domain: url -> JSON {ref, fp, ms, t} of failing pages, "ok:<slot>" -> JSON {url, ref, ms}
-- ARGV[1..n]     JSON per domain: {v = version, rows = {{template, seen, ok, count, url, ref, fp, ms}...}}, in the
--                order of the pages; seen and ok are bits of title 1, content 2, published 4, authors 8; template "!"
--                is a page on which the generic chain found no article either (block page, consent, outage)
-- ARGV[n+1]      failing pages after which a regeneration has enough of them   ARGV[n+2] most that are kept
--
-- Returns JSON {{i = n-th domain, what = drift|blocked|open|ready, template, field, onset, fails, since (drift only)}...}.
--
-- Page (1954): S = max(0, S + w), w = ln(p1/p0) for a failure, ln((1-p1)/(1-p0)) for a success; p0 is the share
-- that always failed plus two standard errors, learnt while S is 0, so that a drift never becomes normal by itself.
-- since: the first failure after the last CALM good pages in a row, a week ago at most, for the repair: of a change that
-- comes to few pages first, S falls back to 0 between them, and onset is after the first of them.
-- tests/unit/selectorsets/cusum.py is the same in Python; a test compares the two.
local n = #KEYS / 2
local need, most = tonumber(ARGV[n + 1]), tonumber(ARGV[n + 2])
local FIELDS = {{'title', 1}, {'content', 2}, {'published', 4}, {'authors', 8}}
local OK_SLOTS = 8
local CALM, LONGEST_MS = 30, 7 * 86400000
local events = {}

local function counter(all, key, field)
  if not all[key] then
    local k, seen = 1, 20
    if field == 'published' or field == 'authors' then k, seen = 3, 12 end
    all[key] = {s = 0, n = seen, k = k, pn = 0, pk = 0, at = 0, f = 0}
  end
  return all[key]
end

-- True when the failures are no longer what they always were.
local function step(c, failed, count, ms)
  local base = c.k / c.n
  local p0 = math.max(0.05, base + 2 * math.sqrt(base * (1 - base) / c.n))
  if p0 > 0.45 then
    if base > 0.45 then p0 = 2 else p0 = 0.45 end
  end
  if failed then
    if not c.first or (c.g or 0) >= CALM then c.first = ms end
    c.g = 0
  else
    c.g = math.min((c.g or 0) + count, CALM)
  end
  c.pn = c.pn + count
  if failed then c.pk = c.pk + count end
  local alarm = false
  if p0 < 1 then
    local p1 = math.min(0.95, p0 + 0.45)
    local w = math.log(p1 / p0)
    if failed then
      if c.s == 0 then c.at, c.f = ms, 0 end
      c.s, c.f = c.s + w * count, c.f + count
    else
      c.s = math.max(0, c.s + math.log((1 - p1) / (1 - p0)) * count)
    end
    local least = 7
    if base > 0.15 then least = 9 end
    if base > 0.3 then least = 12 end
    if c.n < 30 then least = 7 end
    local limit = (least - 0.5) * w
    alarm = c.s > limit
    c.s = math.min(c.s, limit + w)  -- or the end of a long storm would be seen as late as it was long
  end
  if c.s == 0 then
    c.n, c.k, c.pn, c.pk = c.n + c.pn, c.k + c.pk, 0, 0
    if c.n > 2000 then c.n, c.k = c.n / 2, c.k / 2 end
  end
  return alarm
end

-- A page of equal text under another address is no article: a wall that answers for all of them.
local function is_wall(key, url, fp)
  if fp == '' then return false end
  local all = redis.call('HGETALL', key)
  for j = 1, #all, 2 do
    if all[j] ~= url and string.sub(all[j], 1, 3) ~= 'ok:' then
      local old = cjson.decode(all[j + 1])
      if old.fp == fp then return true end
    end
  end
  return false
end

for i = 1, n do
  local watch, pages = KEYS[i], KEYS[n + i]
  local batch = cjson.decode(ARGV[i])
  local version = redis.call('HGET', watch, 'v')
  if not version then
    version = tostring(batch.v)
    redis.call('HSET', watch, 'v', version)
  end
  if version == tostring(batch.v) then
    local raw = redis.call('HGET', watch, 'c')
    local all = raw and cjson.decode(raw) or {}
    local alarmed = redis.call('HEXISTS', watch, 'alarm') == 1
    local failing = 0
    for _, name in ipairs(redis.call('HKEYS', pages)) do
      if string.sub(name, 1, 3) ~= 'ok:' then failing = failing + 1 end
    end
    for _, row in ipairs(batch.rows) do
      local template, seen, ok, count, url, ref, fp, ms = unpack(row)
      local wall = template == '!'
      local known = false
      if not wall and seen ~= ok then
        known = redis.call('HEXISTS', pages, url) == 1
        wall = is_wall(pages, url, fp)
      end
      local b = counter(all, '!|page', 'page')
      local was_open = b.open
      if wall then
        if step(b, true, count, ms) and not b.open then
          b.open = true
          events[#events + 1] = {i = i, what = 'blocked', template = '', field = 'page', onset = b.at, fails = b.f}
        end
      elseif seen == ok or not known then
        step(b, false, count, ms)
        if b.s == 0 and was_open then
          b.open = nil
          events[#events + 1] = {i = i, what = 'open', template = '', field = 'page', onset = ms, fails = 0}
        end
        if seen ~= ok and ref ~= '' and failing < most then
          failing = failing + 1
          redis.call('HSET', pages, url, cjson.encode({ref = ref, fp = fp, ms = ms, t = template}))
        elseif seen == ok and ref ~= '' then
          local slot = (b.slot or 0) % OK_SLOTS
          b.slot = slot + 1
          redis.call('HSET', pages, 'ok:' .. slot, cjson.encode({url = url, ref = ref, ms = ms}))
        end
        if not alarmed then
          for _, field in ipairs(FIELDS) do
            if bit.band(seen, field[2]) ~= 0 then
              local c = counter(all, template .. '|' .. field[1], field[1])
              local failed = bit.band(ok, field[2]) == 0
              if step(c, failed, count, ms) and not alarmed and b.s < 4 then
                alarmed = true
                local event = {i = i, what = 'drift', template = template, field = field[1], onset = c.at, fails = c.f}
                event.since = math.max(c.first, ms - LONGEST_MS)
                events[#events + 1] = event
                redis.call('HSET', watch, 'alarm', cjson.encode(event))
              end
            end
          end
        end
      end
    end
    if not alarmed then
      -- Failures of long ago are noise, not what a coming regeneration should learn from.
      local oldest = nil
      for _, c in pairs(all) do
        if c.s > 0 and (oldest == nil or c.at < oldest) then oldest = c.at end
      end
      local stored = redis.call('HGETALL', pages)
      for j = 1, #stored, 2 do
        if string.sub(stored[j], 1, 3) ~= 'ok:' then
          if oldest == nil or cjson.decode(stored[j + 1]).ms < oldest then redis.call('HDEL', pages, stored[j]) end
        end
      end
    elseif redis.call('HEXISTS', watch, 'ready') == 0 then
      if failing >= need then
        redis.call('HSET', watch, 'ready', '1')
        events[#events + 1] = {i = i, what = 'ready', template = '', field = '', onset = 0, fails = failing}
      end
    end
    redis.call('HSET', watch, 'c', cjson.encode(all))
  end
end
if #events == 0 then return '' end
return cjson.encode(events)
