-- Add what the fleet has done since the last look to the point of the running minute. Any worker
-- may call it as often as it likes: the counters are of the whole fleet, and one look in a while
-- does something, so that many workers count nothing twice.
--
-- KEYS[1] {fleet}:minutes       hash  slot of a ring (minute mod ARGV[3]) -> JSON of the point
-- KEYS[2] {fleet}:minutes:base  JSON  {"at": ms of the last look, "counts": what it found}
-- KEYS[3] {fleet}:totals        hash  counters of the fleet
-- KEYS[4] {fleet}:workers       zset  worker id -> ms of its last beat; {fleet}:worker:<id> is read
-- ARGV[1] ms since the epoch, '' = this server's clock
-- ARGV[2] ms that lie between two looks at least
-- ARGV[3] points of the ring
-- ARGV[4] JSON of what is known of the frontier: {"q": queued, "w": waiting}
-- ARGV[5] JSON: {"p": counter, ...} what a point counts, beside errors and times
-- ARGV[6] prefix of the counters of visits by reason   ARGV[7] JSON: {label or outcome: true} of those
--         that are no errors
-- ARGV[8] prefix of the buckets of a histogram of times
-- ARGV[9] reasons that a point tells apart; the others are summed as "other"
-- ARGV[10] workers that are looked at
--
-- A point: {m minute since the epoch, s ms that it covers, k workers, f fetches open, q, w,
-- p, n, u: as ARGV[5] says, e: {reason: visits}, l: {bucket: articles}}
--
-- Returns 1, or 0 where it was too soon.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local most, every = 60000, tonumber(ARGV[2])
local base = cjson.decode(redis.call('GET', KEYS[2]) or '{"at":0}')
local elapsed = now - base.at
-- A clock that was set back by more than a minute begins anew, as does a base that is not there.
local anew = base.at == 0 or elapsed < -most
if not anew and elapsed < every then return 0 end

local names, harmless = cjson.decode(ARGV[5]), cjson.decode(ARGV[7])
local wanted = {}
for short, name in pairs(names) do wanted[name] = short end
local counts, found = {}, redis.call('HGETALL', KEYS[3])
for i = 1, #found, 2 do
  local name = found[i]
  if wanted[name] or name:sub(1, #ARGV[6]) == ARGV[6] or name:sub(1, #ARGV[8]) == ARGV[8] then
    counts[name] = tonumber(found[i + 1])
  end
end

local minute = math.floor(now / 60000)
local slot = tostring(minute % tonumber(ARGV[3]))
local text = redis.call('HGET', KEYS[1], slot)
local point = text and cjson.decode(text) or {}
if point.m ~= minute then point = {m = minute, s = 0, k = 0, f = 0, p = 0, n = 0, u = 0, e = {}, l = {}} end

local function add(short, many) point[short] = (point[short] or 0) + many end
local function reason(label, many)
  local there = 0
  for _ in pairs(point.e) do there = there + 1 end
  if not point.e[label] and there >= tonumber(ARGV[9]) then label = 'other' end
  point.e[label] = (point.e[label] or 0) + many
end
if not anew then
  local any = elapsed <= most
  for name, count in pairs(counts) do
    local before = base.counts[name] or 0
    local more = count >= before and count - before or count -- a counter that began anew
    if more > 0 then
      any = true
      local label = name:sub(1, #ARGV[6]) == ARGV[6] and name:sub(#ARGV[6] + 1)
      if wanted[name] then
        add(wanted[name], more)
      elseif not label then
        local bucket = name:sub(#ARGV[8] + 1)
        if bucket ~= 'ms' then point.l[bucket] = (point.l[bucket] or 0) + more end
      elseif not harmless[label] and not harmless[label:match('^[^(]*')] then
        reason(label:sub(1, 32), more)
      end
    end
  end
  -- After a gap (nobody looked) it is not known how the work lay in it: as if it was done in a minute.
  if any then point.s = point.s + math.min(elapsed, most) end
end

local workers, fetches = 0, 0
for _, id in ipairs(redis.call('ZREVRANGE', KEYS[4], 0, tonumber(ARGV[10]) - 1)) do
  local beat = redis.call('GET', '{fleet}:worker:' .. id)
  if beat then
    workers = workers + 1
    fetches = fetches + (cjson.decode(beat).in_flight or 0)
  end
end
point.k, point.f = math.max(point.k, workers), math.max(point.f, fetches)
for short, value in pairs(cjson.decode(ARGV[4])) do point[short] = value end

redis.call('HSET', KEYS[1], slot, cjson.encode(point))
redis.call('SET', KEYS[2], cjson.encode({at = now, counts = counts}))
return 1
