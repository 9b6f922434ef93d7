-- Whether the shard is empty and all of its domains are on loopback: what a simulated clock needs.
--
-- KEYS[1] {f3}      prefix of the shard
--   {f3}:state  hash  queued, waiting    {f3}:deadlines  zset  leases    {f3}:public  set  domains not on loopback
--
-- Returns {queued + waiting, leased, domains not on loopback}.
--@include _base
return { S.queued + S.waiting, call("ZCARD", P .. ":deadlines"), call("SCARD", P .. ":public") }
