-- Part: the seen filter. {f}:s:<gen>:<bucket> are sets of integers: 32 bits of the url id choose the bucket,
-- 32 others are the member; 4.4 bytes a URL, and a false hit about once in 2^32 / members of a bucket.
-- A generation that is full is closed and a new one with twice the buckets opened; one that is half a window old is
-- closed too. A closed one is dropped when seen_window_ms have passed, some buckets a call. So what was written is known
-- for one to one and a half windows.
-- {f}:seen  next: number of the next generation, live: oldest first {g number, n buckets, c members, o opened, closed},
--           dying: {g, n, at: buckets that are gone}
-- Needs C.seen_buckets, C.seen_per_bucket, C.seen_bits, C.seen_window_ms.
local G, G_changed

local function generations()
  if G then return G end
  local raw = call("GET", P .. ":seen")
  G = raw and cmsgpack.unpack(raw) or { next = 2, dying = {}, live = { { g = 1, n = C.seen_buckets, c = 0, o = now, closed = 0 } } }
  return G
end

local function seen_place(gen, id)
  local bucket, member = struct.unpack(">I4i4", id, 3)
  if C.seen_bits < 32 then member = member % (2 ^ C.seen_bits) end
  return P .. ":s:" .. gen.g .. ":" .. whole(bucket % gen.n), whole(member)
end

local function is_seen(id)
  local live = generations().live
  for i = #live, 1, -1 do
    local key, member = seen_place(live[i], id)
    if call("SISMEMBER", key, member) == 1 then return true end
  end
  return false
end

local function add_seen(id)
  local live = generations().live
  local gen = live[#live]
  gen.o = gen.o or now  -- written by a version that closed only full ones
  local is_full = gen.c >= gen.n * C.seen_per_bucket
  if is_full or (gen.o + C.seen_window_ms / 2 < now and gen.c > 0) then
    gen.closed = now
    gen = { g = G.next, n = is_full and min(gen.n * 2, 1048576) or gen.n, c = 0, o = now, closed = 0 }
    G.next = G.next + 1
    live[#live + 1] = gen
  end
  local key, member = seen_place(gen, id)
  gen.c = gen.c + call("SADD", key, member)
  G_changed = true
end

local function save_seen()
  if not G then return end
  local first = G.live[1]
  if #G.live > 1 and first.closed + C.seen_window_ms < now then
    table.remove(G.live, 1)
    G.dying[#G.dying + 1] = { g = first.g, n = first.n, at = 0 }
    G_changed = true
  end
  local dying = G.dying[1]
  if dying then
    local keys = {}
    for i = dying.at, min(dying.at + 127, dying.n - 1) do keys[#keys + 1] = P .. ":s:" .. dying.g .. ":" .. i end
    call("UNLINK", unpack(keys))
    dying.at = dying.at + 128
    if dying.at >= dying.n then table.remove(G.dying, 1) end
    G_changed = true
  end
  if G_changed then call("SET", P .. ":seen", cmsgpack.pack(G)) end
end
