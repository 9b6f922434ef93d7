-- A page of a bounded crawl has ended: it is counted once, and the links on it become pages of the crawl, as far as its
-- bounds allow. With the last open page the crawl ends.
--
-- KEYS[1] {crawls}
--   {crawls}:c:<id>  hash  its facts    {crawls}:u:<id>  hash  url id -> state, level, kind, tries, outcome, url
--   {crawls}:o:<id>  zset  url id that is still to be fetched -> ms of the next look    {crawls}:running  set  ids
-- ARGV[1] id of the crawl    ARGV[2] url id of the page    ARGV[3] its outcome    ARGV[4] counters, apart by blanks
-- ARGV[5] 1: it was never asked of the site, so another may take its place    ARGV[6] level of the links
-- ARGV[7] cmsgpack list of url id, kind, url, url id, kind, url ...    ARGV[8] ms since the epoch
-- ARGV[9] ms until the next look at a link    ARGV[10] ms that a crawl is kept when it has ended
--
-- Returns the url ids of the links that were taken.
local call, P, id = redis.call, KEYS[1], ARGV[1]
local facts, urls, open = P .. ":c:" .. id, P .. ":u:" .. id, P .. ":o:" .. id
local now = tonumber(ARGV[8])
local known = call("HMGET", facts, "state", "pages", "max_pages", "levels")
if not known[1] then return {} end
local is_running, pages, most = known[1] == "running", tonumber(known[2]), tonumber(known[3])
local before = pages

local entry = call("HGET", urls, ARGV[2])
if entry and entry:sub(1, 1) == "o" then
  local level, kind, tries, url = entry:match("^o\t(%d+)\t(%w+)\t(%d+)\t[^\t]*\t(.*)$")
  call("HSET", urls, ARGV[2], "d\t" .. level .. "\t" .. kind .. "\t" .. tries .. "\t" .. ARGV[3] .. "\t" .. url)
  call("ZREM", open, ARGV[2])
  for name in ARGV[4]:gmatch("%S+") do call("HINCRBY", facts, name, 1) end
  if ARGV[5] == "1" then pages = pages - 1 end
end

local taken, left_out = {}, 0
local links = is_running and cmsgpack.unpack(ARGV[7]) or {}
for i = 1, #links, 3 do
  if call("HEXISTS", urls, links[i]) == 0 then
    if pages < most then
      pages = pages + 1
      call("HSET", urls, links[i], "o\t" .. ARGV[6] .. "\t" .. links[i + 1] .. "\t0\t\t" .. links[i + 2])
      call("ZADD", open, now + tonumber(ARGV[9]), links[i])
      taken[#taken + 1] = links[i]
    else
      left_out = left_out + 1
    end
  end
end
if pages ~= before then call("HSET", facts, "pages", pages) end
if left_out > 0 then call("HINCRBY", facts, "left_out", left_out) end

if call("ZCARD", open) == 0 and call("SISMEMBER", P .. ":running", id) == 1 then
  if is_running then
    local seen = call("HMGET", facts, "fetched", "fresh", "refused", "left_out")
    local state, why = "finished", "every page within " .. known[4] .. " level(s) was fetched"
    if tonumber(seen[1] or 0) + tonumber(seen[2] or 0) == 0 then
      state = tonumber(seen[3] or 0) > 0 and "refused" or "failed"
      why = "the start was not fetched: " .. ARGV[3]
    elseif tonumber(seen[4] or 0) > 0 then
      why = "max_pages (" .. known[3] .. ") was reached"
    end
    call("HSET", facts, "state", state, "why", why, "ended_ms", ARGV[8])
  end
  call("SREM", P .. ":running", id)
  for _, key in ipairs({ facts, urls }) do call("PEXPIRE", key, ARGV[10]) end
end
return taken
