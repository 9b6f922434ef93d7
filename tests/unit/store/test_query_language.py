"""The query parser and the ladder, without a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newscrawler.store import query_tree
from newscrawler.store.base import Query, QueryError
from newscrawler.store.days import day, moment
from newscrawler.store.fulltext.queries import Queries, Scale
from newscrawler.store.ladder import UNQUOTED, Count, Counts, Frequencies, Near, Scores, ladder
from newscrawler.store.query_language import (
    AnyOf,
    NoneOf,
    Plan,
    Published,
    Term,
    Value,
    Words,
    parse,
)


def shape(text: str) -> dict[str, list[str]]:
    """The words that are looked for, and under their field those of conditions, "-" before what
    must not be there."""
    plan = parse(Query(text))
    found: dict[str, list[str]] = {}
    for term in plan.terms:
        found.setdefault("terms", []).append(" ".join(term.exact))
    for one in plan.conditions:
        part = one.part if isinstance(one, NoneOf) else one
        assert isinstance(part, Words)
        name = "-" * isinstance(one, NoneOf) + part.where
        found.setdefault(name, []).append(" ".join(part.term.exact))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("hà nội", {"terms": ["hà", "nội"]}),
        ('"hà nội" mưa', {"terms": ["hà nội", "mưa"]}),
        ("“hà nội”", {"terms": ["hà nội"]}),
        ('he said "the end', {"terms": ["he", "said", "the", "end"]}),
        ("a -b", {"terms": ["a"], "-": ["b"]}),
        ('a -"b c"', {"terms": ["a"], "-": ["b c"]}),
        ("từ -5 độ - lạnh", {"terms": ["từ", "5", "độ", "lạnh"]}),
        ("x-y --z", {"terms": ["x y", "z"]}),
        ("title:bão TITLE:x", {"title": ["bão", "x"]}),
        ('title:"giá vàng"', {"title": ["giá vàng"]}),
        ("title: giá", {"terms": ["title", "giá"]}),
        ("author:An", {"author": ["an"]}),
        ("-title:bão x", {"terms": ["x"], "-title": ["bão"]}),
        ('x -author:"Lê An"', {"terms": ["x"], "-author": ["lê an"]}),
        ("mail:x http://a.b", {"terms": ["mail x", "http a b"]}),
        # a sentence that somebody copied is a sentence: eight words, the hyphen in its middle
        (
            "Ruf für Motorraddesign und -herstellung als Teil davon",
            {
                "terms": [
                    "ruf",
                    "für",
                    "motorraddesign",
                    "und",
                    "herstellung",
                    "als",
                    "teil",
                    "davon",
                ]
            },
        ),
        (
            "một hai ba bốn -năm sáu bảy",
            {"terms": ["một", "hai", "ba", "bốn", "sáu", "bảy"], "-": ["năm"]},
        ),
        (
            "một hai ba bốn năm sáu bảy -tám",
            {"terms": ["một", "hai", "ba", "bốn", "năm", "sáu", "bảy"], "-": ["tám"]},
        ),
    ],
)
def test_parse(text: str, expected: dict[str, list[str]]) -> None:
    assert shape(text) == expected


def test_dates_narrow_one_another() -> None:
    text = "x after:2026-08 before:2027 after:2026-08-05"
    plan = parse(Query(text, after=datetime(2026, 1, 1, tzinfo=UTC)))
    assert plan.conditions == (
        Published(after=datetime(2026, 8, 1, tzinfo=UTC)),
        Published(before=datetime(2027, 1, 1, tzinfo=UTC)),
        Published(after=datetime(2026, 8, 5, tzinfo=UTC)),
        Published(after=datetime(2026, 1, 1, tzinfo=UTC)),
    )


@pytest.mark.parametrize(
    "text", ["31/8/2026", "31-8-2026", "31.8.2026", "2026-08-31", "2026-8-31", "2026/08/31"]
)
def test_a_day_starts_at_the_midnight_of_its_reader(text: str) -> None:
    zone = ZoneInfo("Asia/Ho_Chi_Minh")
    (found,) = parse(Query(f"x after:{text}", zone=zone)).conditions
    assert found == Published(after=datetime(2026, 8, 30, 17, tzinfo=UTC))
    assert (
        day("after", "8/2026", zone) == day("after", "2026-08", zone) == day("x", "1/8/2026", zone)
    )
    assert moment("after", text, zone) == moment("after", "2026-08-31T00:00", zone)
    assert moment("after", "2026-08-31T00:00Z", zone) == datetime(2026, 8, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["after:x", "before:2026-02-30", "after:99999", "before:0000-01-01", "after:31/13/2026"]
)
def test_what_is_no_day_is_read_as_words_and_said(text: str) -> None:
    field, _, value = text.partition(":")
    plan = parse(Query(text))
    assert plan.terms and not plan.conditions
    assert len(plan.notes) == 1 and f"{text}: not a day" in plan.notes[0]
    with pytest.raises(QueryError, match=f"{field}={value}: not a day"):
        moment(field, value)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("bão lũ", "bão lũ"),
        ("bão AND lũ", "bão lũ"),
        ("bão or lũ", "bão or lũ"),
        ("giá vàng OR giá bạc", "(giá vàng) OR (giá bạc)"),
        ("giá (vàng OR bạc)", "giá (vàng OR bạc)"),
        ("bão OR lũ OR (hạn OR mặn)", "bão OR lũ OR hạn OR mặn"),
        ("bão NOT lũ", "bão NOT lũ"),
        ("bão -(lũ OR lụt)", "bão NOT (lũ OR lụt)"),
        ("bão NOT NOT lũ", "bão lũ"),
        ("bão AND NOT lũ", "bão NOT lũ"),
        ("title:(bão OR lũ) AUTHOR:An", "(title:bão OR title:lũ) author:An"),
        ("bão site:a.vn site:b.vn lang:vi lang:en", "bão (site:a.vn OR site:b.vn) (lang:vi OR lang:en)"),
        ("bão OR lũ site:a.vn after:2026", "(bão OR lũ) site:a.vn after:2026"),
        ("bão site:a.vn OR lũ site:b.vn", "(bão site:a.vn) OR (lũ site:b.vn)"),
        ("FPT OR VNG", "FPT OR VNG"),
        ("TO BE OR NOT TO BE THAT IS", 'TO BE "OR" "NOT" TO BE THAT IS'),
        ("OR bão", '"OR" bão'),
        ("bão AND", 'bão "AND"'),
        ("bão OR OR lũ", '(bão "OR") OR lũ'),
        ("NOT", '"NOT"'),
        ("bão (lũ", "bão lũ"),
        ("bão) (lũ) ()", "bão lũ"),
        ("từ(s) :) f(x)", "từ(s) f(x)"),
        ("title:() x", "title:x"),
        ("(" * 60 + "bão OR lũ" + ")" * 60 + " x", "(bão OR lũ) x"),
        ("NOT " * 501 + "bão x", "NOT bão x"),
        ("title:" * 300 + "bão", "title:bão"),
    ],
)  # fmt: skip
def test_every_text_has_a_reading(text: str, reading: str) -> None:
    assert query_tree.written(query_tree.read(text).tree) == reading


_PARTS = st.sampled_from(
    [
        "a",
        "B",
        "từ",
        "OR",
        "AND",
        "NOT",
        "(",
        ")",
        "-",
        "title:",
        "site:",
        "lang:",
        '"',
        "5",
        "!",
        " ",
    ]
)


@given(st.lists(_PARTS, max_size=30).map("".join) | st.text())
def test_a_reading_is_read_as_itself(text: str) -> None:
    tree = query_tree.read(text).tree
    again = query_tree.read(query_tree.written(tree)).tree
    # A word that looks like an operator is written as a phrase.
    assert repr(again).replace("True", "False") == repr(tree).replace("True", "False")


@given(st.text())
def test_any_text_is_a_query_or_a_clear_error(text: str) -> None:
    try:
        plan = parse(Query(text))
    except QueryError:
        return
    queries = Queries(Scale(100, 20_000), lambda word: 1, lambda word: True)
    loose = replace(plan, title_misses=1, instead=plan.terms[:1])
    for one in (plan, replace(plan, is_exact=True), loose):
        assert queries.matching(one) is not None
        assert queries.ranked(one, plan, 1)


@pytest.mark.parametrize(
    "text",
    ["… ! -", "-bão", '-"a b" -c', '""', "( )", "😀", "site:a.vn", "-site:a.vn", "lang:vi", "NOT a",
     "after:2026 before:2027", "-title:a", "-(a OR b)"],
)  # fmt: skip
def test_a_query_without_a_word_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(QueryError, match="no word to look for"):
        parse(Query(text))
    assert parse(Query(f"{text} x")).terms
    assert parse(Query("   ")).is_filter_only


@pytest.mark.parametrize("text", ["author:an", "keyword:bão", 'section:"thể thao"', "title:a"])
def test_a_field_with_words_is_a_query(text: str) -> None:
    assert parse(Query(text)).conditions


def test_a_field_and_its_negation() -> None:
    plan = parse(Query("x site:a.vn -site:b.vn -after:2026-08", sites=("c.vn",)))
    assert plan.conditions == (
        Value("site", "a.vn"),
        NoneOf(Value("site", "b.vn")),
        NoneOf(Published(after=datetime(2026, 8, 1, tzinfo=UTC))),
        AnyOf((Value("site", "c.vn"),)),
    )


class Library:
    """Answers the ladder from a table of what is known, and notes what it was asked."""

    def __init__(
        self, counts: dict[str, int], shares: dict[str, float], better: dict[str, str]
    ) -> None:
        self.counts, self.shares, self.better = counts, shares, better

    def _key(self, plan: Plan) -> str:
        mark = "=" if plan.is_exact else "~"
        return mark + " ".join(
            " ".join(t.words(plan.is_exact)).join('""' if self._is_phrase(t) else ("", ""))
            for t in plan.terms
        )

    def _is_phrase(self, term: Term) -> bool:
        return term.quoted and len(term.words(True)) > 1

    def settle(self, text: str) -> Plan:
        steps = ladder(parse(Query(text)))
        answer: object = None
        try:
            while True:
                ask = steps.send(answer)
                if isinstance(ask, Count):
                    answer = min(ask.enough, self.counts.get(self._key(ask.plan), 0))
                elif isinstance(ask, Frequencies):
                    answer = {t: self.shares.get(" ".join(t.folded), 0.0) for t in ask.terms}
                elif isinstance(ask, Near):
                    answer = {w: [self.better[w]] for w in ask.words if w in self.better}
                elif isinstance(ask, Counts):
                    answer = [self.counts.get(self._key(plan), 0) for plan in ask.plans]
                else:
                    assert isinstance(ask, Scores)
                    answer = [1.0 for _ in ask.plans]
        except StopIteration as done:
            result = done.value
            assert isinstance(result, Plan)
            return result


@pytest.mark.parametrize(
    ("exact", "folded", "is_exact", "relaxed"),
    [(9, 50, False, ""), (10, 50, True, ""), (0, 1, False, "folded"), (1, 1, False, "")],
)
def test_diacritics_are_meant_when_enough_have_them(
    exact: int, folded: int, is_exact: bool, relaxed: str
) -> None:
    plan = Library({"=hà": exact, "~ha": folded}, {}, {}).settle("hà")
    assert (plan.is_exact, plan.relaxed) == (is_exact, relaxed)


def test_the_rarest_words_below_five_percent_are_asked_for() -> None:
    shares = {"a1": 0.9, "b2": 0.04, "c3": 0.01, "d4": 0.049, "e5": 0.05, "f6": 0.02, "g7": 0.03}
    plan = Library({}, shares, {}).settle(" ".join(shares))
    assert plan.relaxed == "any"
    assert [t.folded[0] for t in plan.any_of] == ["c3", "f6", "g7", "b2"]


def test_common_words_are_asked_for_when_there_are_no_others() -> None:
    plan = Library({}, {"va": 0.9, "cua": 0.8}, {}).settle("va cua zzzz")
    assert [t.folded[0] for t in plan.any_of] == ["cua", "va"]


def test_a_corrected_word_is_named() -> None:
    plan = Library({"~gia vang": 3}, {"gia": 0.5}, {"vagn": "vang"}).settle("gia vagn")
    assert (plan.relaxed, plan.corrections) == ("corrected", (("vagn", "vang"),))


def test_nothing_known_stays_nothing() -> None:
    plan = Library({}, {}, {}).settle("qqqq wwww")
    assert (plan.relaxed, plan.any_of) == ("", ())


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ('"giá vàng" SJC', "giá vàng SJC"),
        ('"giá vàng" title:"giá bạc" -"giá xăng"', 'giá vàng title:"giá bạc" NOT "giá xăng"'),
        ('"bão OR lũ"', 'bão "OR" lũ'),
        ('"bão to" OR "lũ lớn"', '"bão to" OR "lũ lớn"'),
        ("", ""),
    ],
)
def test_a_query_without_its_quotation_marks(text: str, read_as: str) -> None:
    assert query_tree.unquoted(text) == read_as


def test_a_phrase_that_nothing_has_is_corrected_as_a_phrase() -> None:
    known = {'~"san bay long"': 3, '~"san bay long thanh"': 2, '~"san bay"': 5}
    plan = Library(known, {}, {"thnah": "thanh"}).settle('"sân bay Long Thnah"')
    assert [(t.folded, t.quoted) for t in plan.terms] == [(("san", "bay", "long", "thanh"), True)]
    assert (plan.relaxed, plan.corrections) == ("corrected", (("thnah", "thanh"),))


def test_the_words_of_a_phrase_that_nothing_has_are_read_for_themselves() -> None:
    plan = Library({"~gia vang": 3}, {}, {}).settle('"giá vàng"')
    assert [(t.folded, t.quoted) for t in plan.terms] == [(("gia",), False), (("vang",), False)]
    assert (plan.relaxed, plan.read_as, plan.notes) == ("unquoted", "giá vàng", (UNQUOTED,))


def test_of_a_phrase_that_nothing_has_no_single_words_are_shown() -> None:
    plan = Library({}, {"x": 0.01, "y": 0.02}, {}).settle('"x y"')
    assert ([t.folded for t in plan.terms], plan.any_of, plan.notes) == ([("x", "y")], (), ())


def test_a_quoted_phrase_is_kept_when_words_are_given_up() -> None:
    plan = Library({'~"a b"': 1}, {"x": 0.01, "y": 0.02}, {}).settle('"a b" x y')
    assert ([t.folded for t in plan.terms], [t.folded for t in plan.any_of]) == (
        [("a", "b")],
        [("x",), ("y",)],
    )
