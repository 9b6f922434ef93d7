-- Part: how URLs and leases are packed (records.py has the same formats in words).
local ZERO = string.rep("\0", 16)
local HEADER, HEADER_SIZE = ">BBBBBBi4I4BI2I4c16", 37
local LINK, LINK_SIZE = ">c16BdBBBi4c16", 48
local LEASE = ">dddBBBc0"
local SCHEMA = 1

-- indexes of items.Kind and of items.Outcome + 1
local KIND = { ROBOTS = 0, HOME = 1, FEED = 2, SITEMAP = 3, SECTION = 4, ARTICLE = 5, PAGE = 6 }
local OUT = { DONE = 1, UNCHANGED = 2, NOT_ARTICLE = 3, REDIRECTED = 4, RETRY = 5, GONE = 6, REFUSED = 7,
  CHALLENGE = 8, FAILED = 9 }

-- Whether this version can read a record; the outcome is its 15th byte.
local function is_readable(raw)
  if not raw or #raw <= HEADER_SIZE then return false end
  local schema, kind = raw:byte(1, 2)
  return schema >= 1 and schema <= SCHEMA and kind % 16 <= 6 and raw:byte(15) <= 9
end

-- A header is a list; the scheme, which shares a byte with the kind, comes last.
--@fields h schema kind band tries crashes depth score discovered outcome status last parent scheme
-- raw: begins with a header that can be read
local function unpack_header(raw)
  local h = { struct.unpack(HEADER, raw) }
  h.scheme = floor(h.kind / 16)
  h.kind = h.kind % 16
  return h
end

-- nil: the bytes cannot be read by this version
local function read_header(raw)
  return is_readable(raw) and unpack_header(raw) or nil
end

local function write_header(h, rest)
  return struct.pack(HEADER, SCHEMA, h.kind + 16 * h.scheme, h.band, min(h.tries, 255), min(h.crashes, 255),
    h.depth, h.score, h.discovered, h.outcome, h.status, h.last, h.parent) .. rest
end

-- Pages that only lead to articles: never stored, always looked at again.
local function is_list(kind)
  return kind >= KIND.HOME and kind <= KIND.SECTION
end

-- A visit has been made and the next one is planned: not what the crawl still has to do.
local function is_waiting(outcome)
  return outcome ~= 0 and outcome ~= OUT.RETRY and outcome ~= OUT.CHALLENGE
end

-- Band, then score, then age in one whole number of 53 bits: 2 + 32, and 18 of sequence. (Whole, as Redis keeps
-- small sets packed and a fraction there would be 17 characters.) The sequence starts again when the queue is
-- empty and stops at its end, so nothing starves.
local function queue_score(h, d)
  d.seq = min(d.seq + 1, 262143)
  return ((h.band * 8589934592) + h.score + 2147483648) * 262144 + d.seq
end

-- Leases that were read in this call. What is new, changed or ended is written by save_leases(), all of it with four
-- commands: each command is a write to the append-only file.
local leases, leases_key = {}, P .. ":lease"
local ended_leases, new_leases, new_deadlines = {}, {}, {}
-- A lease is a list: as it was read, whether it has changed, what is packed, and where the worker's name begins.
--@fields e raw changed fence granted score state robots domain at
local FETCHED, ON_TRIAL = 1, 2  -- state: the sum of those that are
local function unpack_lease(id, raw)
  local e = raw and { raw, false, struct.unpack(LEASE, raw) } or false
  leases[id] = e
  return e
end

local function is_fetched(e)
  return e.state % 2 == FETCHED
end

local function read_lease(id)
  local e = leases[id]
  if e ~= nil then return e end
  return unpack_lease(id, call("HGET", leases_key, id))
end

-- The same for many, with one command.
local function read_leases(ids)
  if #ids == 0 then return end
  local raws = call("HMGET", leases_key, unpack(ids))
  for i = 1, #ids do unpack_lease(ids[i], raws[i]) end
end

