"""How a visit ends: from a fetched page and what was read of it to the visit that the
frontier is told. Pure.

:func:`decide` is the one place that gives a visit its outcome when its answer is known;
docs/frontier.md has the table of outcomes, tests/unit/crawl/test_decision.py a row for each. Only
what happens to an article afterwards can change it: a pipeline that drops or fails
(newscrawler.scheduler).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from newscrawler.crawl.page import Page
from newscrawler.discovery import article_revisits, list_revisits
from newscrawler.discovery.link_classes import LinkClass
from newscrawler.discovery.links import FoundLinks
from newscrawler.discovery.list_revisits import ListVisit, Memory
from newscrawler.discovery.sites import Refusal
from newscrawler.extraction.extract import Extraction, article_values
from newscrawler.frontier.types import RobotsAnswer
from newscrawler.items import VERSIONED, Article, Kind, Link, Outcome, Visit

#: Redirects that may follow one another before a URL is given up (RFC 9110 15.4 leaves it
#: to the client).
MAX_REDIRECTS = 5
#: Seconds until a text that did not show that it is an article is looked at again, once, if nothing
#: was known of its site's addresses: feeds, lists and some dozen other pages have spoken by then.
SECOND_LOOK_S = 3600.0


@dataclass(frozen=True)
class VisitRules:
    """Settings that decide about visits. Seconds; 0 or None = no such limit."""

    max_tries: int
    max_age_s: float | None = None  # how old an article may be at its first visit
    list_sample: float = 0.0  # share of changed list pages that is kept raw
    list_fixed_s: float = 0.0  # every list at this interval, whatever it shows

    def __post_init__(self) -> None:
        if self.list_fixed_s < 0:
            raise ValueError(
                f"LIST_INTERVAL_FIXED_S is {self.list_fixed_s:g}; it must be 0 (each list at its"
                " own pace) or more"
            )


# ---------------------------------------------------------------- what was read of a page
@dataclass(slots=True)
class NoAnswer:
    """A middleware refused the request or the answer, or the fetch failed
    (web.outcomes.judge_error)."""

    outcome: Outcome
    reason: str


@dataclass(slots=True)
class Redirect:
    """``target``: the absolute address, None = there is none of http; ``found``: what
    the sites say of it."""

    target: str | None = None
    found: Link | Refusal | None = None


@dataclass(slots=True)
class Unparsed:
    """The page was too much for the processes that read pages."""

    reason: str


@dataclass(slots=True)
class NoList:
    """A feed or sitemap was expected, and the body is none."""

    reason: str


@dataclass(slots=True)
class ListRead:
    """A home, a section, a feed or a sitemap. ``announced``: lists that it names and the
    fleet did not know."""

    found: FoundLinks
    entries: Sequence[Any] = ()  # of a feed or sitemap
    may_keep: bool = False  # its raw page
    announced: list[Link] = field(default_factory=list)


@dataclass(slots=True)
class HtmlRead:
    """Any other page. ``robots``: directives of header and page; ``extraction`` None: it was not
    read as an article. ``announced``: of a section, as in :class:`ListRead`."""

    found: FoundLinks
    robots: frozenset[str] = frozenset()
    extraction: Extraction | None = None
    form: str | None = None  # of a page that was not read as an article (teasers.form)
    is_open: bool = False  # its site has not taught yet what such addresses lead to
    in_menu: bool = False  # a menu of the site names it, though it looks like an article's address
    announced: list[Link] = field(default_factory=list)


@dataclass(slots=True)
class RobotsRead:
    """robots.txt, after its redirects."""

    answer: RobotsAnswer
    links: list[Link] = field(default_factory=list)


#: None: the body was not read, as the status or the digest of the body says enough.
Result = NoAnswer | Redirect | Unparsed | NoList | ListRead | HtmlRead | RobotsRead | None


# ---------------------------------------------------------------- what a page proved to be
#: Reasons of a page that is no article which say what it is instead, and forms of pages that were
#: not read as one (teasers.form). A stub may be an article's first minutes, or one that is paid
#: for: it says nothing of others.
_REASONS = {"listing": LinkClass.LIST, "page": LinkClass.OTHER}
_FORMS = {"list": LinkClass.LIST, "": LinkClass.OTHER}


def class_of(result: HtmlRead) -> LinkClass | None:
    """The class of the page by its body. None: it does not say."""
    if result.extraction is None:
        return None if result.form is None else _FORMS.get(result.form)
    if result.extraction.is_article:
        return LinkClass.ARTICLE
    if result.extraction.reason == "page" and result.form == "text":
        return None  # it may be an article that shows no date
    return _REASONS.get(result.extraction.reason)


def is_section(result: HtmlRead) -> bool:
    """Whether a page that was not queued as a list is one: a menu names it, and it is no
    article though its address looks like one's."""
    return result.in_menu and class_of(result) in (LinkClass.LIST, LinkClass.OTHER)


