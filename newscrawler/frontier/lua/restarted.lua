-- Note which process of redis-server this is; a new one may have forgotten its predecessor's last second.
--
-- KEYS[1] {f3}      prefix of the shard
--   {f3}:state  hash  run: id of the process that was seen last; reborn: ms since the epoch, frontier's clock
-- ARGV[1] run id of this process
--
-- Returns 1 where it is a new one. From then on ready_at() keeps every domain's delay from that moment: a fetch that
-- was granted or told in the forgotten second could otherwise be followed by another at once.
--@include _base
local known = call("HGET", P .. ":state", "run")
if known == ARGV[1] then return 0 end
call("HSET", P .. ":state", "run", ARGV[1])
if not known then return 0 end
call("HSET", P .. ":state", "reborn", whole(now))
return 1
