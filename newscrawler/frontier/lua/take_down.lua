-- Block URLs for good and take what is known of them out of the queue, or lift the block.
--
-- KEYS[1] {f3}      prefix of the shard; {f3}:taken is the set of blocked url ids, which _offer.lua and _ack.lua ask
-- ARGV[1] block | lift    ARGV[2] cmsgpack list of domains that may have them    ARGV[3] cmsgpack list of url ids
--
-- Returns how many left the queue. A leased URL stays until its lease ends: what was read of it is dropped then, and
-- neither _ack.lua nor, where its worker gave it back or died, _lease.lua queues it again.
--@include _base
--@include _records
--@include _domain
--@include _want
local names, ids = cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3])
local dropped = 0
for i = 1, #ids do
  local id = ids[i]
  if ARGV[1] == "lift" then
    call("SREM", P .. ":taken", id)
  else
    call("SADD", P .. ":taken", id)
    call("HDEL", P .. ":quar", id)
    call("HDEL", want_key, id)
    local bucket, field = finished_place(id)
    call("HDEL", bucket, field)
    for k = 1, #names do
      local key = P .. ":r:" .. names[k]
      local raw = call("HGET", key, id)
      local d, h = touch(names[k]), raw and read_header(raw)
      if d and h and call("HEXISTS", P .. ":lease", id) == 0 and take_out(names[k], d, id, h) then
        call("HDEL", key, id)
        dropped = dropped + 1
      end
    end
  end
end
save_domains()
write_state()
return dropped
