"""The whole path of selector sets and of the last resort against the real model, with figures."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newscrawler.extraction.context import PageContext
from newscrawler.llm import LLM
from newscrawler.selectorsets import keys
from newscrawler.selectorsets.generate import Generator, Result, StoredPage
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.store import SelectorStore
from tests.fixtures_selectors import made_pages
from tests.real_model.server import RealModel

#: In a currency of our own, so that the sum of money can be checked.
PRICE_IN, PRICE_OUT = 1.0, 4.0
#: Whatever the machine does beside it, one answer comes within this.
TIMEOUT_S = 900.0


def limits(**changed: Any) -> ModelBudget:
    return ModelBudget(calls_per_minute=1000, price_in=PRICE_IN, price_out=PRICE_OUT, **changed)


@dataclass
class Asked:
    """One site: what came of its generation, and what stands in Redis of it."""

    domain: str
    result: Result
    seconds: float
    versions: int
    in_use: bool
    rules: Counter[str] = field(default_factory=Counter)  # by which rule its answers were refused


class SetBench:
    """Generations of selector sets by the model, for sites of the simulated web."""

    def __init__(
        self, client: Any, folder: Path, model: RealModel, *, most_tokens: int, **llm: Any
    ) -> None:
        self.store, self.jobs = SelectorStore(client, folder), Jobs(client, limits())
        options = {"timeout_s": TIMEOUT_S, "backoff_s": (0.0,), **llm}
        self.llm = LLM(model.base_url, "", model.name, **options)
        self.max_input_chars = round(most_tokens * 2.5)

    async def run(
        self, domain: str, pages: Sequence[StoredPage] | None = None, *, mode: str = "llm"
    ) -> Asked:
        """``pages``: of a template of the simulated web where none are given."""
        stored = made_pages(domain, 12) if pages is None else pages
        made = {f"f:{i}:1": page for i, page in enumerate(stored)}

        async def load(ref: str) -> StoredPage | None:
            return made.get(ref)

        generator = Generator(
            self.store, self.jobs, load, lambda url: PageContext(site_name=domain, language="vi"),
            llm=self.llm, mode=mode, max_input_chars=self.max_input_chars,
        )  # fmt: skip
        start = time.monotonic()
        refs = [(page.url, ref) for ref, page in made.items()]
        result = await generator.run(domain, forced=True, refs=refs)
        asked = Asked(
            domain,
            result,
            time.monotonic() - start,
            await self.jobs.client.hlen(keys.versions(domain)),
            self.store.active(domain) is not None,
        )
        asked.rules.update(refused_by(result))
        return asked


def refused_by(result: Result) -> list[str]:
    """The rules that refused, by name: the form of the answer, a field's validation."""
    if result.report is not None and not result.report.passed:
        return [
            f"{name}: {re.sub(r'[0-9]+', 'N', report.reason)}"
            for name, report in result.report.fields.items()
            if report.reason
        ]
    reason = re.sub(r"https?://\S+", "the server", result.reason)
    return [re.sub(r"[0-9]+", "N", reason.split(": ", 2)[1])[:70]] if ": " in reason else [reason]


@dataclass
class SmallPage:
    """As much of a site's page as a set needs: the model reads few tokens a second."""

    url: str
    body: bytes
    fetched: datetime
    headers: tuple[tuple[bytes, bytes], ...] = ((b"Content-Type", b"text/html; charset=utf-8"),)


_WORDS = [
    "council",
    "river",
    "bridge",
    "school",
    "garden",
    "market",
    "budget",
    "harbour",
    "museum",
    "library",
    "station",
    "forest",
    "theatre",
    "village",
    "hospital",
    "factory",
]


_NAMES = [
    ("story", "headline"), ("article-text", "article-title"), ("body-copy", "top-title"),
    ("post-content", "post-title"),
]  # fmt: skip


def small_pages(count: int = 12, site: int = 0) -> list[SmallPage]:
    """English articles of one template; each ``site`` has names and texts of its own."""
    return [_small_page(number, site) for number in range(count)]


def _small_page(page: int, site: int) -> SmallPage:
    number, (story, headline) = page + 12 * site, _NAMES[site % len(_NAMES)]
    first, second, third = (_WORDS[(number * step + step) % len(_WORDS)] for step in (1, 3, 5))
    title = f"The {first} will pay for the {second} near the old {third} number {number}"
    text = "".join(
        f"<p>In year {number + part} the {first} and the {second} met {part + 2} times about plan"
        f" {number}{part}, and the {third} was told of it by letter.</p>"
        for part in range(5)
    )
    stated = f'{{"@type": "NewsArticle", "headline": "{title}"}}'
    body = (
        f"<html lang=en><head><title>{title}</title><script type='application/ld+json'>{stated}"
        f"</script></head><body><h1 class={headline}>{title}</h1><div class={story}>{text}</div>"
        f"<div class=more><a href=/{second}>More of the {second}</a></div></body></html>"
    )
    url = f"https://small{site}.example/{first}-{number}"
    return SmallPage(url, body.encode(), datetime(2026, 11, 20, tzinfo=UTC))
