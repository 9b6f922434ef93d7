-- The next turn of one domain, for a fetch that a person asked for (`scrapy extract URL`). Nothing is queued.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] worker id    ARGV[2] domain    ARGV[3] id of the turn
--
-- Returns {lease (a list of one or none, see GRANT), when it runs out, wait ms}. The lease is that of robots.txt when its rules
-- are not known, else one under the given id: end it by `fetched` and `give_back`, or it runs out like any other.
-- wait: 0 with a lease; real ms until the turn may come; -1 unknown domain; -2 paused by the operator; -3 quota spent.
--@include _base
--@config
local W = ARGV[1]
--@include _records
--@include _domain
--@include _gate
--@include _wait
--@include _lease
local name, granted = ARGV[2], {}
reap(16)
local d = touch(name)
if not d then return { granted, lease_end, -1 } end
if d.paused == 1 then return { granted, lease_end, -2 } end
if d.flags >= QUOTA and quota_is_spent(d) then
  save_domains()
  write_state()
  return { granted, lease_end, -3 }
end
local at, is_busy = max(d.gate, S.reborn + delay_of(d), d.blocked, d.back_until), d.id ~= ZERO
if d.robots == ROBOTS.WAIT then at = max(at, d.robots_due) end
if d.flags >= GROUP then
  local x = extra(d)
  local g = touch_group(x.group)
  at, is_busy = max(at, g.gate), is_busy or g.holder ~= ""
end
local room, cap_wait = cap_room(1)
local wait = 0
if is_busy then
  wait = 100  -- another fetch of the domain, or of its group, is at work
elseif room < 1 then
  wait = max(1, math.ceil(cap_wait))
elseif at > now then
  local factor = clock[1] and tonumber(clock[1]) or 1
  wait = max(1, math.ceil((at - now) / factor))
else
  local is_robots = needs_robots(d)
  grant_url(granted, name, d, is_robots and robots_id(name) or ARGV[3], "", 0, 1)
end
save_domains()
write_state()
return { granted, lease_end, wait }
