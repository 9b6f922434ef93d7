-- Offer links: what is new, or failed and due again, is queued; "seen" is written in the same step.
--
-- KEYS[1] {f3}      prefix of the shard; keys.py lists the keys
-- ARGV[1] cmsgpack list of {domain, {packed link, ...}, shapes}
-- ARGV[2] cmsgpack map of url id -> finished record that the archive has, or "" where it was not asked
--
-- ARGV[3] whether the call may end when it gets late, 1 or 0
--
-- Returns one status a link, in order; offer_all() lists them. Links that are left have none.
--@include _base
--@config
--@include _records
--@include _domain
--@include _seen
--@include _late
--@include _offer
if #ARGV[2] > 0 then shared.archived = cmsgpack.unpack(ARGV[2]) end
local statuses = offer_all(cmsgpack.unpack(ARGV[1]), ARGV[3] == "1")
save_domains()
save_seen()
write_state()
return statuses
