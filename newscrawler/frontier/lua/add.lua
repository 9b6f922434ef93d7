-- Offer links: what is new, or failed and due again, is queued; "seen" is written in the same step.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] configuration, cmsgpack map    ARGV[2] cmsgpack list of {domain, {packed link, ...}, shapes}
--
-- Returns one letter a link, in order: a added, s seen, f queue full, d dropped, o not ours, x disabled, t trap.
--@include _base
local C = cmsgpack.unpack(ARGV[1])
--@include _records
--@include _domain
--@include _seen
--@include _offer
local letters = offer_all(cmsgpack.unpack(ARGV[2]))
save_domains()
save_seen()
write_state()
return letters