# ---------------------------------------------------------------- the decision
def decide(page: Page, result: Result, rules: VisitRules) -> Visit:
    match result:
        case HtmlRead():
            return _html(page, result, rules)
        case ListRead():
            return _list(page, result, rules)
        case None:
            return _by_status(page, rules)
        case Redirect():
            return _redirected(page, result, rules)
        case NoAnswer():
            return _no_answer(page, result, rules)
        case NoList():
            return _no_list(page, result, rules)
        case Unparsed():
            return _visit(page, Outcome.RETRY, f"unreadable: {result.reason}")
        case RobotsRead():
            return _visit(
                page,
                Outcome.DONE,
                status=result.answer.status,
                robots=result.answer,
                links=result.links,
            )


def _by_status(page: Page, rules: VisitRules) -> Visit:
    if page.is_unchanged:
        return _unchanged(page, rules)
    if page.outcome is Outcome.GONE and page.is_list:
        return _missing(page, page.outcome, page.reason, str(page.status), rules)
    return _visit(page, page.outcome, page.reason)


def _unchanged(page: Page, rules: VisitRules) -> Visit:
    if page.is_list:
        memory = _memory(page)
        seen = _list_visit(page, is_lead=memory.lead)
        return _list_planned(
            page, Outcome.UNCHANGED, "", list_revisits.unchanged(seen, memory), rules
        )
    is_article = bool(page.lease.content_state)
    return _visit(
        page, Outcome.UNCHANGED, next_visit_ms=_article_visit_ms(page) if is_article else None
    )


def _no_answer(page: Page, result: NoAnswer, rules: VisitRules) -> Visit:
    if result.reason == "type" and page.kind in (Kind.FEED, Kind.SITEMAP):
        note = "no feed or sitemap, but something else"
        return _missing(page, result.outcome, result.reason, note, rules)
    robots = RobotsAnswer(status=0, body=b"") if page.kind is Kind.ROBOTS else None
    return _visit(page, result.outcome, result.reason, robots=robots)


def _redirected(page: Page, result: Redirect, rules: VisitRules) -> Visit:
    """The target is a URL of its own in the frontier; the same page under another
    spelling is fetched next."""
    lease, found = page.lease, result.found
    if result.target is None:
        if page.location:  # file:, ftp:, javascript:
            return _visit(page, Outcome.REFUSED, "scheme")
        return _visit(page, Outcome.FAILED, "redirect without a target")
    moved = list_revisits.moved(_memory(page), result.target) if page.is_list else None
    if isinstance(found, Refusal):
        if moved is None:
            return _visit(page, Outcome.REFUSED, found.reason)
        # the site's own list sends us where we may not go: an operator should know
        return _list_planned(page, Outcome.REFUSED, found.reason, moved, rules)
    assert found is not None
    hops = int((lease.hint or {}).get("hops", 0)) + 1
    if hops > MAX_REDIRECTS:
        return _visit(page, Outcome.FAILED, "redirect loop")
    if found.url_id == lease.url_id:
        # the same page under another spelling: one try of the URL, so that a circle of them ends
        return _visit(page, Outcome.RETRY, "moved", moved_to=result.target)
    hint = {**(lease.hint or {}), "hops": hops}
    kind = page.kind if found.kind is Kind.PAGE else found.kind
    if moved is None:
        # One that was stored comes again at its times: until the other address is stored, too, it
        # is not known whether that is the same article (ingest.note_moved).
        return _visit(
            page,
            Outcome.REDIRECTED,
            links=[replace(found, hint=hint, kind=kind)],
            next_visit_ms=_article_visit_ms(page) if lease.content_state else None,
        )
    hint["lead"] = page.is_lead
    links = [replace(found, hint=hint, kind=kind)]
    return _list_planned(page, Outcome.REDIRECTED, "", moved, rules, links=links)


def _no_list(page: Page, result: NoList, rules: VisitRules) -> Visit:
    """Tried again, and when it stays so, gone."""
    if page.lease.tries + 1 >= rules.max_tries:
        return _missing(page, Outcome.GONE, result.reason, result.reason, rules)
    return _visit(page, Outcome.RETRY, result.reason)


def _missing(page: Page, outcome: Outcome, reason: str, note: str, rules: VisitRules) -> Visit:
    """There is no list. One that was only looked for is not looked for again."""
    if (page.lease.hint or {}).get("probe"):
        return _visit(page, outcome, reason, next_visit_ms=0)
    memory = list_revisits.missing(_memory(page), note, page.kind)
    return _list_planned(page, outcome, reason, memory, rules)


def _list(page: Page, result: ListRead, rules: VisitRules) -> Visit:
    """Unchanged when its set of links is; one new link is a change."""
    found, entries = result.found, result.entries
    # a sitemap with titles and times of publication is a news sitemap, whoever named it
    is_news = page.kind is Kind.SITEMAP and any(
        getattr(e, "title", None) and e.published for e in entries
    )
    before = _memory(page)
    seen = _list_visit(page, is_lead=is_news)
    seen.ids, seen.new = found.ids, found.links
    seen.newest_s = list_revisits.newest_s(entries)
    after = list_revisits.plan(seen, before)
    is_unchanged = after.digest == before.digest
    is_in_sample = page.digest[0] < 256 * rules.list_sample  # the same on every worker
    announced = {link.url_id for link in result.announced}
    links = [*result.announced, *(x for x in found.links if x.url_id not in announced)]
    return _list_planned(
        page,
        Outcome.UNCHANGED if is_unchanged else Outcome.DONE,
        "",
        after,
        rules,
        links=links if announced else found.links,
        keep_raw=result.may_keep and is_in_sample and not is_unchanged,
        **_content(page),
    )


