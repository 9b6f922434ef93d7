"""When a page was first published, and when it was changed: machine places first, then what a
reader sees. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice

from selectolax.lexbor import LexborNode

from newscrawler.extraction import dates, page_metadata, regions, time_zone_inference
from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.dates import Rules, When
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import foreign
from newscrawler.extraction.visible_dates import (
    FOREIGN,
    PUBLISHED,
    UPDATED,
    Stamp,
    from_blocks,
    from_script,
    from_statements,
    from_text,
    is_inside,
    labelled,
    named_stamps,
    near_headline,
    parsed,
)

_URL_DAY = re.compile(
    r"[/_.-]((?:19|20)\d{2})[/_.-]?(0[1-9]|1[0-2])[/_.-]?(0[1-9]|[12]\d|3[01])(?!\d)"
)
_URL_DAY_GLUED = re.compile(
    r"(?<=[a-z])((?:19|20)\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?!\d)", re.I
)
_URL_DAY_LOOSE = re.compile(r"/((?:19|20)\d{2})/(1[0-2]|0?[1-9])/(0[1-9]|[12]\d|3[01]|[1-9])(?=/)")
_URL_DAY_REVERSED = re.compile(
    r"/(0[1-9]|[12]\d|3[01])[-/.](0[1-9]|1[0-2])[-/.]((?:19|20)\d{2})(?!\d)"
)
_URL_MONTH_WORD = re.compile(r"/((?:19|20)\d{2})/([a-z]{3,9})/(0?[1-9]|[12]\d|3[01])(?=/)", re.I)
# Where an address has its day: pattern, year-month-day of its groups, trust; the first one counts.
_URL_DAYS = (
    (_URL_DAY, r"\1-\2-\3", 0.72),
    (_URL_DAY_LOOSE, r"\1-\2-\3", 0.72),
    (_URL_MONTH_WORD, r"\3 \2 \1", 0.72),
    (_URL_DAY_GLUED, r"\1-\2-\3", 0.66),
    (_URL_DAY_REVERSED, r"\3-\2-\1", 0.7),
)
_URL_LOCALE = re.compile(r"/([a-z]{2}[-_][a-z]{2})/", re.I)
# Below this a date may be another article's: paragraphs that begin with one are asked as well.
_UNSURE = 0.45
_MEDIA = re.compile(r"/(?:Video|Image|Audio|Media|Comment|UserComments|UserReview)\w*$")
_SAYINGS = ("review", "reviews", "comment")
_SAID_OF_PAGE = re.compile(r"/(?:Comment|UserComments|UserReview)$")
# Trust from which a place is a good source.
_GOOD = 0.75
# Time elements of a page that are read.
_MAX_TIMES = 40
# Of machine places that name the day of print, of an import or of the build as often as the
# first publication.
_WEAK = 0.62
_WEAK_METAS = (
    "date",
    "dc.date",
    "dcterms.date",
    "created",
    "dc.created",
    "time",
    "timestamp",
    "cre",
    "gen-date",
)
# Such as say that it is the publication's.
_STRONG_METAS = ("article:published", "og:published", "datepublished")
_TIME_DATA = ("data-datetime", "data-published", "data-time", "data-timestamp", "data-date")
_TIME_CSS = (
    "h1,h2,time,abbr.published,abbr[title],span[title*='/20'],span[title*='-20'],"
    + ",".join(f"[{name}]" for name in _TIME_DATA)
)


@dataclass(slots=True)
class Times:
    published: Stamp | None = None
    modified: Stamp | None = None


def rules_for(doc: Document, context: PageContext) -> Rules:
    if doc.date_rules is None or doc.date_rules[0] is not context:
        doc.date_rules = context, _rules_for(doc, context)
    how: Rules = doc.date_rules[1]
    return how


def _rules_for(doc: Document, context: PageContext) -> Rules:
    host = re.sub(r"^https?://", "", doc.url).partition("/")[0].partition(":")[0]
    root = doc.tree.root
    locale = (root.attributes.get("lang") or "") if root is not None else ""
    if "-" not in locale:
        og_locale = f"/{doc.meta_first('og:locale')}/"
        stated = _URL_LOCALE.search(doc.url) or _URL_LOCALE.search(og_locale)
        locale = stated[1] if stated else locale
    return dates.rules(context, host, doc.lang, locale)


def candidates(doc: Document, context: PageContext) -> Iterator[Stamp]:
    """Every date that any source has, in the order in which :func:`find` asks; find() stops
    where one is sure."""
    how = rules_for(doc, context)
    for source in (_from_json_ld, _from_meta, _from_hint, _from_itemprop):
        yield from source(doc, context, how)
    yield from _from_json_ld_page(doc, how)
    for shown in (time_stamps, named_stamps):
        yield from shown(doc, how)
    near = near_headline(doc, how)
    if near is not None:
        yield near
    for shown in (labelled, from_script, from_blocks, from_statements):
        yield from shown(doc, how)
    url = _from_url(doc, how)
    if url is not None:
        yield url
    yield from _from_library(doc, how)


def good_sources(doc: Document, context: PageContext) -> Iterator[Stamp]:
    """What may contradict a date: machine places, the day in the address, the first time
    element of the text."""
    how = rules_for(doc, context)
    for source in (_from_json_ld, _from_meta, _from_itemprop):
        yield from (s for s in source(doc, context, how) if s.trust >= _GOOD)
    url = _from_url(doc, how)
    if url is not None and url.trust > 0.7:
        yield url
    yield from islice((s for s in time_stamps(doc, how) if s.trust >= _GOOD), 1)


def find(doc: Document, context: PageContext) -> Times:
    """The best stamp of each kind; None where the page has none that can be read."""
    how = rules_for(doc, context)
    lost: set[date] = set()  # days of placeholders, which the library reads as well
    stamps = _of_machines(doc, context, how, lost)
    modified = _modified(doc, how)
    url = _from_url(doc, how)
    # What readers see is looked for where machine places are in doubt; None: it was not.
    visible: list[Stamp] | None = None
    if _is_of_import(stamps, modified):
        visible = [s for s in _from_time_elements(doc, how) if s.trust >= 0.8]
        if visible and visible[0].when.value < stamps[0].when.value - timedelta(days=2):
            stamps = visible
    elif not stamps or stamps[0].trust <= _WEAK:
        visible = list(_from_time_elements(doc, how))
        stamps.extend(visible)
    if not stamps:
        stamps.extend(_real(_from_json_ld_page(doc, how), lost))
    if url:
        stamps.append(url)
    if not _is_sure(_best(stamps), url, how):
        if visible is None and url:
            stamps.extend(_from_time_elements(doc, how))
        stamps.extend(from_text(doc, how))
        if _trust(stamps) <= _WEAK:
            stamps.extend(labelled(doc, how))
    _last_resorts(stamps, doc, how, lost)
    best = _choose(stamps, url, how)
    if best is not None:
        day = url.when if url is not None else None
        best.when = time_zone_inference.local(doc, best.when, day, how)
    return Times(best, modified)


def _is_of_import(stamps: list[Stamp], modified: Stamp | None) -> bool:
    """Published after its last change, by a meta element: the day of an import, if a reader sees an
    earlier one."""
    if not stamps or modified is None:
        return False
    is_later = stamps[0].when.value > modified.when.value
    return is_later and stamps[0].origin.startswith("meta:")


def _is_sure(best: Stamp | None, url: Stamp | None, how: Rules) -> bool:
    """A minute of some trust, on the day that the address states."""
    if best is None or best.trust < 0.7 or not best.when.has_time:
        return False
    return url is None or _is_day(best.when, url.when, how)


def _best(stamps: Iterable[Stamp]) -> Stamp | None:
    return max(stamps, key=lambda s: s.trust, default=None)


def _trust(stamps: list[Stamp]) -> float:
    return max((s.trust for s in stamps), default=0.0)


def _of_machines(doc: Document, context: PageContext, how: Rules, lost: set[date]) -> list[Stamp]:
    """What the page states for machines, up to the first place that states a sure minute."""
    stamps: list[Stamp] = []
    for source in (_from_json_ld, _from_meta, _from_hint, _from_itemprop):
        stamps.extend(_real(source(doc, context, how), lost))
        if stamps and stamps[0].trust >= 0.9 and _is_minute(stamps[0]):
            break
    return stamps


def _last_resorts(stamps: list[Stamp], doc: Document, how: Rules, lost: set[date]) -> None:
    """Adds what scripts, blocks of text and the library say, where nothing better is there."""
    if not stamps:
        stamps.extend(_real(from_script(doc, how), lost))
    if _trust(stamps) < _UNSURE:
        stamps.extend(from_blocks(doc, how))
    if not stamps:
        stamps.extend(islice(from_statements(doc, how), 1))
    if not stamps:
        others = page_metadata.of(doc).other_days | lost
        stamps.extend(s for s in _from_library(doc, how) if s.when.value.date() not in others)


def _is_minute(stamp: Stamp) -> bool:
    return stamp.when.has_time and stamp.when.has_zone


def _real(stamps: Iterable[Stamp], lost: set[date]) -> Iterator[Stamp]:
    """Without what a template states when it has no date; their days are added to ``lost``."""
    for stamp in stamps:
        if dates.is_placeholder(stamp.when):
            value = stamp.when.value
            lost |= {value.date(), value.astimezone(UTC).date()}
        else:
            yield stamp


def _is_day(when: When, day: When, how: Rules) -> bool:
    """Whether the instant falls on the day: as written, or on the site's clock when
    it is written in UTC."""
    if when.value.date() == day.value.date():
        return True
    return (
        when.has_zone
        and how.zone is not UTC
        and when.value.astimezone(how.zone).date() == day.value.date()
    )


def modified_of(doc: Document, context: PageContext) -> Stamp | None:
    """The stamp of the last change alone: cheap."""
    return _modified(doc, rules_for(doc, context))


def _choose(stamps: list[Stamp], url: Stamp | None, how: Rules) -> Stamp | None:
    """The most trusted; a day alone is completed by the clock of another stamp of that day."""
    best = _best(stamps)
    if best is None:
        return None
    if url is not None and not _is_day(best.when, url.when, how):
        best = _beside_url(best, url, stamps, how)
    if not best.when.has_time:
        other = _best(_clocks_of(stamps, best.when, how))
        if other is not None:
            return Stamp(other.when, other.origin, min(1.0, best.trust + 0.05))
    return best


def _beside_url(best: Stamp, url: Stamp, stamps: list[Stamp], how: Rules) -> Stamp:
    """What to believe where the address states another day.

    That day was set when the article was made: a stamp of the next day is an update or
    another clock.
    """
    distance = abs(best.when.value.date() - url.when.value.date())
    if distance > timedelta(days=1):
        return url if best.trust < 0.8 or dates.is_year_alone(best.when) else best
    if how.zone is UTC and not best.when.value.utcoffset():
        return best  # time_zone_inference finds the side of UTC
    same = [s for s in _clocks_of(stamps, url.when, how) if s is not url]
    return _best(same) or best


def _clocks_of(stamps: list[Stamp], day: When, how: Rules) -> list[Stamp]:
    return [s for s in stamps if s.when.has_time and _is_day(s.when, day, how)]


def _from_json_ld(doc: Document, context: PageContext, how: Rules) -> Iterator[Stamp]:
    for raw in page_metadata.of(doc).published_raw[:1]:
        yield from parsed(raw, how, "json-ld", 0.97)
    for raw in page_metadata.of(doc).published_raw[1:]:
        yield from parsed(raw, how, "json-ld", 0.6)


def _from_json_ld_page(doc: Document, how: Rules) -> Iterator[Stamp]:
    for raw in page_metadata.of(doc).page_published_raw[:2]:
        yield from parsed(raw, how, "json-ld:page", 0.8)


def _from_meta(doc: Document, context: PageContext, how: Rules) -> Iterator[Stamp]:
    for order, (name, raw) in enumerate(
        page_metadata.meta_values(doc, page_metadata.PUBLISHED_META)[:12]
    ):
        trust = 0.85
        if name in _WEAK_METAS:
            trust = _WEAK
        elif name == "datepublished" and raw in _of_others(doc, len(doc.meta[name]) > 1):
            trust = 0.5
        elif name.startswith(_STRONG_METAS):
            trust = 0.93
        yield from parsed(raw, how, f"meta:{name}", trust - 0.005 * order)


def _of_others(doc: Document, has_several: bool) -> set[str]:
    """What itemprop elements state of a comment or a review of the page and, where the page states
    several dates, of a video or a picture, and not of itself."""
    found = set()
    pattern = _MEDIA if has_several else _SAID_OF_PAGE
    for node in doc.named("meta"):
        if node.attributes.get("itemprop") != "datePublished":
            continue
        above = node.parent
        while above is not None and "itemscope" not in above.attributes:
            above = above.parent
        if above is None:
            continue
        is_said_of_page = above.attributes.get("itemprop") in _SAYINGS
        if is_said_of_page or pattern.search(above.attributes.get("itemtype") or ""):
            found.add((node.attributes.get("content") or "").strip())
    return found


def _from_hint(doc: Document, context: PageContext, how: Rules) -> Iterator[Stamp]:
    raw = (context.hint or {}).get("published")
    if isinstance(raw, datetime):
        raw = raw.isoformat()
    if isinstance(raw, str):
        yield from parsed(raw, how, "feed", 0.82)


def _from_itemprop(doc: Document, context: PageContext, how: Rules) -> Iterator[Stamp]:
    parts = regions.of(doc)
    for node in doc.tree.css(
        '[itemprop~="datePublished"],[property="datePublished"],[pubdate],[itemprop~="dateCreated"]'
    )[:6]:
        if node.tag == "meta" or foreign(node, FOREIGN, parts):
            continue
        yield from parsed(_stated_time(node, " "), how, "itemprop", 0.9)


def _stated_time(node: LexborNode, separator: str = "") -> str:
    attributes = node.attributes
    stated = attributes.get("datetime") or attributes.get("content")
    return stated or node.text(deep=True, separator=separator)


def _as_shown(when: When, label: str, how: Rules) -> When:
    """The attribute's instant, unless the label beside it says more: another day as the
    publication's, or the zone."""
    shown = dates.parse(label[:80], how)
    if shown is None:
        return when
    if PUBLISHED.search(label) and abs(shown.value - when.value) > timedelta(days=1, hours=14):
        return shown
    same_clock = shown.has_time and shown.value.replace(
        tzinfo=None, second=0
    ) == when.value.replace(tzinfo=None, second=0)
    if not when.has_zone and shown.has_zone and same_clock:
        return When(when.value.replace(tzinfo=shown.value.tzinfo), True, True)
    return when


