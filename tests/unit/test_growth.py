"""Text and bytes from strangers cost time in proportion to their length: public functions,
found by introspection.

A function is called with hostile text for each of its parameters that takes text, one after
another and all at once; what else it asks for is built by its annotation. Judged is the growth of
CPU time when the text is four times as long, never a time by itself; what is below a floor is too
fast to be measured, and is fast enough.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import pytest

from newscrawler.discovery.sites import Site
from newscrawler.extraction.blocks import block_list
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.dates import Rules
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.items import Article, FieldValue
from newscrawler.store import near_duplicates, query_language
from newscrawler.store.base import Query
from newscrawler.web.urls import Base
from tests.measured import least

PACKAGES = (
    *("extraction", "extraction.author_choice", "web", "discovery", "selectorsets"),
    *("store", "store.elasticsearch", "store.fulltext", "store.semantic"),
    *("utils", "fetch", "rawstore", "crawl", "fleet", "api"),
)
FLOOR_S = 0.01
LENGTHS = (2_000, 8_000)
#: Four times the length: 4 in linear time, 16 in quadratic.
WORST_RATIO = 9.0
PARTS = (
    " ", "\u00a0", "\n", "1", "1 ", ",", ", ", "(", "[", "{", "<", "a", "a ", "A ", "é", "-", "- ", "/", '"', ":", ". ", "a,", "a.", "<a",
    "&", "#", "?a=", "a@", "12:", "ngày ", "lúc ", "am ", "by ", "theo ", "\\a", "1/", "20", "))", "]]", "%4",
)  # fmt: skip
FRAMES = (("", ""), ("a", "\x00"), ("1", "x"))
#: What only readers of documents stumble over.
DOCUMENT_PARTS = ("<a>", "<!--", "<item>", "<![CDATA[", "&amp;", "\r\n", "\x00", "\x1f\x8b\x08")
PAGE = (
    "<html><head><title>{0}</title><meta name=author content='{1}'></head><body><h1>{0}</h1>"
    "<p class=byline>{0}</p><article><p>{0}</p><p>{0}</p></article></body></html>"
)

MOMENT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)

#: Builds an argument from a text.
Build = Callable[[str], Any]


def _texts(text: str) -> list[str]:
    return [text, *(text[at : at + 8] for at in range(0, len(text), 8))]


def _page(text: str) -> Document:
    return Document(PAGE.format(text, text.replace("'", "")).encode(), "https://a.example/b")


def _article(text: str) -> Article:
    return Article(
        id="0" * 32, url="https://a.example/b", site="a.example", title=text, content=text
    )


def _marks(text: str) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(0, len(text), 20)]


#: Parameters that take a stranger's text, by annotation.
HOSTILE: dict[str, Build] = {
    "str": str,
    "str | None": str,
    "bytes | str": str,
    "str | bytes": str,
    "str | Iterable[str]": str,
    "Any": str,
    "bytes": str.encode,
    "bytes | None": str.encode,
    "list[str]": _texts,
    "Iterable[str]": _texts,
    "Sequence[str]": _texts,
    "Collection[str]": _texts,
    "tuple[str, ...]": lambda text: tuple(_texts(text)),
    "frozenset[str]": lambda text: frozenset(_texts(text)),
    "set[str]": lambda text: set(_texts(text)),
    "list[list[str]]": lambda text: [_texts(text)] * 2,
    "Counter[str]": lambda text: Counter(_texts(text)),
    "Mapping[str, str]": lambda text: {"name": text, text: "value"},
    "dict[str, str]": lambda text: {"name": text, text: "value"},
    "Mapping[str, Any]": lambda text: {"title": text, "content": text, text: text},
    "dict[str, Any]": lambda text: {"title": text, "content": text, text: text},
    "FieldValue": lambda text: FieldValue(text, "meta:author", 0.5),
    "Article": _article,
    "list[Block]": lambda text: block_list(_page(text)),
}
#: What goes with them. A page holds the text too.
BESIDE: dict[str, Build] = {
    "Document": _page,
    "PageContext": lambda _: PageContext(site_name="A Paper", fetched=MOMENT),
    "Rules": lambda _: Rules(),
    "Base": lambda _: Base("https://a.example/b/"),
    "Site": lambda _: Site("a.example", "A Paper", "https://a.example/", ("a.example",)),
    "Plan": lambda text: query_language.parse(Query(text=f"paper {text[:50]}")),
    "Marks": _marks,
    "Iterable[tuple[int, int]]": _marks,
    "np.ndarray": near_duplicates.shingles_of,
    "int": lambda _: 1_000,
    "int | None": lambda _: 1_000,
    "float": lambda _: 1.0,
    "bool": lambda _: True,
    "bool | None": lambda _: None,
    "datetime": lambda _: MOMENT,
    "date": lambda _: MOMENT.date(),
    "tzinfo": lambda _: UTC,
    "Mapping[str, int]": lambda _: {"name": 1},
}
PLAIN = "A paper 1"
#: Modules and functions that reach for a file, a process or another machine by the text.
OUTSIDE = (
    "api.probe",
    "api.server",
    "crawl.monitors.post",
    "crawl.processes",
    "crawl.opening",
    "crawl.preflight",
    "rawstore.raw_store.prove",
    "store.semantic.nano",  # a model
)
#: Texts that this program hands over itself.
OWN = {"newscrawler.store.highlight.mark": {"before", "after"}}
#: Read whole pages, as test_a_page_costs_time_in_proportion_to_its_length does.
PAGE_READERS = ("selectorsets.samples.make_sample",)


class Case(NamedTuple):
    """A function, and which of its parameters hold the text; the others are plain."""

    function: Callable[..., object]
    asked: dict[str, str]
    hostile: frozenset[str]

    def arguments(self, text: str) -> dict[str, Any]:
        builders = HOSTILE | BESIDE
        return {
            name: builders[annotation](text if name in self.hostile else PLAIN)
            for name, annotation in self.asked.items()
        }

    def cpu_s(self, text: str, best_of: int = 1) -> float:
        took = []
        for _ in range(best_of):
            arguments = self.arguments(text)
            started = time.process_time()
            try:
                answer = self.function(**arguments)
                if inspect.isgenerator(answer):
                    deque(answer, maxlen=0)
            except Exception as exc:  # a refusal; what it costs is what counts
                assert str(exc) is not None
            took.append(time.process_time() - started)
        return min(took)


def text_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Every public function of these packages that takes text, and of which the other arguments
    can be built."""
    for package in PACKAGES:
        path = importlib.import_module(f"newscrawler.{package}").__path__
        for found in pkgutil.iter_modules(path):
            module = importlib.import_module(f"newscrawler.{package}.{found.name}")
            for name, function in vars(module).items():
                if name.startswith("_") or getattr(function, "__module__", "") != module.__name__:
                    continue
                plain = getattr(function, "__wrapped__", function)  # what a cache stands before
                label = f"{package}.{found.name}.{name}"
                if (
                    inspect.isfunction(plain)
                    and not label.startswith(OUTSIDE + PAGE_READERS)
                    and cases(plain)
                ):
                    yield label, plain


