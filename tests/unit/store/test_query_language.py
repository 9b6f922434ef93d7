"""The query parser and the ladder, without a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newscrawler.store.base import Query, QueryError
from newscrawler.store.fulltext.queries import Queries, Scale
from newscrawler.store.query_language import Correct, Count, Frequencies, Plan, ladder, parse


def shape(text: str) -> dict[str, list[str]]:
    plan = parse(Query(text))
    return {
        name: [" ".join(t.exact) for t in getattr(plan, name)]
        for name in (
            "terms",
            "title",
            "authors",
            "exclude",
            "without_title",
            "without_authors",
        )
        if getattr(plan, name)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("hà nội", {"terms": ["hà", "nội"]}),
        ('"hà nội" mưa', {"terms": ["hà nội", "mưa"]}),
        ("“hà nội”", {"terms": ["hà nội"]}),
        ('he said "the end', {"terms": ["he", "said", "the", "end"]}),
        ("a -b", {"terms": ["a"], "exclude": ["b"]}),
        ('a -"b c"', {"terms": ["a"], "exclude": ["b c"]}),
        ("từ -5 độ - lạnh", {"terms": ["từ", "5", "độ", "lạnh"]}),
        ("x-y --z", {"terms": ["x y", "z"]}),
        ("title:bão TITLE:x", {"title": ["bão", "x"]}),
        ('title:"giá vàng"', {"title": ["giá vàng"]}),
        ("title: giá", {"terms": ["title", "giá"]}),
        ("author:An", {"authors": ["an"]}),
        ("-title:bão x", {"terms": ["x"], "without_title": ["bão"]}),
        ('-author:"Lê An"', {"without_authors": ["lê an"]}),
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
            {"terms": ["một", "hai", "ba", "bốn", "sáu", "bảy"], "exclude": ["năm"]},
        ),
        (
            "một hai ba bốn năm sáu bảy -tám",
            {"terms": ["một", "hai", "ba", "bốn", "năm", "sáu", "bảy"], "exclude": ["tám"]},
        ),
    ],
)
def test_parse(text: str, expected: dict[str, list[str]]) -> None:
    assert shape(text) == expected


def test_dates_narrow_one_another() -> None:
    plan = parse(
        Query("after:2026-08 before:2027 after:2026-08-05", after=datetime(2026, 1, 1, tzinfo=UTC))
    )
    assert (plan.after, plan.before) == (
        datetime(2026, 8, 5, tzinfo=UTC),
        datetime(2027, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    "text", ["after:x", "before:2026-02-30", "after:99999", "before:0000-01-01"]
)
def test_a_wrong_day_is_named(text: str) -> None:
    with pytest.raises(QueryError, match=text.split(":")[1]):
        parse(Query(text))


@given(st.text())
def test_any_text_is_a_query_or_a_clear_error(text: str) -> None:
    try:
        plan = parse(Query(text))
    except QueryError:
        return
    queries = Queries(Scale(100, 20_000), lambda word: 1)
    loose = replace(plan, title_misses=1, instead=plan.terms[:1])
    for one in (plan, replace(plan, is_exact=True), loose):
        assert queries.matching(one) is not None
        assert queries.ranked(one, plan, 1)


@pytest.mark.parametrize("text", ["… ! -", "-bão", '-"a b" -c', '""', "( )", "😀"])
def test_a_query_without_a_word_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(QueryError, match="no word to look for"):
        parse(Query(text))
    assert parse(Query(f"{text} site:a.vn")).sites == ("a.vn",)
    assert parse(Query("   ")).is_filter_only


def test_a_field_and_its_negation() -> None:
    plan = parse(Query("x site:a.vn -site:b.vn -after:2026-08 -before:2026-07"))
    assert (plan.sites, plan.without_sites) == (("a.vn",), ("b.vn",))
    assert (plan.after, plan.before) == (
        datetime(2026, 7, 1, tzinfo=UTC),
        datetime(2026, 8, 1, tzinfo=UTC),
    )


class Library:
    """Answers the ladder from a table of what is known, and notes what it was asked."""

    def __init__(
        self, counts: dict[str, int], shares: dict[str, float], better: dict[str, str]
    ) -> None:
        self.counts, self.shares, self.better = counts, shares, better

    def _key(self, plan: Plan) -> str:
        mark = "=" if plan.is_exact else "~"
        return mark + " ".join(" ".join(t.words(plan.is_exact)) for t in plan.terms)

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
                else:
                    assert isinstance(ask, Correct)
                    answer = {w: self.better[w] for w in ask.words if w in self.better}
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


def test_a_quoted_phrase_is_kept_when_words_are_given_up() -> None:
    plan = Library({}, {"x": 0.01, "y": 0.02}, {}).settle('"a b" x y')
    assert ([t.folded for t in plan.terms], [t.folded for t in plan.any_of]) == (
        [("a", "b")],
        [("x",), ("y",)],
    )
