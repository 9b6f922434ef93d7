"""What only some domains have beside their record: quota, group, and how a class was worked out. Pure.

It stands behind the site's name in the domain's record, so a version that does not know it reads the rest, and a
domain that has none of it pays nothing. ``lua/_domain.lua`` has the same format.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

#: flags (1 class worked out, 2 quota, 4 the quota is the operator's, 8 in a group), held until ms, quota, its window s
#: (0 = since it was set), its beginning s, fetches before it, new articles, articles, fetches and errors at the last
#: judgement, time of the last change s, mean latency ms, new articles and errors of 100 fetches, idle hours, length of
#: the group's name.
EXTRA = struct.Struct(">BdIIIIIIIIIIBBHB")
#: ``held`` of a quota that was spent and has no window.
FOR_GOOD = 2**53 - 1


@dataclass(slots=True)
class DomainExtra:
    """Defaults: a domain without any of it."""

    is_class_worked_out: bool = False
    is_quota_own: bool = False  # set by `scrapy frontier quota`, not by the policy
    held_until: int = 0  # ms; the quota is spent
    quota: int = 0  # pages, 0 = none
    quota_window_s: int = 0  # 0 = since it was set
    quota_from_s: int = 0
    quota_base: int = 0  # fetches of the domain before the window began
    articles: int = 0
    judged_fetches: int = 0  # 0 = not judged yet
    latency_ms: int = 0
    yield_percent: int = 0
    error_percent: int = 0
    idle_h: int = 0
    group: str = ""

    def quota_used(self, fetched: int, now_ms: int) -> int:
        """Of the window that runs now."""
        if self.quota_window_s and now_ms >= (self.quota_from_s + self.quota_window_s) * 1000:
            return 0
        return fetched - self.quota_base

    @property
    def class_reason(self) -> str:
        """What spoke for the class that was worked out."""
        said = []
        if self.judged_fetches:
            said.append(f"{self.yield_percent} % new articles")
            said.append(f"answers in {self.latency_ms / 1000:.1f} s")
            said.append(f"{self.error_percent} % errors")
        if self.idle_h >= 24:
            said.append(f"left alone for {self.idle_h} h")
        return ", ".join(said) or "not judged yet"


NONE = DomainExtra()


def unpack(data: bytes) -> DomainExtra:
    """``data``: what stands behind the site's name."""
    if len(data) < EXTRA.size:
        return NONE
    v = EXTRA.unpack_from(data)
    return DomainExtra(
        is_class_worked_out=v[0] & 1 == 1,
        is_quota_own=v[0] & 4 == 4,
        held_until=int(v[1]),
        quota=v[2],
        quota_window_s=v[3],
        quota_from_s=v[4],
        quota_base=v[5],
        articles=v[6],
        judged_fetches=v[8],
        latency_ms=v[11],
        yield_percent=v[12],
        error_percent=v[13],
        idle_h=v[14],
        group=data[EXTRA.size : EXTRA.size + v[15]].decode(),
    )
