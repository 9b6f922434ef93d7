-- Take over the admin's policy of domains. Idempotent; gates, back-off, robots and the operator's verbs stay.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] cmsgpack list of {domain, site, class 0-2 or 3 = worked out, floor ms, enabled 0/1, loopback 0/1,
--         pages a day (0 = no quota), group ("" = none, false = as it is)}
-- ARGV[2] ms of AutoThrottle's first delay, 0 = off
--
-- Returns "" or the domain that a simulated clock forbids: time may be bent only for hosts on this machine.
--@include _base
--@include _records
--@include _domain
local list = cmsgpack.unpack(ARGV[1])
for i = 1, #list do
  if clock[1] and list[i][6] == 0 then return list[i][1] end
end
for i = 1, #list do
  local name = list[i][1]
  local d = touch(name)
  if not d then
    d = new_domain()
    d.throttle = tonumber(ARGV[2])
    domains[name] = d
  end
  local class, pages, group = list[i][3], list[i][7] or 0, list[i][8]
  d.site, d.floor, d.enabled, d.loopback = list[i][2], list[i][4], list[i][5], list[i][6]
  if class == 3 then
    if d.flags % 2 == 0 then set_flag(d, AUTO, true) end
    judge_class(name, d)
  else
    if d.flags % 2 == AUTO then set_flag(d, AUTO, false) end
    if d.cls ~= class then leave_ready(name, d) end
    d.cls = class
  end
  local x = extra(d)
  if (pages > 0 or d.flags >= QUOTA) and floor(x.flags / OWN_QUOTA) % 2 == 0 then
    set_quota(d, pages, 86400)
  end
  if group and (group ~= "" or d.flags >= GROUP) and x.group ~= group then
    leave_group(name, d)
    if group ~= "" then
      put_ready(name, d, 0)
      x.group = group
      set_flag(d, GROUP, true)
    end
  end
  if tonumber(ARGV[2]) == 0 then d.throttle = 0 end
  if d.last > 0 then d.gate = max(d.gate, d.last + delay_of(d)) end  -- later if the delay grew, never sooner
  call(d.loopback == 1 and "SREM" or "SADD", P .. ":public", name)
end
save_domains()
return ""
