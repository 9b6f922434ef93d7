-- Part: the end of a fetch.

-- The entries of ARGV[3]: id, fence, latency ms, status, retry-after ms or -1, bytes received (packing.py, FETCHED)
local FETCH, FETCH_SIZE = ">c16ddI2dd", 50

local function fetched(packed, at)
  local id, fence, latency_ms, status, retry_after_ms, bytes = struct.unpack(FETCH, packed, at)
  local e = read_lease(id)
  if not e or e.fence ~= fence then return false end
  if is_fetched(e) then return true end
  e.state, e.changed = e.state + FETCHED, true
  local d = touch(e.domain)
  if d and d.id == id then
    open_gate(e.domain, d, id, e.granted, latency_ms, status, retry_after_ms, bytes)
    -- robots.txt: its rules must be known before the next URL of the domain is handed out.
    if e.robots == 0 then d.id = ZERO end
  end
  return true
end