def _from_time_elements(doc: Document, how: Rules) -> Iterator[Stamp]:
    best = max(time_stamps(doc, how), key=lambda s: s.trust, default=None)
    if best is not None:
        yield best


def time_stamps(doc: Document, how: Rules) -> Iterator[Stamp]:
    """``time`` elements and their like, in page order."""
    parts = regions.of(doc)
    before = parts.first is not None  # a site's header may show today's date
    order = -1
    for node in doc.tree.css(_TIME_CSS)[:80]:
        if node.tag in ("h1", "h2"):
            before = before and node.mem_id != parts.first
            continue
        order += 1
        if order == _MAX_TIMES:
            return
        attributes = node.attributes
        raws = [attributes.get(k) for k in ("datetime", *_TIME_DATA, "title")]
        label = collapse(node.text(deep=True, separator=" "))
        filled = filter(None, [*raws, label])
        stamp = next((s for raw in filled for s in parsed(raw, how, "time", 0.8)), None)
        if stamp is None:
            continue
        stamp.when = _as_shown(stamp.when, label, how)
        stamp.trust -= 0.004 * order
        if foreign(node, FOREIGN, parts) or is_inside(node, "blockquote"):
            stamp.trust -= 0.35  # a quoted post has its own time
        stamp.trust += _gain_of_words(node, label)
        if before and not raws[0]:
            stamp.trust -= 0.05
        if order and node.parent is not None and is_inside(node, "a"):
            stamp.trust -= 0.1
        yield stamp


