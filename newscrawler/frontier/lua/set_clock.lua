-- Bend time for a simulated day: now = TIME * factor + offset. Checks again what free.lua says.
--
-- KEYS[1] {f3}      prefix of the shard
--   {f3}:clock  hash  factor, offset
-- ARGV[1] factor    ARGV[2] offset ms
--
-- Returns 1, or 0 where the shard is not empty or a domain is not on loopback.
--@include _base
if S.queued + S.waiting + call("ZCARD", P .. ":deadlines") + call("SCARD", P .. ":public") > 0 then return 0 end
if tonumber(ARGV[1]) == 1 and tonumber(ARGV[2]) == 0 then
  call("DEL", P .. ":clock")
else
  call("HSET", P .. ":clock", "factor", ARGV[1], "offset", ARGV[2])
end
return 1
