-- One round of a worker: fetches that ended, visits that are done, new URLs to fetch. In this order, so that a
-- domain whose gate just closed is not granted, and a crash repeats work but never loses any.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] worker id    ARGV[2] most URLs to grant
-- ARGV[3] fetches that ended, one behind the other (FETCHED of schema.py)    ARGV[4] acks, cmsgpack list of strings (ACK)
-- ARGV[5] whether any of the acks has links, 1 or 0
--
-- Returns {leases (strings, GRANT), when they run out, wait ms, queued, waiting, leased, now, real, rejected ids,
-- statuses of the acks' links (one string an ack; with a ? among them the ack was not taken and comes again),
-- buckets of finished records that are over their share}.
-- The fencing number only grows; renew keeps it, fetched and ack must show it. All times are the server's.
--@include _base
--@config
--@include _wait
local k = tonumber(ARGV[2])
-- Most calls of a worker that waits for a gate find nothing to do: they need none of the functions below, which cost
-- more to make than such a call has to do.
if #ARGV[3] + #ARGV[4] < 2 and not C.has_caps then
  local domain, ending = soonest()
  if ending > 0 and (k == 0 or domain > 0) then
    return { {}, 0, max(0, math.ceil(min(domain, ending))), S.queued, S.waiting, call("ZCARD", P .. ":deadlines"), now, real,
      {}, {}, 0 }
  end
end
local W = ARGV[1]
--@include _records
--@include _domain
--@include _gate
--@include _fetched
--@include _late
--@include _lease
local ended, last_ended = ARGV[3], #ARGV[3]
local acks = #ARGV[4] > 1 and cmsgpack.unpack(ARGV[4]) or {}

-- The leases and domains of what ended are read with two commands.
local function read_ahead()
  local ids, names, is_named = {}, {}, {}
  for at = 1, last_ended, FETCHED.size do ids[#ids + 1] = ended:sub(at, at + FETCHED.at.fence - 2) end
  for i = 1, #acks do ids[#ids + 1] = acks[i]:sub(1, ACK.at.fence - 1) end
  read_leases(ids)
  for i = 1, #ids do
    local e = read_lease(ids[i])
    if e and not is_named[e.domain] then
      names[#names + 1] = e.domain
      is_named[e.domain] = true
    end
  end
  read_domains(names)
end

local rejected, statuses = {}, {}
if last_ended / FETCHED.size + #acks > 1 then read_ahead() end
for at = 1, last_ended, FETCHED.size do
  if not fetched(ended, at) then rejected[#rejected + 1] = ended:sub(at, at + FETCHED.at.fence - 2) end
end
-- Making the functions of a part takes a tenth of a millisecond: these only where they are needed.
if #acks > 0 then
  if ARGV[5] == "1" then
--@include _seen
--@include _offer
    shared.offer_all, shared.save_seen = offer_all, save_seen
  end
--@include _ack
  for i = 1, #acks do
    local is_taken, links = ack(acks[i])
    statuses[i] = links
    if is_taken == false then
      rejected[#rejected + 1] = acks[i]:sub(1, ACK.at.fence - 1)
      count("rejected")
    end
  end
  if shared.save_seen then shared.save_seen() end
end
reap(16)
save_leases()
place_domains()  -- what was freed just now may be granted in this very call
local granted = k > 0 and lease(k) or {}
save_domains()
write_state()
local wait = 0
if #granted < k or k == 0 then
  local domain, ending = soonest()
  local _, cap_wait = cap_room(1)
  wait = max(0, math.ceil(max(min(domain, ending), cap_wait)))
end
return { granted, lease_end, wait, S.queued, S.waiting, call("ZCARD", P .. ":deadlines"), now, real, rejected, statuses, shared.marked }
