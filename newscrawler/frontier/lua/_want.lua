-- Part: what bounded crawls want. {f}:want is url id -> "n" (the crawl brought it) or "o<band>:<score>" (it was known,
-- and had this place), then " <crawl>:<level>:<levels>" of each crawl.
local want_key = P .. ":want"

-- Out of its domain's queue or of what waits there; false: it is in neither, so it is leased.
local function take_out(name, d, id, h)
  if call("ZREM", P .. ":q:" .. name, id) == 1 then
    d.queued = d.queued - 1
    S.queued = S.queued - 1
    return true
  end
  local key = P .. ":due:" .. name
  if call("ZREM", key, id) == 0 then return false end
  d.due = d.due - 1
  if is_waiting(h.outcome) then S.waiting = S.waiting - 1 else S.queued = S.queued - 1 end
  local first = call("ZRANGE", key, "0", "0", "WITHSCORES")
  d.next_due = first[2] and tonumber(first[2]) or 0
  return true
end