def _gain_of_words(node: LexborNode, label: str) -> float:
    """What the words in a time element, around it and in its names add to its trust."""
    names = _names(node)
    if UPDATED.search(names) or UPDATED.search(label) or UPDATED.search(_before(node)):
        return -0.15
    return 0.05 if PUBLISHED.search(names) or PUBLISHED.match(label) else 0.0


def _from_url(doc: Document, how: Rules) -> Stamp | None:
    path = re.sub(r"^https?://[^/]+", "", doc.url.partition("?")[0])
    for pattern, order, trust in _URL_DAYS:
        match = pattern.search(path)
        if match:
            return next(parsed(match.expand(order), how, "url", trust), None)
    return None


def _from_library(doc: Document, how: Rules) -> Iterator[Stamp]:
    """htmldate, without its extensive search: that one guesses."""
    tree = doc.lxml
    if tree is None:
        return
    import htmldate  # 0.07 s that a worker whose sites all have sets never pays

    try:
        found = htmldate.find_date(tree, url=doc.url, original_date=True, extensive_search=False)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return
    if found:
        yield from parsed(found, how, "htmldate", 0.4)


def _modified(doc: Document, how: Rules) -> Stamp | None:
    return next(_modified_stamps(doc, how), None)


def _modified_stamps(doc: Document, how: Rules) -> Iterator[Stamp]:
    for raw in page_metadata.of(doc).modified_raw:
        yield from parsed(raw, how, "json-ld", 0.95)
    for name, raw in page_metadata.meta_values(doc, page_metadata.MODIFIED_META)[:6]:
        yield from parsed(raw, how, f"meta:{name}", 0.85)
    if b"dateModified" in doc.body:
        for node in doc.tree.css('[itemprop~="dateModified"]')[:3]:
            yield from parsed(_stated_time(node), how, "itemprop", 0.85)


def _names(node: LexborNode) -> str:
    """Class, id and itemprop words of a node and its parent."""
    out: list[str] = []
    for one in (node, node.parent):
        if one is not None and one.tag not in ("body", "html", "article", "main"):
            attributes = one.attributes
            out.extend(attributes.get(k) or "" for k in ("class", "id", "itemprop"))
    return " ".join(out)


def _before(node: LexborNode) -> str:
    """The end of the text before the node."""
    previous = node.prev
    if previous is None:
        return ""
    if previous.tag == "-text":
        return collapse(previous.text_content or "")[-40:]
    return collapse(previous.text(deep=True))[-40:] if previous.first_child else ""
