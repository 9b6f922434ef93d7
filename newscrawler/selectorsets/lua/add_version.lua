-- Store a version, unless it comes from a generation that was overtaken.
--
-- KEYS[1] hash of the domain (field fence)   KEYS[2] hash version -> JSON
-- ARGV[1] version   ARGV[2] JSON   ARGV[3] fencing number of the generation, '' = not from one
--
-- Returns the newest fencing number when that is larger than ARGV[3] and nothing was written, else 0.
local newest = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if ARGV[3] ~= '' and tonumber(ARGV[3]) < newest then
  return newest
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 0
