-- Part: the end of a fetch.

--@fields got @FETCHED
local function fetched(packed, at)
  local got = { FETCHED.unpack(packed, at) }
  local id = got.url_id
  local e = read_lease(id)
  if not e or e.fence ~= got.fence then return false end
  if is_fetched(e) then return true end
  e.state, e.changed = e.state + FETCHED, true
  local d = touch(e.domain)
  if d and d.id == id then
    open_gate(e.domain, d, id, e.granted, got.latency, got.status, got.retry_after, e.robots == 1, got.bytes)
    -- robots.txt: its rules must be known before the next URL of the domain is granted.
    if e.robots == 0 then d.id = ZERO end
  end
  return true
end
