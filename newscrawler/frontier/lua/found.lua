-- Remember lists that a site announced (feeds, sitemaps, sections of its menu), a bounded number of each kind.
--
-- KEYS[1] {f3}               prefix of the shard
--   {f3}:found:<domain>  hash  kind and address -> when and where it was found (found.py)
--   {f3}:state           hash  layout: a caller with an old map of domains and shards may change nothing
-- ARGV[1] domain of the site's home   ARGV[2] cmsgpack list of kind, address, record, kind, address, record ...
-- ARGV[3] cmsgpack map: kind -> most addresses of it    ARGV[4] number of the layout that the caller knows
--
-- Returns a list of 1 (new) and 0 (known, or there are enough of its kind).
local call = redis.call
if ARGV[4] ~= (call("HGET", KEYS[1] .. ":state", "layout") or "0") then
  return redis.error_reply("LAYOUT of the shards has changed")
end
local key, rows, most = KEYS[1] .. ":found:" .. ARGV[1], cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3])
local known, counts = {}, {}
for _, field in ipairs(call("HKEYS", key)) do
  local kind = field:match("^%a+")
  known[field] = true
  counts[kind] = (counts[kind] or 0) + 1
end
local answer = {}
for i = 1, #rows, 3 do
  local kind, field = rows[i], rows[i] .. " " .. rows[i + 1]
  local is_new = not known[field] and (counts[kind] or 0) < (most[kind] or 0)
  if is_new then
    known[field], counts[kind] = true, (counts[kind] or 0) + 1
    call("HSET", key, field, rows[i + 2])
  end
  answer[#answer + 1] = is_new and 1 or 0
end
return answer