def cases(function: Callable[..., object]) -> list[Case]:
    """Each of its texts alone, and all at once; none where an argument cannot be built."""
    asked = {
        name: str(p.annotation)
        for name, p in inspect.signature(function).parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    if inspect.iscoroutinefunction(function) or not set(asked.values()) <= set(HOSTILE | BESIDE):
        return []
    own = OWN.get(f"{function.__module__}.{function.__name__}", set())
    texts = [name for name, a in asked.items() if a in HOSTILE and name not in own]
    held = [frozenset({name}) for name in texts]
    if texts and len(asked) > 1:
        held.append(frozenset(asked) - own)
    return [Case(function, asked, hostile) for hostile in held]


FUNCTIONS = dict(text_functions())


def test_the_functions_are_found() -> None:
    takes_bytes = [n for n, f in FUNCTIONS.items() if "bytes" in cases(f)[0].asked.values()]
    takes_more = [n for n, f in FUNCTIONS.items() if len(cases(f)[0].asked) > 1]
    assert len(FUNCTIONS) > 300 and len(takes_more) > 100 and len(takes_bytes) > 20
    assert {
        "extraction.authors.without_tail",
        "extraction.authors.split",
        "extraction.safe_css.css_problem",
        "extraction.title.agreement",
        "discovery.feeds.parse_feed",
        "discovery.sitemaps.parse_sitemap",
        "web.charset.decode",
        "web.challenge.challenge_reason",
        "web.urls.join",
        "api.text.changed_words",
        "selectorsets.css.label_before",
    } <= set(FUNCTIONS)


def quadratic(text: str) -> int:
    """Slow enough to be seen above FLOOR_S on a machine ten times as fast as that of 2026."""
    return sum(text.count(letter) for letter in text for _ in range(4))


def test_what_grows_faster_is_found() -> None:
    assert fault(cases(quadratic)[0], "a", "", "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_text_costs_time_in_proportion_to_its_length(name: str) -> None:
    for case in cases(FUNCTIONS[name]):
        for part in PARTS + DOCUMENT_PARTS * ("bytes" in case.asked.values()):
            for before, behind in FRAMES if len(case.hostile) == 1 else FRAMES[:1]:
                assert fault(case, part, before, behind) == ""


def _ratio(case: Case, short: str, long: str) -> float:
    return case.cpu_s(long, 3) / max(case.cpu_s(short, 3), 1e-5)


def fault(case: Case, part: str, before: str, behind: str) -> str:
    """What makes the function slow, "" where nothing does."""
    short, long = (before + part * (length // len(part)) + behind for length in LENGTHS)
    took_s = case.cpu_s(long)
    if took_s < FLOOR_S or took_s < WORST_RATIO * case.cpu_s(short):
        return ""
    ratio = least(partial(_ratio, case, short, long), WORST_RATIO)
    if ratio < WORST_RATIO:
        return ""
    return (
        f"{', '.join(sorted(case.hostile))} of {part!r}: {ratio:.1f} times the time for"
        f" {LENGTHS[1] // LENGTHS[0]} times the text"
    )


@pytest.mark.parametrize("part", PARTS + DOCUMENT_PARTS)
def test_a_page_costs_time_in_proportion_to_its_length(part: str) -> None:
    """All that reads a page, from its bytes to the article."""

    def read(text: str) -> None:
        extract(_page(text), PageContext(site_name="A Paper", fetched=MOMENT))

    assert fault(Case(read, {"text": "str"}, frozenset({"text"})), part, "", "") == ""
