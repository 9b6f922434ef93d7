-- One look's verdicts: opens and ends incidents, and queues what is to be told. Two monitors that
-- look at the same time tell of an incident once.
--
-- KEYS[1] {fleet}:incidents     hash  "<kind>/<subject>" -> JSON of the incident
-- KEYS[2] {fleet}:alerts        hash  id -> JSON of what is to be told and was not
-- KEYS[3] {fleet}:alerts:number the last id that was given
-- KEYS[4] {fleet}:alerts:log    list  JSON of the alerts, the newest first
-- ARGV[1] now, ms
-- ARGV[2] JSON of kinds: {kind: {for_ms, calm_ms, listed, severity, text, explain}}
-- ARGV[3] JSON list of what is bad: [{kind, subject, reason}], none: ''
-- ARGV[4] JSON list of "<kind>/<subject>" that are well, none: ''
-- ARGV[5] ms after which an incident that nothing is known of any more is ended
-- ARGV[6] how many alerts are kept in the log
--
-- Returns {ids of the alerts that were queued}.
local now = tonumber(ARGV[1])
local kinds = cjson.decode(ARGV[2])
local forget_ms = tonumber(ARGV[5])
local bad, well, seen = {}, {}, {}
if ARGV[3] ~= '' then bad = cjson.decode(ARGV[3]) end
if ARGV[4] ~= '' then
  for _, id in ipairs(cjson.decode(ARGV[4])) do well[id] = true end
end
local told = {raised = {}, recovered = {}}
local order = {}

local function tell(event, row)
  local of_event = told[event]
  if not of_event[row.kind] then
    of_event[row.kind] = {}
    order[#order + 1] = {event, row.kind}
  end
  local of_kind = of_event[row.kind]
  of_kind[#of_kind + 1] = {subject = row.subject, reason = row.reason, since_ms = row.since_ms}
end

for _, found in ipairs(bad) do
  local id = found.kind .. '/' .. found.subject
  local known = redis.call('HGET', KEYS[1], id)
  local row = known and cjson.decode(known)
    or {kind = found.kind, subject = found.subject, since_ms = now, told_ms = 0}
  row.reason, row.seen_ms, row.well_ms = found.reason, now, 0
  if row.told_ms == 0 and now - row.since_ms >= kinds[row.kind].for_ms then
    row.told_ms = now
    tell('raised', row)
  end
  redis.call('HSET', KEYS[1], id, cjson.encode(row))
  seen[id] = true
end

local every = redis.call('HGETALL', KEYS[1])
for at = 1, #every, 2 do
  local id, row = every[at], cjson.decode(every[at + 1])
  local kind = kinds[row.kind]
  local is_lost = now - row.seen_ms >= forget_ms
  if not seen[id] and (well[id] or is_lost or (kind and kind.listed)) then
    if row.well_ms == 0 then row.well_ms = now end
    if row.told_ms == 0 then
      redis.call('HDEL', KEYS[1], id)
    elseif is_lost or now - row.well_ms >= kind.calm_ms then
      redis.call('HDEL', KEYS[1], id)
      tell('recovered', row)
    else
      redis.call('HSET', KEYS[1], id, cjson.encode(row))
    end
  end
end

local ids = {}
for _, one in ipairs(order) do
  local event, name = one[1], one[2]
  local kind = kinds[name]
  local id = string.format('%d', redis.call('INCR', KEYS[3]))
  local alert = {
    id = id, event = 'fleet.' .. event, at_ms = now, kind = name, incidents = told[event][name],
    severity = kind and kind.severity or 'warning', text = kind and kind.text or name,
    explain = kind and kind.explain or '',
  }
  redis.call('HSET', KEYS[2], id, cjson.encode({alert = alert, tries = 0, next_ms = now}))
  redis.call('LPUSH', KEYS[4], cjson.encode(alert))
  redis.call('LTRIM', KEYS[4], 0, tonumber(ARGV[6]) - 1)
  ids[#ids + 1] = id
end
return ids
