-- The operator's verbs on one domain.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] domain    ARGV[2] pause | resume | block | delay | class | quota
-- ARGV[3] block: ms since the epoch, 0 = unblock; delay: ms, 0 = none of its own; class: 0-2, 9 = the policy's;
--         quota: pages, 0 = none    ARGV[4] quota: seconds of its window, 0 = one that never ends
-- ARGV[5] quota: 1 = the operator's own, which a reload of the policy leaves alone; 0 = the policy's
--
-- Returns 1, or 0 for an unknown domain. No verb opens a gate sooner than the site's delay allows.
--@include _base
--@include _records
--@include _domain
local d = touch(ARGV[1])
if not d then return 0 end
local verb, value = ARGV[2], tonumber(ARGV[3])
if verb == "pause" then
  d.paused = 1
elseif verb == "resume" then
  d.paused, d.blocked = 0, 0
elseif verb == "block" then
  d.blocked = value
elseif verb == "delay" then
  d.set_delay = value
  if d.last > 0 then d.gate = max(d.gate, d.last + delay_of(d)) end
elseif verb == "class" then
  leave_ready(ARGV[1], d)
  d.own_cls = value
elseif verb == "quota" then
  local x = extra(d)
  x.quota = -1  -- an operator's quota begins now, though it be the same again
  set_quota(d, value, tonumber(ARGV[4]))
  set_flag(d, OWN_QUOTA, ARGV[5] == "1")
else
  return redis.error_reply("unknown verb " .. verb)
end
save_domains()
return 1
