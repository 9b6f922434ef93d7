-- Take finished records out of Redis that the archive has by now.
--
-- KEYS[1] {f3}      prefix of the shard
--   {f3}:f:<bucket>  hash  rest of the url id -> finished record    {f3}:s:<gen>:<n>  sets  the seen filter
-- ARGV[1] cmsgpack list of bucket, field, record, bucket, field, record ...
--
-- Returns how many went. One that changed meanwhile stays. The archive is asked only for what the filter knows: so each
-- is written into its newest generation, and known for a whole window more.
--@include _base
--@config
--@include _seen
local list = cmsgpack.unpack(ARGV[1])
local n = 0
for i = 1, #list, 3 do
  local bucket, field, record = list[i], list[i + 1], list[i + 2]
  local key = P .. ":f:" .. bucket
  if call("HGET", key, field) == record then
    call("HDEL", key, field)
    add_seen(string.char(floor(bucket / 64)) .. field)
    n = n + 1
  end
end
count("archived", n)
save_seen()
write_state()
return n
