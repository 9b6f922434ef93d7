-- Return leases: unfetched ones whose worker has no time for them, or those of a worker that died.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] "unfetched" or "lost"
-- ARGV[2] cmsgpack list of id, fence, id, fence ...
--
-- Returns how many were still held under these fencing numbers.
--@include _base
--@config
local W = ""
--@include _records
--@include _domain
--@include _gate
--@include _wait
--@include _lease
local list = cmsgpack.unpack(ARGV[2])
local n = 0
for i = 1, #list, 2 do
  local e = read_lease(list[i])
  if e and e.fence == list[i + 1] then
    return_lease(list[i], e, ARGV[1])
    n = n + 1
  end
end
count("given_back", n)
save_domains()
write_state()
return n
