"""The frontier: queue, politeness gate, leases and seen filter of the whole fleet, in Redis."""
