"""Which domains share one gate: those that one address answers for."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from newscrawler.fetch.address_guard import Overrides, split_host
from newscrawler.frontier.types import DomainPolicy

#: Names that are looked up at once, and seconds after which one counts as not known.
AT_ONCE = 20
PATIENCE_S = 10


async def looked_up(policies: Sequence[DomainPolicy], overrides: Overrides) -> list[DomainPolicy]:
    """:func:`by_address` with what the resolver says now. A name that is not known keeps
    the group that it had."""
    free = asyncio.Semaphore(AT_ONCE)

    async def look_up(domain: str) -> tuple[str, set[str]]:
        name = split_host(domain)[0]
        target = overrides.lookup(name, 443)
        if target is not None:
            return domain, {target[0]}
        async with free:
            try:
                found = asyncio.get_running_loop().getaddrinfo(name, 443, type=socket.SOCK_STREAM)
                return domain, {
                    str(place[0]) for *_, place in await asyncio.wait_for(found, PATIENCE_S)
                }
            except (OSError, TimeoutError):
                return domain, set()

    found = await asyncio.gather(
        *(look_up(row.domain) for row in policies if row.enabled and row.group is None)
    )
    return by_address(policies, dict(found))


def by_address(
    policies: Iterable[DomainPolicy], addresses: Mapping[str, Collection[str]]
) -> list[DomainPolicy]:
    """Policies with their group: all that share an address, directly or through a third. A domain
    that shares none has no group; one whose group was chosen keeps it; one without a known address
    keeps what it had (``None``).

    :param addresses: domain -> addresses that its name leads to; nothing where that is not known
    """
    rows = list(policies)
    open_rows = [row for row in rows if row.group is None and addresses.get(row.domain)]
    root: dict[str, str] = {}

    def find(address: str) -> str:
        while root.setdefault(address, address) != address:
            address = root[address]
        return address

    for row in open_rows:
        first, *others = sorted(addresses[row.domain])
        for other in others:
            low, high = sorted((find(first), find(other)))
            root[high] = low  # the smallest of them names the group, whoever works it out
    members = Counter(find(min(addresses[row.domain])) for row in open_rows)

    def group(domain: str) -> str:
        name = find(min(addresses[domain]))
        return f"ip:{name}" if members[name] > 1 else ""

    found = {row.domain: replace(row, group=group(row.domain)) for row in open_rows}
    return [row if row.group is not None else found.get(row.domain, row) for row in rows]
