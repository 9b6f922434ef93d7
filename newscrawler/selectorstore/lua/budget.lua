-- Reserve one call to a model before it is made, for the whole fleet.
--
-- KEYS[1] hash of the day: calls, tokens, calls:<domain>   KEYS[2] string: calls of this minute
-- ARGV[1] domain   ARGV[2] estimated tokens
-- ARGV[3] calls per domain and day   ARGV[4] calls per day   ARGV[5] tokens per day   ARGV[6] calls per minute
--
-- Returns '' when the call may be made, else the setting whose limit forbids it. 0 as a limit forbids every call.
local calls = tonumber(redis.call('HGET', KEYS[1], 'calls') or '0')
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or '0')
local mine = tonumber(redis.call('HGET', KEYS[1], 'calls:' .. ARGV[1]) or '0')
local minute = tonumber(redis.call('GET', KEYS[2]) or '0')
if mine >= tonumber(ARGV[3]) then return 'LLM_CALLS_PER_DOMAIN_PER_DAY' end
if calls >= tonumber(ARGV[4]) then return 'LLM_CALLS_PER_DAY' end
if tokens + tonumber(ARGV[2]) > tonumber(ARGV[5]) then return 'LLM_TOKENS_PER_DAY' end
if minute >= tonumber(ARGV[6]) then return 'LLM_CALLS_PER_MINUTE' end
redis.call('HINCRBY', KEYS[1], 'calls', 1)
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'calls:' .. ARGV[1], 1)
redis.call('EXPIRE', KEYS[1], 172800)
redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], 120)
return ''
