"""Which links of a site lead to articles, which to lists, which to neither: learned from the site
itself. Pure.

The address of a page has a shape: its folders, the number of words of its last part, digits,
ending, parameters. What pages of a shape turned out to be, what feeds and sitemaps name and where
links stand in the page are counted by shape, at four levels from fine to coarse; a link is of the
class of the finest shape that is known well enough. Some addresses are known by themselves: those
of the menu, and pages whose shape says something else than they turned out to be.

The counts are kept by newscrawler.crawl.link_learning, for the whole fleet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from newscrawler.discovery import articles


class LinkClass(StrEnum):
    """What a page is for a crawl. ``OTHER``: contact, log-in, "About us" and the like."""

    ARTICLE = "article"
    LIST = "list"
    OTHER = "other"


class Source(StrEnum):
    """Who says so. ``PAGE``: a page of this shape was read; ``NAMED``: a feed or news sitemap names
    the address with title and time; ``TEASER``: a headline on a list page links to it; ``MENU``: a
    menu does, under a short name."""

    PAGE = "page"
    NAMED = "named"
    TEASER = "teaser"
    MENU = "menu"


CLASSES = tuple(LinkClass)
_SOURCES = tuple(Source)
#: Those that say what the pages of a shape are; the menu speaks of single addresses.
_TELLING = (Source.PAGE, Source.NAMED, Source.TEASER)
#: Pages that a shape weighs at most. A site that gives a shape another meaning is believed after
#: two to three times as many (docs/sites.md), and one odd page in a hundred changes nothing.
MOST_COUNTED = 120
#: What a count of each source weighs; a headline may lead to a topic as well.
_WEIGHTS = {Source.PAGE: 1.0, Source.NAMED: 1.0, Source.TEASER: 0.34, Source.MENU: 1.0}
#: A shape is known from this weight on, by level, and when this share of it is of one class.
_ENOUGH = (2.0, 2.0, 3.0, 4.0)
_PURE = 0.85
#: A menu with so many addresses of a shape makes lists of all of them, where nobody else speaks.
_MENU_ENOUGH = 2
#: A headline has so many words.
_SLUG_WORDS = 4
#: Digits of an id; shorter numbers are those of pages, parts, sections.
_ID_DIGITS = 5

_EXT = re.compile(r"\.([a-z][a-z0-9]{0,9})$")
# Bounded, so that each place of a long part costs no more than a few groups.
_TAIL = re.compile(r"(?:^|(?<=[-_.a-z]))([a-z]{0,6}\d{1,24}(?:[a-z]{1,6}\d{1,24}){0,8})$")
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")
_HEX = re.compile(r"(?:^|[-_])(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}$|[0-9a-f]{8}-[0-9a-f]{4}-")
_FOLDER = re.compile(r"/=[^/]*")
_YEAR = re.compile(r"(?:19|20)\d\d$")
#: Words of the last part: 1, 2, 3, 4 to 5, more.
_BUCKETS = "abcddE"
#: The first levels, at which folders are told by their names.
_WITH_FOLDER = 2
_SHORT, _LONG = re.compile(r"(?<=/)[abc](?=$|[-.?/])"), re.compile(r"(?<=/)[dE](?=$|[-.?/])")
#: An id behind the words: how many these are says nothing.
_WITH_ID = re.compile(r"(?<=/)[sl](?=-[a-z]*##)")
_IN_FOLDER = re.compile(r"=|#[5-9]")
#: The page number at the end of a list's address, and as a parameter.
_PAGING = re.compile(r"(?:[-/]?(?:page|trang|pg|p)[-/]?\d{1,3})(?=(?:\.\w{1,6})?/?$)", re.I)
_PAGING_QUERY = re.compile(r"(?:^|&)(?:v?page|pg|p|trang|paged)=\d{1,3}(?=&|$)", re.I)


@lru_cache(maxsize=4096)
def shapes(path: str, query: str = "") -> tuple[str, str, str, str]:
    """The shape of an address at four levels, finest first: ``/=the-thao/E-#7.html`` (folder as it
    is, more than five words, a number of seven digits), ``/=the-thao/w-##.html``,
    ``/w/E-#7.html``, ``/w/w-##.html``."""
    lower = path.lower()
    ext = _EXT.search(lower)
    stem = lower[: ext.start()] if ext else lower
    parts = [part for part in stem.split("/") if part]
    above = "".join(f"/{_folder(part)}" for part in parts[:-1])
    last = f"/{_last(parts[-1])}" if parts else "/"
    end = (ext.group(0) if ext else "") + ("/" if lower.endswith("/") and parts else "")
    if query:
        end += "?" + "&".join(sorted(_parameter(pair) for pair in query.lower().split("&")))
    fine = f"{above}{last}{end}"
    return _levels(fine)


