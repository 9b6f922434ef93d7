-- Which of these links are known for certain, so that they are neither packed nor offered. Changes nothing.
--
-- KEYS[1] {f3}      prefix of the shard
--   {f3}:r:<domain>  hash  queued, waiting, leased    {f3}:f:<bucket>  hash  finished    {f3}:seen, {f3}:s  seen filter
-- ARGV[1] cmsgpack list of domain, its url ids joined, domain, its url ids joined ...
--
-- Returns one status a link: s known, and not to come back by itself; ? the filter knows it and no record here does: the
-- archive is to be asked; n anything else: add.lua decides. Only records say s, so a filter that lies changes nothing.
local P, call, floor, min, now = KEYS[1], redis.call, math.floor, math.min, 0
local function whole(n) return string.format("%d", n) end
--@config
--@include _seen
local groups, statuses, at = cmsgpack.unpack(ARGV[1]), {}, 0
local bucket_key = P .. ":f:"
for g = 1, #groups, 2 do
  local joined, ids = groups[g + 1], {}
  for i = 1, #joined / 16 do ids[i] = joined:sub(16 * i - 15, 16 * i) end
  local key, known = P .. ":r:" .. groups[g]
  if #ids == 1 then
    known = { call("HEXISTS", key, ids[1]) == 1 }
  else
    known = call("HMGET", key, unpack(ids))
  end
  for i = 1, #ids do
    local status = "s"
    if not known[i] then
      local id = ids[i]
      local a, b = id:byte(1, 2)
      local raw = call("HGET", bucket_key .. a * 64 + floor(b / 4), id:sub(2))
      if raw then
        local outcome = raw:byte(FINISHED.at.outcome)
        if outcome == OUT.FAILED or outcome == OUT.REFUSED then status = "n" end
      else
        status = is_seen(id) and "?" or "n"
      end
    end
    statuses[at + i] = status
  end
  at = at + #ids
end
return table.concat(statuses)
