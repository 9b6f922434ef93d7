"""Sets that stop fitting: what each page says about its set, summed up in Redis
over the whole fleet.

A field of a page is good when the set found it and no metadata contradict it. ``DriftWatch`` is the
part on a page's way: a few microseconds, no I/O. ``Drift`` sends what piled up in one script call
and answers with the alarms. What is no fault of the set is kept apart: a page on which the generic
chain finds no article either (block page, consent, outage), or that says the same under every
address, counts for an alarm of its own and never for a regeneration.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import LIST_KINDS, Article, Kind, Outcome, Visit
from newscrawler.selectorsets import keys, scripts

TITLE, CONTENT, PUBLISHED, AUTHORS = 1, 2, 4, 8
BITS = {"title": TITLE, "content": CONTENT, "published": PUBLISHED, "authors": AUTHORS}
#: A page that is no article though its address said so.
WALL = "!"
WALL_REASONS = frozenset({"no title", "no content", "stub", "empty after cleaning"})
#: A page that no variant of a set with several fits counts against the set as a whole.
ANY_TEMPLATE = "*"
#: Failing pages with which a regeneration starts, and the most that are kept for it.
NEEDED = 12
KEPT = 24
#: A confidence that contradicting metadata lowered a set's value to (extraction.extract).
CONTRADICTED = 0.5
#: Texts that are this many times longer or shorter than the site's usual one, and beyond 3
#: standard deviations.
_ODD_LENGTH = math.log(3.5)
_LENGTHS_KNOWN = 20
_REMEMBERED = 12
_MOST_WAITING = 5_000
#: From the reading of a page to its item_scraped, at most: the commit of its batch.
_ON_ITS_WAY_MS = 3_000
_VOLATILE = re.compile(r"(?<![0-9a-f])(?=[a-f]*+\d)[0-9a-f]++")


@dataclass
class _Site:
    """What one worker remembers of a site for the checks that need more than the page. Not
    shared: it may be lost."""

    version: int
    defined: int  # bits of the fields that the set has selectors for
    templates: dict[str, str]  # content origin -> template, for sets with several variants
    one: str  # the only template's name; '' when there are several
    since_ms: int = 0  # pages fetched before it may have been read without the set
    texts: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    count: int = 0
    mean: float = 0.0
    var: float = 0.0


class DriftWatch:
    """Collects observations of one worker. ``take()`` hands them out."""

    def __init__(self) -> None:
        self._sites: dict[str, _Site] = {}
        self._rows: dict[str, tuple[int, list[list[Any]]]] = {}
        self.waiting = 0
        self.failing = False  # something that failed is among what waits

    def note(self, visit: Visit, selectors: SelectorSet) -> None:
        """One page of a site with an active set; cheap
        (tests/unit/selectorsets/test_drift.py measures it)."""
        article = visit.article
        if article is None:
            if visit.kind is Kind.ARTICLE and is_wall(visit):
                self._add(
                    selectors, [WALL, 0, 0, 1, visit.url, visit.raw_ref or "", "", _ms(visit)]
                )
                self.failing = True
        elif visit.kind not in LIST_KINDS and article.selector_version in (None, selectors.label):
            self._note_article(article, selectors, _ms(visit))

    def _note_article(self, article: Article, selectors: SelectorSet, fetched_ms: int) -> None:
        site = self._sites.get(selectors.domain)
        if site is None or site.version != selectors.version:
            site = self._sites[selectors.domain] = _site(selectors, fetched_ms)
        if article.selector_version is None and fetched_ms < site.since_ms:
            return  # read before the set was there, and stored after it
        template, seen, good = self._judged(article, site)
        page = [article.url, article.raw_ref or ""]
        if seen == good and self._lengthens_run(
            [template, seen, good], page, fetched_ms, selectors
        ):
            return
        fingerprint = "" if seen == good else _fingerprint(article, good)
        self._add(selectors, [template, seen, good, 1, *page, fingerprint, fetched_ms])
        self.failing |= seen != good

    def _lengthens_run(
        self, what: list[Any], page: list[str], fetched_ms: int, selectors: SelectorSet
    ) -> bool:
        """A run of good pages is one row: whether the page was added to the last one."""
        version, rows = self._rows.get(selectors.domain, (0, []))
        if not rows or version != selectors.version or rows[-1][:3] != what:
            return False
        last = rows[-1]
        last[3] += 1
        last[4:6], last[7] = page, fetched_ms
        return True

    def _add(self, selectors: SelectorSet, row: list[Any]) -> None:
        domain, version = selectors.domain, selectors.version
        if self.waiting >= _MOST_WAITING:  # Redis has been away for long: what is lost are counts
            self._rows.clear()
            self.waiting = 0
        known = self._rows.get(domain)
        if known is None or known[0] != version:
            known = self._rows[domain] = (version, [])
        known[1].append(row)
        self.waiting += 1

    def _judged(self, article: Article, site: _Site) -> tuple[str, int, int]:
        origins, sure = article.origins, article.confidence
        seen = site.defined
        good = 0
        for name, bit in BITS.items():
            if (
                seen & bit
                and origins.get(name, "").startswith("selector:")
                and sure.get(name, 1.0) > CONTRADICTED
            ):
                good |= bit
        content_by = origins.get("content", "")
        if good & CONTENT and not self._text_is_usual(article, site):
            good &= ~CONTENT
        template = site.one or site.templates.get(content_by, ANY_TEMPLATE)
        if template == ANY_TEMPLATE:
            seen, good = TITLE | CONTENT, good & TITLE
        return template, seen, good

    @staticmethod
    def _text_is_usual(article: Article, site: _Site) -> bool:
        """Not another article's text, and not of a length that this site's articles never have."""
        key = hash(article.content)
        for known, url in site.texts:
            if known == key and url != article.url:
                return False
        site.texts.append((key, article.url))
        length = math.log(len(article.content) + 1)
        away = length - site.mean
        if site.count >= _LENGTHS_KNOWN and abs(away) > _ODD_LENGTH and away * away > 9 * site.var:
            return False
        site.count += 1
        share = max(1 / site.count, 0.02)
        site.mean += share * away
        site.var += share * (away * away - site.var)
        return True

    def take(self) -> dict[str, tuple[int, list[list[Any]]]]:
        """Domain -> (version, rows); nothing waits after it."""
        out, self._rows = self._rows, {}
        self.waiting = 0
        self.failing = False
        return out


def is_wall(visit: Visit) -> bool:
    """The generic chain found no article where there should be one."""
    return visit.outcome is Outcome.CHALLENGE or (
        visit.outcome is Outcome.NOT_ARTICLE
        and (visit.reason in WALL_REASONS or visit.reason == "challenge")
    )


def _site(selectors: SelectorSet, now_ms: int) -> _Site:
    variants = selectors.variants
    defined = TITLE | CONTENT
    for name, bit in BITS.items():
        # A field that only some variants have is not expected of each page.
        if all(v.fields.get(name) for v in variants):
            defined |= bit
    templates: dict[str, str] = {}
    for variant in variants:
        for css in variant.content_root:
            templates.setdefault(f"selector:{css}", variant.template)
    one = variants[0].template if len(variants) == 1 else ""
    return _Site(selectors.version, defined, templates, one, now_ms + _ON_ITS_WAY_MS)


def _fingerprint(article: Article, good: int) -> str:
    """Equal for pages that say the same apart from numbers: '' where the set
    itself read the text."""
    if good & CONTENT or article.origins.get("content", "").startswith("selector:"):
        return ""
    text = _VOLATILE.sub("", f"{article.title}\n{article.content[:300]}".lower())
    return hashlib.blake2b(" ".join(text.split()).encode(), digest_size=8).hexdigest()


def _ms(visit: Visit) -> int:
    return round(visit.fetched.timestamp() * 1000) if visit.fetched else 0


# ---------------------------------------------------------------- Redis
@dataclass(frozen=True)
class Alarm:
    """``what``: drift | ready (enough failing pages for a job) | blocked | open
    (the wall is gone)."""

    domain: str
    what: str
    template: str
    field: str
    onset_ms: int
    fails: int


@dataclass(frozen=True)
class Evidence:
    """What a regeneration works with: failing and good pages as (url, raw ref), oldest first."""

    failing: list[tuple[str, str]]
    good: list[tuple[str, str]]
    onset_ms: int
    template: str = ""
    field: str = ""
    since_ms: int = (
        0  # what is to be repaired: before onset_ms where a change came to few pages first
    )


class Drift:
    """``client`` is a redis.asyncio client."""

    def __init__(self, client: Any, *, clock: Callable[[], float] = time.time) -> None:
        self.client = client
        self._clock = clock

    async def send(self, batch: dict[str, tuple[int, list[list[Any]]]]) -> list[Alarm]:
        """One script call for all domains of the batch."""
        if not batch:
            return []
        domains = list(batch)
        found = [keys.watch(d) for d in domains] + [keys.watched_pages(d) for d in domains]
        args = [
            json.dumps({"v": batch[d][0], "rows": batch[d][1]}, ensure_ascii=False) for d in domains
        ]
        raw = await scripts.run(self.client, "observe", found, [*args, NEEDED, KEPT])
        if not raw:
            return []
        return [
            Alarm(
                domains[int(e["i"]) - 1],
                e["what"],
                e["template"],
                e["field"],
                int(e["onset"]),
                int(e["fails"]),
            )
            for e in json.loads(raw)
        ]

    async def evidence(self, domain: str) -> Evidence:
        """Only pages from the time when the failures began: before it the site was another."""
        raw = await self.client.hget(keys.watch(domain), "alarm")
        alarm = json.loads(raw) if raw else {}
        onset = int(alarm.get("onset", 0))
        rows = await self.client.hgetall(keys.watched_pages(domain))
        failing, good = [], []
        for name, value in rows.items():
            row = json.loads(value)
            if row["ms"] < onset:
                continue
            if keys.text(name).startswith("ok:"):
                good.append((row["ms"], row["url"], row["ref"]))
            else:
                failing.append((row["ms"], keys.text(name), row["ref"]))
        return Evidence(
            [(url, ref) for _, url, ref in sorted(failing)],
            [(url, ref) for _, url, ref in sorted(good)],
            onset,
            str(alarm.get("template", "")),
            str(alarm.get("field", "")),
            int(alarm.get("since", onset)),
        )

    async def reset(self, domain: str, version: int | str | None) -> None:
        """Another set is active: watch that one from nothing. None: nobody is watched."""
        await self.client.delete(keys.watch(domain), keys.watched_pages(domain))
        if version is not None:
            await self.client.hset(keys.watch(domain), "v", str(version))

    async def rearm(self, domain: str, *, learn: bool) -> None:
        """The set stays though it failed: the next alarm needs new failures. ``learn``: what failed
        is normal from now on (odd pages that no set would read better); else it is not, and a set
        that fails on raises the next alarm."""
        raw = await self.client.hget(keys.watch(domain), "c")
        counters: dict[str, Any] = json.loads(raw) if raw else {}
        for counter in counters.values():
            if learn:
                counter["n"] += counter["pn"]
                counter["k"] += counter["pk"]
            counter["s"] = counter["pn"] = counter["pk"] = 0
            counter.pop("first", None)
        if counters:
            await self.client.hset(keys.watch(domain), "c", json.dumps(counters))
        await self.client.hdel(keys.watch(domain), "alarm", "ready")
        await self.client.delete(keys.watched_pages(domain))

    async def report(self, domain: str) -> dict[str, Any]:
        """For people: {"alarm": {...} | None, "blocked": bool, "fields": [{template,
        field, share, sum}...]}."""
        row = {keys.text(k): v for k, v in (await self.client.hgetall(keys.watch(domain))).items()}
        counters = json.loads(row["c"]) if "c" in row else {}
        fields = []
        for name, c in sorted(counters.items()):
            template, _, one = name.rpartition("|")
            if template != WALL:
                fields.append(
                    {
                        "template": template,
                        "field": one,
                        "pages": round(c["n"] + c["pn"]),
                        "failed": round(c["k"] + c["pk"], 1),
                        "sum": round(c["s"], 2),
                    }
                )
        alarm = json.loads(row["alarm"]) if "alarm" in row else None
        return {
            "alarm": alarm,
            "blocked": bool(counters.get("!|page", {}).get("open")),
            "fields": fields,
        }
