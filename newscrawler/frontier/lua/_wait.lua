-- Part: when something may be leased next, told without any domain being looked at.
-- Needs C.lease_ms.

-- Real ms from which leases may be reaped. While Redis was away no worker could renew: after a restart the living
-- ones have a whole lease to come back, or all that they hold would be fetched again.
local function reap_from()
  if S.reborn == 0 then return 0 end
  return real - (now - S.reborn) / (clock[1] and tonumber(clock[1]) or 1) + C.lease_ms
end

-- Real ms until a domain's time comes, and until a lease runs out; less than 0: since when. An hour = nothing is planned.
local function soonest()
  local factor = clock[1] and tonumber(clock[1]) or 1
  local domain, ending = 3600000, 3600000
  for class = 0, 2 do
    local first = call("ZRANGE", P .. ":ready:" .. class, "0", "0", "WITHSCORES")
    if first[2] then domain = min(domain, (tonumber(first[2]) - now) / factor) end
  end
  if call("EXISTS", P .. ":later") == 1 then domain = min(domain, 0) end  -- who gave way may come now
  local first = call("ZRANGE", P .. ":deadlines", "0", "0", "WITHSCORES")
  if first[2] then ending = max(tonumber(first[2]), reap_from()) - real end
  return domain, ending
end
