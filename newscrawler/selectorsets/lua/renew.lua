-- Keep a generation's lock, or give it back.
--
-- KEYS[1] lock   KEYS[2] zset of jobs   KEYS[3] hash of the domain
-- ARGV[1] token of the holder   ARGV[2] domain
-- ARGV[3] ms the lock lasts from now; '0' gives it back
-- ARGV[4] with ARGV[3] = '0': ms until the domain may be tried again; '' takes the job out
--
-- Returns 1, or 0 when the lock is another's. The time is the server's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[3] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[2])
  return 1
end
redis.call('DEL', KEYS[1])
if ARGV[4] == '' then
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('HDEL', KEYS[3], 'cool_until')
else
  redis.call('ZADD', KEYS[2], now + tonumber(ARGV[4]), ARGV[2])
  redis.call('HSET', KEYS[3], 'cool_until', now + tonumber(ARGV[4]))
end
return 1
