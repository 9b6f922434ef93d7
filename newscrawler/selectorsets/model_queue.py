"""Pages whose fields a model is asked for: the queue of them in Redis, the limits, the question.
The answer is data.

What an answer is worth is decided by newscrawler.extraction.grounding, never here.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from newscrawler.selectorsets import keys
from newscrawler.web.hostile import fence, without_unsafe

#: Part of the cache's key: change it with every change of prompt, schema or text.
PROMPT_VERSION = "direct-2026-11-21.1"
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "published": {"type": "string"},
        "authors": {"type": "array", "items": {"type": "string"}},
        "paragraphs": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "published", "authors", "paragraphs"],
    "additionalProperties": False,
}
#: Pages that wait at most; one more is not noted: it will be seen again when it is fetched again.
MOST_WAITING = 500
#: A worker that died with a page is followed by another after this.
LOCK_MS = 10 * 60_000
MOST_TRIES = 3


@dataclass(frozen=True)
class Waiting:
    """A stored page: its address, the site's id, the reference in the raw store."""

    url: str
    domain: str
    ref: str
    tries: int = 0


@dataclass(frozen=True)
class ExtractionLimits:
    """Pages a day, of the fleet and of one site; 0 = none. The model's budget (jobs.ModelBudget)
    holds beside them."""

    pages_per_day: int = 50
    pages_per_domain_per_day: int = 2


class ModelQueue:
    """``client`` is a redis.asyncio client."""

    def __init__(
        self, client: Any, limits: ExtractionLimits, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.client = client
        self.limits = limits
        self._clock = clock

    async def note(self, page: Waiting) -> bool:
        """False when the queue is full. A page that waits already keeps its tries and its pause."""
        known = await self.client.hget(keys.DIRECT, page.url)
        if known is None and await self.client.hlen(keys.DIRECT) >= MOST_WAITING:
            return False
        tries = json.loads(known)["tries"] if known else 0
        await self.client.hset(keys.DIRECT, page.url, json.dumps({**asdict(page), "tries": tries}))
        await self.client.zadd(keys.DIRECT_DUE, {page.url: self._ms()}, nx=True)
        return True

    async def waiting(self) -> int:
        return int(await self.client.hlen(keys.DIRECT))

    async def take(self) -> Waiting | None:
        """One that is due and that nobody is at; None when there is none. End it by
        done() or later()."""
        for raw in await self.client.zrangebyscore(keys.DIRECT_DUE, 0, self._ms(), start=0, num=8):
            url = keys.text(raw)
            if not await self.client.set(_lock(url), "1", nx=True, px=LOCK_MS):
                continue
            row = await self.client.hget(keys.DIRECT, url)
            if row is not None:
                return Waiting(**json.loads(row))
            await self.client.zrem(keys.DIRECT_DUE, url)
            await self.client.delete(_lock(url))
        return None

    async def done(self, page: Waiting) -> None:
        await self.client.hdel(keys.DIRECT, page.url)
        await self.client.zrem(keys.DIRECT_DUE, page.url)
        await self.client.delete(_lock(page.url))

    async def later(self, page: Waiting, ms: int, *, counts: bool = True) -> bool:
        """Tried again in ``ms``; False when that was its last try. ``counts`` False: it was
        not the page's fault."""
        tries = page.tries + counts
        if tries >= MOST_TRIES:
            await self.done(page)
            return False
        await self.client.hset(keys.DIRECT, page.url, json.dumps({**asdict(page), "tries": tries}))
        await self.client.zadd(keys.DIRECT_DUE, {page.url: self._ms() + ms})
        await self.client.delete(_lock(page.url))
        return True

    # ------------------------------------------------------------ limits
    async def reserve(self, domain: str) -> str:
        """Counts one page of today; the setting that forbids it, or "" when it
        may be asked about."""
        day = keys.budget(self._day())
        rules = (
            (
                f"direct:{domain}",
                self.limits.pages_per_domain_per_day,
                "LLM_EXTRACTION_PAGES_PER_DOMAIN_PER_DAY",
            ),
            ("direct", self.limits.pages_per_day, "LLM_EXTRACTION_PAGES_PER_DAY"),
        )
        taken: list[str] = []
        for (
            name,
            limit,
            setting,
        ) in rules:  # counted first: two workers at once do not go over it together
            taken.append(name)
            if int(await self.client.hincrby(day, name, 1)) > limit:
                await self._give_back(day, taken)
                return setting
        await self.client.expire(day, 172_800)
        return ""

    async def unreserve(self, domain: str) -> None:
        """No call was made after all."""
        await self._give_back(keys.budget(self._day()), [f"direct:{domain}", "direct"])

    async def _give_back(self, day: str, names: list[str]) -> None:
        for name in names:
            await self.client.hincrby(day, name, -1)

    def _ms(self) -> int:
        return round(self._clock() * 1000)

    def _day(self) -> str:
        return time.strftime("%Y%m%d", time.gmtime(self._clock()))


def _lock(url: str) -> str:
    return keys.lock("direct:" + hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()[:32])


# ---------------------------------------------------------------- the question
@cache
def system_prompt() -> str:
    return (
        importlib.resources.files("newscrawler.selectorsets") / "prompts" / "direct.md"
    ).read_text("utf-8")


@dataclass(frozen=True)
class Question:
    """``most_tokens``: of the answer. ``cut``: the first blocks alone are shown, and the last of
    them is ``last``: the article may go on behind it."""

    prompt: str
    digest: str
    most_tokens: int
    cut: bool
    last: str


def question(blocks: Sequence[str], max_chars: int) -> Question:
    """About the blocks of a page's visible text, cut at a block."""
    lines: list[str] = []
    size = 0
    for block in blocks:
        line = without_unsafe(block)
        size += len(line) + 1
        if size > max_chars:
            break
        lines.append(line)
    text = "\n".join(lines)
    digest = hashlib.sha256(f"{PROMPT_VERSION}\0{text}".encode("utf-8", "replace")).hexdigest()[:32]
    # An answer is a copy of a part of the text: at most as long as it, bytes / 2.5 tokens,
    # and the JSON around it.
    most = min(8_000, int(len(text.encode("utf-8", "replace")) / 2.5) + 300)
    cut = len(lines) < len(blocks)
    last = blocks[len(lines) - 1] if lines else ""
    return Question(fence("page", text, secrets.token_hex(6)), digest, most, cut, last)
