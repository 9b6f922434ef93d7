-- A bounded crawl wants these URLs no longer: what it brought into the queue leaves it, what was known goes back to its
-- place. What is leased ends as any other, and what another crawl wants stays.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] id of the crawl    ARGV[2] cmsgpack list of {domain, {url id, ...}}
-- ARGV[3] 1: nothing but bounded crawls asks for pages of this site, so known URLs leave the queue, too
--
-- Returns how many left the queue.
--@include _base
--@include _records
--@include _domain
--@include _want
local groups, dropped = cmsgpack.unpack(ARGV[2]), 0

local function give_up(name, id, origin)
  local key = P .. ":r:" .. name
  local raw, d = call("HGET", key, id), touch(name)
  local h = read_header(raw)
  if not d or not h or call("HEXISTS", P .. ":lease", id) == 1 then return end
  local was_new = origin == "n" and h.last == 0
  if was_new or ARGV[3] == "1" then
    if take_out(name, d, id, h) then
      call("HDEL", key, id)
      dropped = dropped + 1
    end
  elseif call("ZREM", P .. ":q:" .. name, id) == 1 then
    d.queued = d.queued - 1
    S.queued = S.queued - 1
    local band, score = origin:match("^o(%d+):(-?%d+)$")
    h.band, h.score = tonumber(band) or 2, tonumber(score) or h.score
    call("HSET", key, id, write_header(h, raw:sub(HEADER.size + 1)))
    enqueue(name, d, id, queue_score(h, d))
  end
end

for g = 1, #groups do
  local name, ids = groups[g][1], groups[g][2]
  for i = 1, #ids do
    local known = call("HGET", want_key, ids[i])
    if known then
      local origin = known:match("^%S+")
      local left = origin
      for tag in known:gmatch(" (%S+)") do
        if tag:match("^[^:]+") ~= ARGV[1] then left = left .. " " .. tag end
      end
      if left == origin then
        call("HDEL", want_key, ids[i])
        give_up(name, ids[i], origin)
      else
        call("HSET", want_key, ids[i], left)
      end
    end
  end
end
save_domains()
write_state()
return dropped
