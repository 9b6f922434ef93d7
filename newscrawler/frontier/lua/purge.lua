-- Throw away what is queued and waiting for a domain, a bounded number a call, and the hourly sums of its fetches
-- ({f}:hours:<domain>). Leased URLs stay, and so does the log of the last fetches.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] domain    ARGV[2] most URLs to remove
--
-- Returns {removed, left}, or false for an unknown domain. A purged URL may be offered and queued again.
--@include _base
--@include _records
--@include _domain
local name, limit = ARGV[1], tonumber(ARGV[2])
local d = touch(name)
if not d then return false end
local removed = call("ZPOPMIN", P .. ":q:" .. name, limit)
for i = 1, #removed, 2 do
  call("HDEL", P .. ":r:" .. name, removed[i])
end
local n = #removed / 2
d.queued = d.queued - n
S.queued = S.queued - n
local due = n < limit and call("ZPOPMIN", P .. ":due:" .. name, limit - n) or {}
for i = 1, #due, 2 do
  local h = read_header(call("HGET", P .. ":r:" .. name, due[i]))
  if h and is_waiting(h.outcome) then S.waiting = S.waiting - 1 else S.queued = S.queued - 1 end
  call("HDEL", P .. ":r:" .. name, due[i])
  d.due = d.due - 1
  n = n + 1
end
local first = call("ZRANGE", P .. ":due:" .. name, 0, 0, "WITHSCORES")
d.next_due = first[2] and tonumber(first[2]) or 0
if d.queued == 0 then call("DEL", P .. ":o:" .. name) end
call("DEL", P .. ":hours:" .. name)
count("purged", n)
save_domains()
write_state()
return { n, d.queued + d.due }
