-- Want URLs for a bounded crawl: they are queued, before what their domain has of older news, whether their next visit
-- is due or not; who leases one is told which crawl wants it.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] cmsgpack list of {domain, {packed link, ...}}, as of add.lua, with the place in the queue
-- ARGV[2] cmsgpack map of url id -> finished record that the archive has, or "" where it was not asked
-- ARGV[3] the crawl: id:level:levels    ARGV[4] a page that was read since this second need not be fetched, "" = all are
--
-- Returns one status a link, in order: those of offer_all(), and q it was queued or waited and is wanted now, r a failed
-- visit is repeated when that is due, l it is leased without the crawl's mark, w it was read lately.
--@include _base
--@config
--@include _records
--@include _domain
--@include _seen
--@include _offer
--@include _want
local leases_of = P .. ":lease"
if #ARGV[2] > 0 then shared.archived = cmsgpack.unpack(ARGV[2]) end
shared.fresh_from = tonumber(ARGV[4])

local function mark(id, origin)
  local known = call("HGET", want_key, id)
  if known and known:find(" " .. ARGV[3]:match("^[^:]+") .. ":", 1, true) then return end
  known = (known or origin) .. " " .. ARGV[3]
  if #known < 256 then call("HSET", want_key, id, known) end  -- else the crawl asks again later
end

-- A URL that is queued, waiting or leased.
local function raise(name, id, raw, link)
  local d, h = touch(name), read_header(raw)
  if not d then return "o" end
  if d.enabled == 0 then return "x" end
  if not h then return "s" end
  if call("HEXISTS", leases_of, id) == 1 then return "l" end
  local origin = "o" .. whole(h.band) .. ":" .. whole(h.score)
  if call("ZSCORE", P .. ":due:" .. name, id) then
    if not is_waiting(h.outcome) then
      mark(id, origin)
      return "r"
    end
    if is_fresh(h.outcome, h.last) then return "w" end
  end
  local l = { LINK.unpack(link) }
  if not take_out(name, d, id, h) then return "l" end
  if h.band > l.band or (h.band == l.band and h.score > l.score) then h.band, h.score = l.band, l.score end
  call("HSET", P .. ":r:" .. name, id, write_header(h, raw:sub(HEADER.size + 1)))
  enqueue(name, d, id, queue_score(h, d))
  mark(id, origin)
  return "q"
end

local statuses, groups = {}, cmsgpack.unpack(ARGV[1])
for g = 1, #groups do
  local name, links = groups[g][1], groups[g][2]
  for i = 1, #links do
    local id = links[i]:sub(1, LINK.at.flags - 1)
    local raw = call("HGET", P .. ":r:" .. name, id)
    local status
    if raw then
      status = raise(name, id, raw, links[i])
    else
      local origin = call("HEXISTS", want_key, id) == 1 and "" or "n"
      status = offer_all({ { name, { links[i] } } })
      if status == "a" then mark(id, origin) end
    end
    statuses[#statuses + 1] = status
  end
end
save_domains()
save_seen()
write_state()
return table.concat(statuses)
