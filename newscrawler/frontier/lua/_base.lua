-- Part: time, shared state and counters of one shard. Needs nothing but the caller's last argument, the number of the
-- layout that it knows (layout.py): a caller with an old map of domains and shards may change nothing. Sets P, now, real, jitter, S, count(),
-- whole(), call_many().
--
-- P     prefix of the shard, KEYS[1]
-- now   ms since the epoch by the frontier's clock ({f}:clock, else TIME); gates, due times, robots
-- real  ms since the epoch by TIME; leases only, as a worker dies in real time
-- S     {f}:state: fence, turn (of the classes, + 9 * grants since the last second look), queued, waiting
local P = KEYS[1]
local call = redis.call
local floor, max, min = math.floor, math.max, math.min

local t = call("TIME")
local real_us = t[1] * 1000000 + t[2]
local real = floor(real_us / 1000)
local clock = call("HMGET", P .. ":clock", "factor", "offset")
local now = clock[1] and floor(real_us / 1000 * tonumber(clock[1]) + tonumber(clock[2])) or real
local now_s = floor(now / 1000)
-- math.random starts with the same seed in every script, so all back-offs would be alike.
local jitter = (real_us % 1000) / 1000

local raw_state = call("HMGET", P .. ":state", "fence", "turn", "queued", "waiting", "reborn", "layout")
if ARGV[#ARGV] ~= (raw_state[6] or "0") then return redis.error_reply("LAYOUT of the shards has changed") end
local S = {
  fence = tonumber(raw_state[1] or 0), turn = tonumber(raw_state[2] or 0),
  queued = tonumber(raw_state[3] or 0), waiting = tonumber(raw_state[4] or 0),
  reborn = tonumber(raw_state[5] or 0),  -- restarted.lua
}

-- Redis writes a number of Lua's with 17 digits of a float, which takes twice as long as this.
local function whole(n)
  return string.format("%d", n)
end

-- A command with many values at once; even pieces, as Lua's stack is bounded.
local function call_many(command, key, list)
  for first = 1, #list, 4000 do
    call(command, key, unpack(list, first, min(first + 3999, #list)))
  end
end

-- What one part sets and another reads, where a script need not have both.
-- marked: buckets of finished records over their share    archived: url id -> finished record that the archive has
-- fresh_from: seconds, a page that was read since is not wanted again (want.lua)
-- save_caps: where there are caps to save    offer_all, save_seen: where acks have links
local shared = { marked = 0, archived = {} }

local tally = {}
local function count(name, n)
  tally[name] = (tally[name] or 0) + (n or 1)
end

local before = { S.fence, S.turn, S.queued, S.waiting }
-- An idle worker's calls write nothing: each write would be a write to the append-only file.
local function write_state()
  if S.fence ~= before[1] or S.turn ~= before[2] or S.queued ~= before[3] or S.waiting ~= before[4] then
    call("HMSET", P .. ":state", "fence", whole(S.fence), "turn", whole(S.turn), "queued", whole(S.queued),
      "waiting", whole(S.waiting))
  end
  for name, n in pairs(tally) do
    call("HINCRBY", P .. ":stat", name, whole(n))
  end
end
