"""Names of people from bylines. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def clean(raw: Iterable[str], site_name: str | None = None) -> list[str]:
    """Names in order, without repeats; [] when there is none."""
    out: list[str] = []
    for item in raw:
        item = " ".join(item.split())
        if item and item not in out and len(item) < 80:
            out.append(item)
    return out