@lru_cache(maxsize=4096)
def _levels(fine: str) -> tuple[str, str, str, str]:
    pooled = _pooled(fine)
    return fine, pooled, _FOLDER.sub("/w", fine), _FOLDER.sub("/w", pooled)


def _pooled(shape: str) -> str:
    """Few words or many, before an id any number of them; ids of any length."""
    found = _LONG.sub("l", _SHORT.sub("s", shape))
    found = re.sub(r"#(\d+)", lambda n: "##" if int(n[1]) >= _ID_DIGITS else "#", found)
    return _WITH_ID.sub("w", found)


def _folder(part: str) -> str:
    """A short name is kept."""
    if _NUMBER.search(part):
        return _last(part)
    return f"={part}" if len(_WORD.findall(part)) <= 3 else "E"


def _last(part: str) -> str:
    if _YEAR.match(part):
        return "Y"
    if _HEX.search(part):
        return "x"
    tail = _TAIL.search(part)
    number = _NUMBER.sub(lambda n: f"#{len(n[0])}", tail.group(1)) if tail else ""
    words = len(_WORD.findall(part[: tail.start()] if tail else part))
    if (
        tail
        and words >= _SLUG_WORDS
        and tail.group(1).isdigit()
        and len(tail.group(1)) < _ID_DIGITS
    ):
        words, number = words + 1, ""  # a year or a score at the end of a headline
    if not words:
        return number or "-"
    bucket = _BUCKETS[min(words, len(_BUCKETS)) - 1]
    return f"{bucket}-{number}" if number else bucket


def _parameter(pair: str) -> str:
    name, _, value = pair.partition("=")
    return f"{name}=#" if value.isascii() and value.isdigit() else f"{name}=w"


def unpaged(path: str, query: str = "") -> str:
    """The address (path and query) of the list whose later page this is, else the same."""
    query = _PAGING_QUERY.sub("", query).strip("&")
    path = _PAGING.sub("", path)
    return f"{path}?{query}" if query else path


def bare(address: str) -> str:
    """An address below its host, without slash and ending: later pages differ in both."""
    return re.sub(r"\.\w{1,6}$", "", address.rstrip("/"))


#: How the fields of rules begin (second_addresses.py): addresses that followed one, articles at
#: home where it would change the address. "twin" is an old word, kept as fleets have it in Redis.
SECOND, OWN = "twin", "own"


def field_of(source: Source, class_: LinkClass, shape: str) -> str:
    """The name under which a count is kept."""
    return f"{source} {class_} {shape}"


def known_field(class_: LinkClass, address: str) -> str:
    return f"known {class_} {address}"


def _counted(name: str) -> tuple[Source, LinkClass, str] | None:
    """Source, class and shape of a field that :func:`field_of` made; None of another one."""
    first, _, rest = name.partition(" ")
    class_, _, shape = rest.partition(" ")
    if first not in _SOURCES or class_ not in CLASSES or not shape:
        return None
    return Source(first), LinkClass(class_), shape


def shape_of(name: str) -> str:
    """Of a field that counts pages, names or headlines of a shape; "" of another one."""
    told = _counted(name)
    return told[2] if told is not None and told[0] in _TELLING else ""


