-- Take URLs out of quarantine: queue them again with all their tries, or forget them.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] replay | drop    ARGV[2] cmsgpack list of url ids
--
-- Returns how many. A record that cannot be read cannot be replayed; its URL comes back when it is offered.
--@include _base
--@include _records
--@include _domain
local n = 0
local ids = cmsgpack.unpack(ARGV[2])
for i = 1, #ids do
  local id = ids[i]
  local raw = call("HGET", P .. ":quar", id)
  if raw then
    local _, domain_size, reason_size, at = QUARANTINE.unpack(raw)
    local name = raw:sub(at, at + domain_size - 1)
    local record = raw:sub(at + domain_size + reason_size)
    if ARGV[1] == "drop" then
      call("HDEL", P .. ":quar", id)
      n = n + 1
    else
      local d, h = touch(name), read_header(record)
      if d and h and call("HEXISTS", P .. ":r:" .. name, id) == 0 then
        h.tries, h.crashes, h.outcome, h.band = 0, 0, 0, 1
        local bucket, field = finished_place(id)
        call("HDEL", bucket, field)
        call("HDEL", P .. ":quar", id)
        call("HSET", P .. ":r:" .. name, id, write_header(h, record:sub(HEADER.size + 1)))
        enqueue(name, d, id, queue_score(h, d))
        n = n + 1
      end
    end
  end
end
count("quarantine_" .. ARGV[1], n)
save_domains()
write_state()
return n
