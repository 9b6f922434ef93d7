-- Mark the lease of a poison candidate as retried alone: it is about to be fetched, the only one of them that its
-- worker has in hand.
-- A worker that dies from now on until the ack counts against the URL (crash() in _lease.lua).
--
-- KEYS[1] {f3}      prefix of the shard
--   {f3}:lease      hash  url id -> fence and more    {f3}:deadlines  zset  url id -> ms, real time
-- ARGV[1] ms from now until the lease ends    ARGV[2] url id    ARGV[3] fence
--
-- Returns the new deadline, 0 where the lease is lost.
--@include _base
--@include _records
local e = read_lease(ARGV[2])
if not e or e.fence ~= tonumber(ARGV[3]) then return 0 end
if e.state < RETRIED_ALONE then e.state = e.state + RETRIED_ALONE end
e.changed = true
local deadline = real + tonumber(ARGV[1])
new_deadlines[1], new_deadlines[2] = whole(deadline), ARGV[2]
save_leases()
return deadline