def bounded(counts: Mapping[str, int], shape: str) -> dict[str, int]:
    """The fields of a shape that weighs more than MOST_COUNTED, made smaller together: what pages
    of it turned out to be lately then counts more than what they were once. {}: it weighs less.

    By a quarter at once, as a single page of another class would be rounded to nothing else."""
    fields = {
        name: count
        for source in _TELLING
        for class_ in CLASSES
        if (count := counts.get(name := field_of(source, class_, shape), 0))
    }
    total = sum(fields.values())
    if total <= MOST_COUNTED:
        return {}
    return {name: count * MOST_COUNTED * 3 // (4 * total) for name, count in fields.items()}


def outdated(counts: Mapping[str, int], shape: str, class_: LinkClass) -> dict[str, int]:
    """The fields that say of a shape that it is of another class, with 0: to be forgotten."""
    others = [one for one in CLASSES if one is not class_]
    names = [field_of(source, one, shape) for source in _TELLING for one in others]
    return {name: 0 for name in names if counts.get(name)}


def faded(counts: Mapping[str, int]) -> dict[str, int]:
    """All counts of shapes a quarter smaller, 0 = to be forgotten: what a site uses no more leaves
    room for what it uses now. Menus, single addresses and rules of second addresses are kept."""
    found = {}
    for name, count in counts.items():
        told = _counted(name)
        if told is not None and told[0] is not Source.MENU:
            found[name] = count * 3 // 4
    return found


@dataclass(slots=True)
class _Counts:
    """Of one shape: source -> class -> count."""

    by: dict[Source, dict[LinkClass, int]] = field(default_factory=dict)

    def put(self, source: Source, class_: LinkClass, count: int) -> None:
        mine = self.by.setdefault(source, {})
        if count:
            mine[class_] = count
        else:
            mine.pop(class_, None)

    def join(self, other: _Counts) -> None:
        for source, counts in other.by.items():
            mine = self.by.setdefault(source, {})
            for class_, count in counts.items():
                mine[class_] = mine.get(class_, 0) + count

    def weights(self) -> dict[LinkClass, float]:
        """The menu is left out: its own addresses are known by themselves."""
        found = dict.fromkeys(CLASSES, 0.0)
        for source, counts in self.by.items():
            if source is not Source.MENU:
                for class_, count in counts.items():
                    found[class_] += _WEIGHTS[source] * count
        return found

    def told(self) -> str:
        parts = [
            f"{source} {', '.join(f'{count} {class_}' for class_, count in counts.items())}"
            for source, counts in self.by.items()
            if counts
        ]
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``is_of_page``: the page itself was read."""

    class_: LinkClass
    text: str
    is_of_page: bool = False
    counts: _Counts | None = None

    @property
    def weight(self) -> float:
        """Of the counts that say so."""
        return sum(self.counts.weights().values()) if self.counts is not None else 0.0

    @property
    def why(self) -> str:
        """For an operator."""
        return self.text if self.counts is None else f"{self.text}: {self.counts.told()}"


class SiteClasses:
    """What is known of one site. ``counts``: field -> count, see :func:`field_of`; ``menu``:
    addresses (path and query) of its sections, those that sites.json names too.

    Counts are kept by the finest shape; those of the coarser ones are summed up when they are asked
    for, and again after one of their parts has changed.
    """

    def __init__(self, counts: Mapping[str, int] | None = None, menu: Iterable[str] = ()) -> None:
        self._fields: dict[str, int] = {}
        self._fine: dict[str, _Counts] = {}
        self._parts: tuple[dict[str, set[str]], ...] = ({}, {}, {})  # coarse shape -> fine ones
        self._sums: dict[tuple[int, str], _Counts] = {}
        self._known: dict[str, LinkClass] = {}
        self.menu = {bare(address) for address in menu}
        self.pages = 0
        # rule (second_addresses.py) -> addresses that followed it
        self.second: dict[str, int] = {}
        self.own: dict[str, int] = {}  # rule -> articles at home where it would change the address
        self.renew(counts or {})

    def renew(self, counts: Mapping[str, int]) -> None:
        """What is known is this now."""
        gone = [name for name in self._fields if name not in counts]
        for name in gone:
            self._put(name, 0)
        for name, count in counts.items():
            if self._fields.get(name) != count:
                self._put(name, count)

    def _put(self, name: str, count: int) -> None:
        if count:
            self._fields[name] = count
        else:
            self._fields.pop(name, None)
        first, _, rest = name.partition(" ")
        if first in (SECOND, OWN):
            rules = self.second if first == SECOND else self.own
            rules[rest] = count
        elif first == "known":
            self._put_known(*rest.partition(" ")[::2], is_known=bool(count))
        elif (told := _counted(name)) is not None:
            self._put_shape(*told, count)

    def _put_known(self, class_: str, address: str, *, is_known: bool) -> None:
        if class_ not in CLASSES:
            return
        if is_known:
            self._known[address] = LinkClass(class_)
        elif self._known.get(address) == class_:
            del self._known[address]

    def _put_shape(self, source: Source, class_: LinkClass, fine: str, count: int) -> None:
        counts = self._fine.setdefault(fine, _Counts())
        if source is Source.PAGE:
            self.pages += count - counts.by.get(source, {}).get(class_, 0)
        counts.put(source, class_, count)
        for level, shape in enumerate(_levels(fine)[1:], 1):
            self._parts[level - 1].setdefault(shape, set()).add(fine)
            self._sums.pop((level, shape), None)

    def _of_shape(self, level: int, shape: str) -> _Counts | None:
        if not level:
            return self._fine.get(shape)
        parts = self._parts[level - 1].get(shape)
        if parts is None:
            return None
        found = self._sums.get((level, shape))
        if found is None:
            found = self._sums[level, shape] = _Counts()
            for fine in parts:
                found.join(self._fine[fine])
        return found

    def count(self, name: str, more: int = 1) -> None:
        """One more of a field: of a rule of second addresses, of a single address."""
        self._put(name, self._fields.get(name, 0) + more)

    def add(self, source: Source, class_: LinkClass, fine: str, count: int = 1) -> None:
        self.count(field_of(source, class_, fine), count)
        for name, smaller in bounded(self._fields, fine).items():
            self._put(name, smaller)

    def drop_others(self, fine: str, class_: LinkClass) -> list[str]:
        """Forgets what said of a shape that it is of another class. Returns the fields."""
        names = list(outdated(self._fields, fine, class_))
        for name in names:
            self._put(name, 0)
        return names

    def know(self, class_: LinkClass, address: str) -> None:
        self.count(known_field(class_, address))

    def known_as(self, address: str) -> LinkClass | None:
        """The class that the page of this one address turned out to have, where its shape says
        another."""
        return self._known.get(address)

    def forget(self, class_: LinkClass, address: str) -> None:
        self._put(known_field(class_, address), 0)

    def add_menu(self, address: str) -> None:
        self.menu.add(bare(address))

    def judge(self, path: str, query: str = "") -> Verdict | None:
        """None: too little is known."""
        address = f"{path}?{query}" if query else path
        if bare(address) in self.menu:
            return Verdict(LinkClass.LIST, "the site's menu or sites.json names it")
        if (known := self._known.get(address)) is not None:
            return Verdict(known, "its page was read", is_of_page=True)
        if bare(unpaged(path, query)) in self.menu:
            return Verdict(LinkClass.LIST, "a later page of a section")
        return self.by_shape(path, query)

    def class_of(self, path: str, query: str = "") -> Verdict:
        """The same, by the look of the address alone where too little is known."""
        return self.judge(path, query) or _by_look(path, query)

    def by_shape(self, path: str, query: str = "") -> Verdict | None:
        # What other folders hold says nothing of one whose name is a list's.
        levels = _WITH_FOLDER if articles.is_below_list(path) else len(_ENOUGH)
        for level, shape in enumerate(shapes(path, query)[:levels]):
            counts = self._of_shape(level, shape)
            if counts is None:
                continue
            found = _class_of(counts, _ENOUGH[level], shape)
            if found is not None:
                return Verdict(found, f"addresses of the shape {shape}", counts=counts)
        return None


def _by_look(path: str, query: str) -> Verdict:
    if articles.refuse(path, query) is not None:
        return Verdict(LinkClass.OTHER, "by the look of its address, which is not crawled")
    if articles.is_below_list(path):
        return Verdict(LinkClass.LIST, "by the look of its address: a tag, a category, an author")
    if articles.path_score(path, query) >= articles.ARTICLE_SCORE:
        return Verdict(LinkClass.ARTICLE, "by the look of its address; the site has taught nothing")
    return Verdict(LinkClass.OTHER, "by the look of its address; the site has taught nothing")


def _class_of(counts: _Counts, enough: float, shape: str) -> LinkClass | None:
    weights = counts.weights()
    total = sum(weights.values())
    best = max(CLASSES, key=lambda class_: weights[class_])
    if total >= enough:
        return best if weights[best] >= _PURE * total else None
    in_menu = sum(counts.by.get(Source.MENU, {}).values())
    # A short name alone is that of "Contact" as well.
    is_told = in_menu >= _MENU_ENOUGH and _IN_FOLDER.search(shape) is not None
    return LinkClass.LIST if not total and is_told else None
