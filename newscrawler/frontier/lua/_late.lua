-- Part: the end of a call's time. Needs C.call_ms.

-- Whether this call has lasted so long that the rest should come with another one: Redis serves nobody else meanwhile.
-- Its work is done long before; but after a fork each page of memory that it writes is copied first.
local function is_late()
  local t = call("TIME")
  return t[1] * 1000000 + t[2] - real_us >= C.call_ms * 1000
end
