-- Say that a domain's sets changed, so that every worker reads them again.
--
-- KEYS[1] zset domain -> change number   KEYS[2] string, the last change number   ARGV[1] domain
--
-- One script: a worker that saw number 8 must not find 7 added after it had looked.
return redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[2]), ARGV[1])
