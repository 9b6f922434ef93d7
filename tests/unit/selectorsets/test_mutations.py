"""A site that changes one thing at a time: the alarm, the better set, the repair from stored pages.
Real Redis, no site.

Where the old set goes on reading the changed pages rightly, silence is right.
"""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from newscrawler.extraction.context import PageContext
from tests.newsweb.language import language
from tests.semisynthetic.change import change
from tests.semisynthetic.life import NOW
from tests.semisynthetic.structure import Filled, Truth

#: What changes -> whether the old set has to lose something by it.
CHANGES = {
    "renamed": True,
    "wrapped": False,
    "reordered": False,
    "swapped": True,
    "dated": False,
    "all": True,
}


class Site:
    """Pages of one layout without metadata of authors and dates, so that the set
    alone reads them."""

    def __init__(self, changes: frozenset[str] = frozenset()) -> None:
        self.changes = changes
        self.structure = SimpleNamespace(
            id="-".join(sorted(changes)) or "before", site="a.example", lang="vi"
        )
        self._rng = random.Random(f"seed-{len(changes)}")

    def context(self) -> PageContext:
        return PageContext(language="vi", zone="UTC", fetched=NOW, url_is_article=True)

    def page(self) -> Filled:
        rng = self._rng
        title, author = language(5).title(rng), language(5).person(rng)
        day = datetime(
            2026, 1 + rng.randrange(10), 1 + rng.randrange(27), rng.randrange(24), 30, tzinfo=UTC
        )
        paragraphs = [
            " ".join(language(5).sentence(rng) for _ in range(3)) for _ in range(rng.randint(7, 14))
        ]
        return Filled(
            self._html(title, author, day, paragraphs, rng).encode(),
            Truth(
                f"https://a.example/bai-{rng.randrange(10**9)}.html",
                title,
                "\n\n".join(paragraphs),
                [author],
                day,
            ),
        )

    def _html(
        self, title: str, author: str, day: datetime, paragraphs: list[str], rng: random.Random
    ) -> str:
        def has(change: str) -> bool:
            return bool(self.changes & {change, "all"})

        shown = f"{day:%Y-%m-%d %H:%M}" if has("dated") else f"{day:%d/%m/%Y %H:%M}"
        heading = (
            '<h2 class="headline">%s</h2>' if has("swapped") else '<h1 class="headline">%s</h1>'
        )
        logo = (
            '<h1 class="logo"><a href="/">Báo Mẫu</a></h1>'
            if has("swapped")
            else '<a class="logo" href="/">Báo Mẫu</a>'
        )
        parts = {
            "head": heading % title,
            "byline": f'<p class="byline">{author}</p>',
            "date": f'<span class="clock">{shown}</span>',
            "related": f'<ul class="related">{"".join(f"<li><a href=/{n}>{language(5).title(rng)}</a></li>" for n in range(3))}</ul>',
        }
        lines = [f"<div><p>{p}</p></div>" if has("wrapped") else f"<p>{p}</p>" for p in paragraphs]
        lines.insert(2, parts["related"])
        text = f'<div class="story">{"".join(lines)}</div>'
        order = ("date", "byline", "head") if has("reordered") else ("head", "date", "byline")
        body = "".join(parts[name] for name in order) + text
        if has("wrapped"):
            body = f"<div><section><div>{body}</div></section></div>"
        ld = json.dumps({"@type": "NewsArticle", "headline": title}, ensure_ascii=False)
        page = (
            f'<!doctype html><html lang="vi"><head><title>{title}</title><meta property="og:title" content="{title}">'
            f'<script type="application/ld+json">{ld}</script></head><body>{logo}<main>{body}</main>'
            f'<div class="more">{"".join(f"<a href=/{n}>{language(5).title(rng)}</a>" for n in range(5))}</div></body></html>'
        )
        return re.sub(r'class="(\w+)"', r'class="v2-\1-box"', page) if has("renamed") else page


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["all", *(pytest.param(name, marks=pytest.mark.long) for name in CHANGES if name != "all")],
)
async def test_one_change_of_the_layout_is_seen_and_mended(
    name: str, selector_redis: Any, tmp_path: Path
) -> None:
    told = await change(Site(), Site(frozenset({name})), selector_redis, tmp_path)  # type: ignore[arg-type]
    assert told.good, told
    assert bool(told.alarm_after) >= CHANGES[name], told
