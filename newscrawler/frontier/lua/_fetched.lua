-- Part: the end of a fetch.

-- f: {id, fence, latency ms, status, retry-after ms or -1, bytes received}
local function fetched(f)
  local e = read_lease(f[1])
  if not e or e.fence ~= f[2] then return false end
  if e.fetched == 1 then return true end
  e.fetched, e.changed = 1, true
  local d = touch(e.domain)
  if d and d.id == f[1] then
    open_gate(e.domain, d, f[1], e.granted, f[3], f[4], f[5], f[6])
    -- robots.txt: its rules must be known before the next URL of the domain is handed out.
    if e.robots == 0 then d.id = ZERO end
  end
  return true
end