def _html(page: Page, result: HtmlRead, rules: VisitRules) -> Visit:
    read = {"links": [*result.found.links, *result.announced], **_content(page)}
    extraction = result.extraction
    if "noindex" in result.robots:
        return _visit(page, Outcome.REFUSED, "noindex", **read)
    if is_section(result):  # it comes again, as sections do
        read["next_visit_ms"] = page.now_ms + round(1000 * list_revisits.FIRST_S[Kind.SECTION])
    if _may_prove_one(page, result):
        # no digest, no ETag: the same bytes are to be read once more
        read |= {"digest": b"", "etag": None, "last_modified": None}
        read["next_visit_ms"] = page.now_ms + round(1000 * SECOND_LOOK_S)
    if extraction is None:
        return _visit(page, Outcome.NOT_ARTICLE, "page", **read)
    if not extraction.is_article:
        # one that was expected is kept, so that it can be looked at again
        keep_raw = page.kind is Kind.ARTICLE
        return _visit(page, Outcome.NOT_ARTICLE, extraction.reason, keep_raw=keep_raw, **read)
    if _is_too_old(page, extraction, rules):
        return _visit(page, Outcome.REFUSED, "age", **read)
    read["next_visit_ms"] = _article_visit_ms(page)
    digest = fields_digest(extraction)
    if digest == page.lease.content_state:  # only what surrounds the article changed
        return _visit(page, Outcome.UNCHANGED, **read)
    return _visit(
        page,
        Outcome.DONE,
        content_state=digest,
        article=_article(page, extraction),
        keep_raw="noarchive" not in result.robots,
        **read,
    )


def _may_prove_one(page: Page, result: HtmlRead) -> bool:
    """A text at an address of which nothing is known yet: once more, when more is."""
    reason = "page" if result.extraction is None else result.extraction.reason
    is_first = not page.lease.last_visit_ms
    return is_first and result.is_open and result.form == "text" and reason == "page"


def _is_too_old(page: Page, extraction: Extraction, rules: VisitRules) -> bool:
    published = extraction.published.value
    if published is None or not rules.max_age_s or page.lease.digest:  # stored by now
        return False
    return bool((page.fetched - published).total_seconds() > rules.max_age_s)


# ---------------------------------------------------------------- parts of a visit
def _visit(page: Page, outcome: Outcome, reason: str = "", **more: Any) -> Visit:
    lease = page.lease
    values: dict[str, Any] = {
        "status": page.status,
        "etag": page.etag,
        "last_modified": page.last_modified,
        "digest": lease.digest,
        "content_state": lease.content_state,
        "retry_after_s": page.retry_after_s,
        **more,
    }
    return Visit(
        url=lease.url,
        outcome=outcome,
        reason=reason,
        kind=page.kind,
        site=lease.site,
        domain=lease.domain,
        fetched=page.fetched,
        lease=lease,
        **values,
    )


def _content(page: Page) -> dict[str, Any]:
    """Of a page whose body was read."""
    return {"digest": page.digest, "body": page.body, "response_headers": page.headers}


def _memory(page: Page) -> Memory:
    return Memory.read(page.lease.content_state)


def _list_visit(page: Page, *, is_lead: bool) -> ListVisit:
    last_s = page.lease.last_visit_ms // 1000
    return ListVisit(
        page.kind,
        page.now_ms // 1000,
        last_s,
        is_lead=is_lead or page.is_lead,
        rhythm=page.rhythm,
    )


def _list_planned(
    page: Page, outcome: Outcome, reason: str, memory: Memory, rules: VisitRules, **more: Any
) -> Visit:
    """A visit of a list page: ``memory`` says when the next one is."""
    is_fixed = rules.list_fixed_s and not memory.misses
    pause_s = rules.list_fixed_s if is_fixed else memory.interval_s
    return _visit(
        page,
        outcome,
        reason,
        content_state=memory.pack(),
        next_visit_ms=page.now_ms + round(1000 * pause_s),
        **more,
    )


def _article_visit_ms(page: Page) -> int | None:
    return article_revisits.article_visit_ms(page.now_ms, page.lease.discovered_ms)


def fields_digest(extraction: Extraction) -> bytes:
    """Equal when the fields that make a version compare equal; one digit makes it another."""
    parts = [_as_text(getattr(extraction, name).value) for name in VERSIONED]
    return hashlib.blake2b(
        "\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "|".join(value) if isinstance(value, list) else value or ""


def _article(page: Page, extraction: Extraction) -> Article:
    lease = page.lease
    return Article(
        id=lease.url_id.hex(),
        url=lease.url,
        site=lease.site,
        discovered=datetime.fromtimestamp(lease.discovered_ms / 1000, UTC),
        fetched=page.fetched,
        **article_values(extraction),
    )
