-- Begin the generation of a domain's set: one at a time in the fleet, with a pause after each failure.
--
-- KEYS[1] lock (string)   KEYS[2] hash of the domain   KEYS[3] fencing counter   KEYS[4] zset of jobs
-- ARGV[1] random token of this holder   ARGV[2] ms the lock lasts without renewal   ARGV[3] domain
-- ARGV[4] '1' = an operator asks: the pause and the states below are not looked at
--
-- Returns {'go', fencing number} or {'wait', ms} or {'deny', reason}. The time is the server's.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[4] ~= '1' then
  if redis.call('HGET', KEYS[2], 'disabled') == '1' then return {'deny', 'disabled'} end
  if redis.call('HGET', KEYS[2], 'pinned') == '1' then return {'deny', 'pinned'} end
  if redis.call('HGET', KEYS[2], 'state') == 'await_admin' then return {'deny', 'await_admin'} end
  local cool = tonumber(redis.call('HGET', KEYS[2], 'cool_until') or '0')
  if cool > now then return {'wait', cool - now} end
end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {'wait', math.max(1, redis.call('PTTL', KEYS[1]))}
end
local fence = redis.call('INCR', KEYS[3])
redis.call('HSET', KEYS[2], 'fence', fence)
-- Out of sight of other workers until the lock would have run out: then a dead holder's job comes back.
redis.call('ZADD', KEYS[4], now + tonumber(ARGV[2]), ARGV[3])
return {'go', fence}
