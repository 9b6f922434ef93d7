-- Commands of the watch, run only while it leads: one that was stopped and woke up changes nothing.
--
-- KEYS[1] {fleet}:leader   KEYS[2] ... the key of each command, in their order
-- ARGV[1] what the caller was answered when it began to lead (lead.lua)
-- ARGV[2] JSON list of commands without their keys: [["HSET", "field", "value"], ["DEL"], ...]
--
-- Returns 1, or 0 when another one leads and nothing was done.
if ARGV[1] == '' or redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
-- Refused by a Redis that is full, as a batch that begins with HDEL is not: nothing of it is done then.
redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')
for number, command in ipairs(cjson.decode(ARGV[2])) do
  redis.call(command[1], KEYS[number + 1], unpack(command, 2))
end
return 1
