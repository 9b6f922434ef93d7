-- One round of a worker: fetches that ended, visits that are done, new URLs to fetch. In this order, so that a
-- domain whose gate just closed is not handed out, and a crash repeats work but never loses any.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] worker id    ARGV[2] most URLs to hand out    ARGV[3] configuration, cmsgpack map
-- ARGV[4] fetches that ended, cmsgpack list (see fetched())    ARGV[5] acks, cmsgpack list (see A)
--
-- Returns {leases (flat, eight values each), wait ms, queued, waiting, leased, now, real, rejected ids,
-- letters of the acks' links (one string an ack)}.
-- The fencing number only grows; renew keeps it, fetched and ack must show it. All times are the server's.
--@include _base
local W, C = ARGV[1], cmsgpack.unpack(ARGV[3])
--@include _records
--@include _domain
--@include _seen
--@include _offer
--@include _gate
--@include _lease
--@include _ack
local rejected, letters = {}, {}
if #ARGV[4] > 1 then
  local list = cmsgpack.unpack(ARGV[4])
  for i = 1, #list do
    if not fetched(list[i]) then rejected[#rejected + 1] = list[i][1] end
  end
end
if #ARGV[5] > 1 then
  local list = cmsgpack.unpack(ARGV[5])
  for i = 1, #list do
    local is_taken, links = ack(list[i])
    letters[i] = links
    if not is_taken then
      rejected[#rejected + 1] = list[i][A.id]
      count("rejected")
    end
  end
end
reap(16)
place_domains()  -- what was freed just now may be handed out in this very call
local k = tonumber(ARGV[2])
local granted = k > 0 and lease(k) or {}
save_domains()
save_seen()
write_state()
local wait = #granted >= 8 * k and k > 0 and 0 or wait_ms()
return { granted, wait, S.queued, S.waiting, call("ZCARD", P .. ":deadlines"), now, real, rejected, letters }
