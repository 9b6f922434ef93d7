-- The domain whose generation is due longest, or nil. It stays queued: begin.lua decides who runs it.
--
-- KEYS[1] zset domain -> ms since the epoch, server's clock
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)[1]
