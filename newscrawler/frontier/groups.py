"""Which domains share one gate: those that one address answers for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from newscrawler.frontier.types import DomainPolicy


def by_address(policies: Iterable[DomainPolicy], addresses: Mapping[str, Collection[str]]) -> list[DomainPolicy]:
    """Policies with their group: all that share an address, directly or through a third. A domain that shares none
    has no group; one whose group was chosen keeps it; one without a known address keeps what it had (``None``).

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
    members: dict[str, int] = {}
    for row in open_rows:
        name = find(min(addresses[row.domain]))
        members[name] = members.get(name, 0) + 1
    named = {row.domain: find(min(addresses[row.domain])) for row in open_rows}
    return [
        replace(row, group=f"ip:{named[row.domain]}" if members[named[row.domain]] > 1 else "")
        if row.domain in named and row.group is None
        else row
        for row in rows
    ]
