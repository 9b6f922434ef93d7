-- Part: records of URLs and leases. schema.py declares each record; scripts.py puts in its format and its fields' places.
local ZERO = string.rep("\0", 16)

-- Whether this version can read a record.
local function is_readable(raw)
  if not raw or #raw <= HEADER.size then return false end
  local schema, kind = raw:byte(1, 2)
  return schema >= 1 and schema <= SCHEMA.NUMBER and kind % 16 <= KIND.PAGE and raw:byte(HEADER.at.outcome) <= OUT.FAILED
end

-- A header is a list; the scheme, which shares a byte with the kind, comes last.
--@fields h @HEADER scheme
-- raw: begins with a header that can be read
local function unpack_header(raw)
  local h = { HEADER.unpack(raw) }
  h.scheme = floor(h.kind / 16)
  h.kind = h.kind % 16
  return h
end

-- nil: the bytes cannot be read by this version
local function read_header(raw)
  return is_readable(raw) and unpack_header(raw) or nil
end

local function write_header(h, rest)
  return HEADER.pack{ schema = SCHEMA.NUMBER, kind = h.kind + 16 * h.scheme, band = h.band, tries = min(h.tries, 255),
    crashes = min(h.crashes, 255), depth = h.depth, score = h.score, discovered = h.discovered, outcome = h.outcome,
    status = h.status, last = h.last, parent = h.parent } .. rest
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
--@fields e raw changed @LEASE at
local FETCHED, RETRIED_ALONE = 1, 2  -- state: the sum of those that are
local function unpack_lease(id, raw)
  local e = raw and { raw, false, LEASE.unpack(raw) } or false
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
  new_leases[n + 2] = LEASE.pack{ fence = fence, granted = now, score = score, state = 0, robots = is_robots,
    domain = domain } .. worker
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
      written[#written + 1] = LEASE.pack(e) .. e.raw:sub(e.at)
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

-- Whether a URL was taken down (take_down.lua). Nobody has taken down anything in most frontiers.
local has_taken
local function is_taken(id)
  if has_taken == nil then has_taken = call("EXISTS", P .. ":taken") == 1 end
  return has_taken and call("SISMEMBER", P .. ":taken", id) == 1
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

-- more: next_s, digest, file, offset, length, robots version, reason; all may be missing
local function write_finished(id, h, more)
  local flags, next_s, digest, file, robots, parent = 0, "", "", "", "", ""
  if (more.next_s or 0) > 0 then flags = PART.NEXT; next_s = struct.pack(PART_FORMAT.NEXT, more.next_s) end
  if more.digest and #more.digest == PART_SIZE.DIGEST then flags = flags + PART.DIGEST; digest = more.digest end
  if more.file and more.file ~= "" then
    flags = flags + PART.RAW
    file = struct.pack(PART_FORMAT.RAW, file_number(more.file), more.offset, more.length)
  end
  if more.robots then flags = flags + PART.ROBOTS; robots = struct.pack(PART_FORMAT.ROBOTS, more.robots) end
  if h.parent ~= ZERO then flags = flags + PART.PARENT; parent = h.parent:sub(1, PART_SIZE.PARENT) end
  local key, field = finished_place(id)
  call("HSET", key, field, FINISHED.pack{ schema_kind = SCHEMA.NUMBER * 16 + h.kind, outcome = h.outcome,
    depth_tries = min(h.depth, 15) * 16 + min(h.tries, 15), flags = flags, status = h.status,
    discovered = h.discovered, last = h.last } .. next_s .. digest .. file .. robots .. parent .. (more.reason or ""))
  look_at_size(key, id)
end

-- Only these two are ever queued again without being asked for; the rest is known by one byte.
local function may_come_back(raw)
  local outcome = raw:byte(FINISHED.at.outcome)
  return outcome == OUT.FAILED or outcome == OUT.REFUSED
end

-- A finished record is a list; at, where its parts begin, gives way to what they say.
--@fields f @FINISHED next_s kind version asked_at reason
local function read_finished(raw)
  local f = { FINISHED.unpack(raw) }
  local at = f.next_s
  local function has(bit) return floor(f.flags / bit) % 2 == 1 end
  f.next_s, f.kind, f.version = 0, f.schema_kind % 16, 0
  if has(PART.NEXT) then f.next_s, at = struct.unpack(PART_FORMAT.NEXT, raw, at) end
  if has(PART.DIGEST) then at = at + PART_SIZE.DIGEST end
  if has(PART.RAW) then at = at + PART_SIZE.RAW end
  if has(PART.ROBOTS) then f.version, at = struct.unpack(PART_FORMAT.ROBOTS, raw, at) end
  if has(PART.PARENT) then at = at + PART_SIZE.PARENT end
  f.asked_at = at
  if has(PART.ASKED) then at = at + PART_SIZE.ASKED end
  f.reason = raw:sub(at)
  return f
end

-- A record out of the archive, which a link asked for: kept here again, and young enough to stay a while.
local function put_back(id, raw, f)
  local key, field = finished_place(id)
  local flags = floor(f.flags / PART.ASKED) % 2 == 1 and f.flags or f.flags + PART.ASKED
  call("HSET", key, field, raw:sub(1, FINISHED.at.flags - 1) .. string.char(flags)
    .. raw:sub(FINISHED.at.flags + 1, f.asked_at - 1) .. struct.pack(PART_FORMAT.ASKED, now_s) .. f.reason)
  look_at_size(key, id)
end

local function put_in_quarantine(id, domain, reason, record)
  call("HSET", P .. ":quar", id,
    QUARANTINE.pack{ since = now_s, domain_size = #domain, reason_size = min(#reason, 255) } .. domain .. reason:sub(1, 255) .. (record or ""))
  count("quarantined")
end
