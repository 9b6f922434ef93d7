-- Write what is said of the layout of the shards, while its writer still holds the lock.
--
-- KEYS[1] {frontier}
--   {frontier}:meta     hash    schema, shards, before, after, cursor, epoch, phase ... (layout.py)
--   {frontier}:reshard  string  token of the only `scrapy frontier reshard` that may write; expires
-- ARGV[1] token    ARGV[2] ms that the lock lasts from now    ARGV[3] cmsgpack list of field, value, field, value ...
--
-- Returns 1, or 0 where the lock is another's.
local lock = KEYS[1] .. ":reshard"
if redis.call("GET", lock) ~= ARGV[1] then return 0 end
redis.call("PEXPIRE", lock, ARGV[2])
local fields = cmsgpack.unpack(ARGV[3])
if #fields > 0 then redis.call("HSET", KEYS[1] .. ":meta", unpack(fields)) end
return 1
