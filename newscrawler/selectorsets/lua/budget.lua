-- Reserve one call to a model before it is made, for the whole fleet.
--
-- KEYS[1] hash of the day: calls, tokens, micro, and calls:<domain>, tokens:<domain>, micro:<domain>
-- KEYS[2] string: calls of this minute
-- ARGV[1] domain   ARGV[2] estimated tokens   ARGV[3] estimated cost, millionths
-- ARGV[4..9] calls per domain and day, calls per day, tokens per domain and day, tokens per day,
--            money per domain and day and money per day, millionths
-- ARGV[10] calls per minute
--
-- Returns '' when the call may be made, else the setting whose limit forbids it. 0 as a limit forbids every call.
local domain, tokens, micro = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local function spent(name) return tonumber(redis.call('HGET', KEYS[1], name) or '0') end
local rules = {
  {'calls:' .. domain, 1, ARGV[4], 'LLM_CALLS_PER_DOMAIN_PER_DAY'},
  {'calls', 1, ARGV[5], 'LLM_CALLS_PER_DAY'},
  {'tokens:' .. domain, tokens, ARGV[6], 'LLM_TOKENS_PER_DOMAIN_PER_DAY'},
  {'tokens', tokens, ARGV[7], 'LLM_TOKENS_PER_DAY'},
  {'micro:' .. domain, micro, ARGV[8], 'LLM_MONEY_PER_DOMAIN_PER_DAY'},
  {'micro', micro, ARGV[9], 'LLM_MONEY_PER_DAY'},
}
for _, rule in ipairs(rules) do
  local limit = tonumber(rule[3])
  if limit <= 0 or spent(rule[1]) + rule[2] > limit then return rule[4] end
end
if tonumber(redis.call('GET', KEYS[2]) or '0') >= tonumber(ARGV[10]) then return 'LLM_CALLS_PER_MINUTE' end
for _, rule in ipairs(rules) do redis.call('HINCRBY', KEYS[1], rule[1], rule[2]) end
redis.call('EXPIRE', KEYS[1], 172800)
redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], 120)
return ''
