-- Lead the fleet's watch, or go on leading it: one process at a time.
--
-- KEYS[1] {fleet}:leader       "<token> <name>" of the leader; expires when it is not renewed
-- KEYS[2] {fleet}:leader:token the last token that was given; it only grows
-- ARGV[1] what the caller was answered while it led, '' = it does not lead
-- ARGV[2] name of the caller, '' = only renew: what it is about to do rests on a look from before
-- ARGV[3] ms the lead lasts from now; '0' gives it up
--
-- Returns "<token> <name>" of the leader now, '' = nobody. The whole text is the fencing token: a Redis
-- that was killed may forget its last second, and would give the same number twice.
local held = redis.call('GET', KEYS[1])
if ARGV[3] == '0' then
  if held == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return ''
  end
  return held or ''
end
if held and held == ARGV[1] then
  -- SET, as a Redis that is full takes PEXPIRE: who leads one that refuses writes is to hear of it.
  redis.call('SET', KEYS[1], held, 'PX', ARGV[3])
elseif not held and ARGV[2] ~= '' then
  held = string.format('%d', redis.call('INCR', KEYS[2])) .. ' ' .. ARGV[2]
  redis.call('SET', KEYS[1], held, 'PX', ARGV[3])
end
return held or ''