-- Nobody reads it again in the call that grants it.
local function new_lease(id, fence, score, is_robots, domain, worker, deadline)
  local n = #new_leases
  new_leases[n + 1] = id
  new_leases[n + 2] = struct.pack(LEASE, fence, now, score, 0, is_robots, #domain, domain) .. worker
  new_deadlines[n + 1], new_deadlines[n + 2] = deadline, id
end

local function drop_lease(id)
  ended_leases[#ended_leases + 1] = id
  leases[id] = false
end

local function save_leases()
  call_many("HDEL", leases_key, ended_leases)
  call_many("ZREM", P .. ":deadlines", ended_leases)
  local written = new_leases
  for id, e in pairs(leases) do
    if e and e.changed then
      written[#written + 1] = id
      written[#written + 1] = struct.pack(LEASE, e.fence, e.granted, e.score, e.state, e.robots, #e.domain, e.domain)
        .. e.raw:sub(e.at)
      e.changed = false
    end
  end
  call_many("HSET", leases_key, written)
  call_many("ZADD", P .. ":deadlines", new_deadlines)
  ended_leases, new_leases, new_deadlines = {}, {}, {}
end

-- Finished records. 14 bits of the id choose the bucket, which stays small enough to be kept packed.
local finished_key = P .. ":f:"
local function finished_place(id)
  local a, b = id:byte(1, 2)
  return finished_key .. whole(a * 64 + floor(b / 4)), id:sub(2)
end

local file_numbers = {}
local function file_number(name)
  local n = file_numbers[name]
  if n then return n end
  n = tonumber(call("HGET", P .. ":files", name) or nil)
  if n then
    file_numbers[name] = n
    return n
  end
  n = call("HINCRBY", P .. ":files", "#", 1)
  if n > 65535 then return 0 end
  call("HSET", P .. ":files", name, n, "#" .. n, name)
  return n
end

-- A bucket that holds more than its share is named in {f}:full; the client moves its oldest records to the archive.
-- One record in eight looks, as a bucket may be a little over.
local function look_at_size(key, id)
  local most = C.finished_per_bucket
  if most < 0 or (most >= 64 and id:byte(16) % 8 > 0) then return end
  if call("HLEN", key) > most then
    call("SADD", P .. ":full", key:match("%d+$"))
    shared.marked = shared.marked + 1
  end
end

-- x: next_s, digest, file, offset, length, robots version, reason; all may be missing
local function write_finished(id, h, x)
  local flags, next_s, digest, file, robots, parent = 0, "", "", "", "", ""
  if (x.next_s or 0) > 0 then flags = 1; next_s = struct.pack(">I4", x.next_s) end
  if x.digest and #x.digest == 16 then flags = flags + 2; digest = x.digest end
  if x.file and x.file ~= "" then
    flags = flags + 4
    file = struct.pack(">I2I4I4", file_number(x.file), x.offset, x.length)
  end
  if x.robots then flags = flags + 8; robots = struct.pack(">I4", x.robots) end
  if h.parent ~= ZERO then flags = flags + 32; parent = h.parent:sub(1, 3) end
  local key, field = finished_place(id)
  call("HSET", key, field, struct.pack(">BBBBI2I4I4", SCHEMA * 16 + h.kind, h.outcome,
    min(h.depth, 15) * 16 + min(h.tries, 15), flags, h.status, h.discovered, h.last)
    .. next_s .. digest .. file .. robots .. parent .. (x.reason or ""))
  look_at_size(key, id)
end

-- Only these two are ever queued again without being asked for; the rest is known by one byte.
local function may_come_back(raw)
  local outcome = raw:byte(2)
  return outcome == OUT.FAILED or outcome == OUT.REFUSED
end

local function read_finished(raw)
  local f = {}
  local kind, depth_tries, flags, at
  kind, f.outcome, depth_tries, flags, f.status, f.discovered, f.last, at = struct.unpack(">BBBBI2I4I4", raw)
  f.kind = kind % 16
  f.next_s = 0
  local function has(bit) return floor(flags / bit) % 2 == 1 end
  if has(1) then f.next_s, at = struct.unpack(">I4", raw, at) end
  if has(2) then at = at + 16 end
  if has(4) then at = at + 10 end
  if has(8) then f.robots, at = struct.unpack(">I4", raw, at) end
  if has(32) then at = at + 3 end
  f.asked_at = at
  if has(16) then at = at + 4 end
  f.flags, f.reason = flags, raw:sub(at)
  return f
end

-- A record out of the archive, which a link asked for: kept here again, and young enough to stay a while.
local function put_back(id, raw, f)
  local key, field = finished_place(id)
  local flags = f.flags % 32 >= 16 and f.flags or f.flags + 16
  call("HSET", key, field, raw:sub(1, 3) .. string.char(flags) .. raw:sub(5, f.asked_at - 1)
    .. struct.pack(">I4", now_s) .. f.reason)
  look_at_size(key, id)
end

local function put_in_quarantine(id, domain, reason, record)
  call("HSET", P .. ":quar", id,
    struct.pack(">I4BB", now_s, #domain, min(#reason, 255)) .. domain .. reason:sub(1, 255) .. (record or ""))
  count("quarantined")
end
