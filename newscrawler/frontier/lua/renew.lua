-- Push the deadline of leases whose page is still at work.
--
-- KEYS[1] {f3}      prefix of the shard
--   {f3}:lease      hash  url id -> fence and more    {f3}:deadlines  zset  url id -> ms, real time
-- ARGV[1] ms from now    ARGV[2] cmsgpack list of id, fence, id, fence ...
--
-- Returns {new deadline, ids that are lost}. The fencing number stays.
--@include _base
--@include _records
local list = cmsgpack.unpack(ARGV[2])
local deadline = real + tonumber(ARGV[1])
local lost = {}
for i = 1, #list, 2 do
  local e = read_lease(list[i])
  if e and e.fence == list[i + 1] then
    call("ZADD", P .. ":deadlines", deadline, list[i])
  else
    lost[#lost + 1] = list[i]
  end
end
return { deadline, lost }
