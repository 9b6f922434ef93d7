"""Selector sets: what is refused and why, and what the executor finds on the page parsed once."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest

from newscrawler.extraction import generic
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.extraction.safe_css import SelectorError, check_css, css_problem
from newscrawler.extraction.selectors import SelectorSet, apply
from tests.measured import least

GOOD: dict[str, Any] = {
    "domain": "example.vn", "version": 3, "state": "active",
    "variants": [
        {"template": "live", "when": "div.live", "fields": {
            "title": [{"css": "h1.live-title"}], "content": {"root": ["div.live"], "exclude": []}}},
        {"template": "article", "fields": {
            "title": [{"css": "h1.gone"}, {"css": "h1.title"}],
            "published": [{"css": "span.date"}, {"kind": "ld"}],
            "authors": [{"css": "p.author"}],
            "section": [{"css": "article:section", "kind": "meta"}],
            "summary": [{"css": "ul.facts li", "label": "Tóm tắt:"}],
            "content": {"root": ["div.nothing", "div.body"], "exclude": [".related", "figure"]}}},
    ],
    "provenance": {"made_by": "person"},
}  # fmt: skip
PAGE = """<html lang=vi><head><meta property="article:section" content="Kinh tế">
<script type="application/ld+json">{"@type":"NewsArticle","headline":"Giá vàng giảm mạnh","datePublished":"2026-08-15T06:54:00+07:00"}</script>
</head><body><h1 class=title>Giá vàng giảm mạnh</h1><span class=date>Thứ bảy, 15/08/2026 06:54</span>
<div class=body><p>Đoạn một của bài báo đủ dài để được coi là nội dung. Câu sau.</p><div class=related><p>Bài liên quan không thuộc bài.</p></div>
<figure><figcaption>Chú thích ảnh của bài báo.</figcaption></figure><p>Đoạn hai của bài báo cũng đủ dài để được giữ. Câu thứ hai.</p></div>
<p class=author>Nguyễn Văn An - Theo Reuters</p></body></html>"""
CONTEXT = PageContext(site_name="Example", language="vi", zone="+07:00")


def page(html: str = PAGE) -> Document:
    return Document(html.encode(), "https://example.vn/a-1.html")


def changed(path: str, value: Any) -> dict[str, Any]:
    doc: Any = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    here = doc
    for key in way:
        here = here[int(key)] if isinstance(here, list) else here[key]
    here[int(last) if isinstance(here, list) else last] = value
    return doc


def test_a_good_set_survives_the_round_trip() -> None:
    made = SelectorSet.from_dict(GOOD)
    assert (made.label, made.state, len(made.variants)) == ("example.vn@3", "active", 2)
    assert SelectorSet.from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("domain", "Example.VN", "domain"), ("domain", "a/b", "domain"), ("version", 0, "version"), ("version", True, "version"),
        ("state", "live", "state"), ("variants", [], "variants"), ("variants", [{}] * 9, "variants"), ("extra", 1, "(document)"),
        ("variants.0.template", "", "variants[0].template"), ("variants.0.when", "//div", "variants[0].when"),
        ("variants.1.fields.title", [], "variants[1].fields.title"), ("variants.1.fields.color", [], "variants[1].fields"),
        ("variants.1.fields.content", {"root": []}, "variants[1].fields.content.root"),
        ("variants.1.fields.content", "div", "variants[1].fields.content"),
        ("variants.1.fields.content.exclude", ["a:has(b)"], "variants[1].fields.content.exclude[0]"),
        ("variants.1.fields.title", [{"css": "h1", "kind": "xpath"}], "variants[1].fields.title[0].kind"),
        ("variants.1.fields.title", [{"css": "h1", "attr": "on click"}], "variants[1].fields.title[0].attr"),
        ("variants.1.fields.title", [{"kind": "meta", "css": "a b"}], "variants[1].fields.title[0].css"),
        ("variants.1.fields.title", ["h1"] * 9, "variants[1].fields.title"),
        ("variants.1.fields.authors", [{"css": "p", "label": "x" * 41}], "variants[1].fields.authors[0].label"),
        ("variants.1.fields.authors", [{"css": "p", "label": 7}], "variants[1].fields.authors[0].label"),
        ("variants.1.fields.authors", [{"css": "p", "attr": "title", "label": "By"}], "variants[1].fields.authors[0].label"),
    ],
)  # fmt: skip
def test_a_wrong_set_is_refused_with_its_field(path: str, value: Any, field: str) -> None:
    with pytest.raises(SelectorError) as caught:
        SelectorSet.from_dict(changed(path, value))
    assert caught.value.field == field
    assert caught.value.reason


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_no_object_is_refused(data: Any) -> None:
    with pytest.raises(SelectorError):
        SelectorSet.from_dict(data)


@pytest.mark.parametrize(
    "css",
    ["h1", "h1.title-detail", "#main", "div > p", "a ~ b + c", "h1.title, h1", '[data-role="content"]', "div[class^='x' i]",
     'article.fck_detail p[style*="text-align:right"] strong', "div:not(.a, .b) p", "li:nth-child(2n+1)", "p:last-of-type",
     "div.md\\:flex", "a b c d e f g h", "x" * 200],
)  # fmt: skip
def test_css_inside_the_grammar(css: str) -> None:
    check_css(css, "f")
    assert isinstance(page().tree.css(css), list), "and the engine takes it"


@pytest.mark.parametrize(
    "css",
    ["", " ", "*", "body", "html body", ".a,*", "div >", "> div", ",a", "a,,b", "//div", "./p", "a:has(b)", "p:contains('x')",
     ":lexbor-contains('x')", "a::text", "a::before", "div#1", "a{}", "a[b", "a b c d e f g h i", "x" * 201, "a:not(:has(b))",
     "a:not(:not(:not(b)))", "<script>", "a\n{", "a/*x*/", "a:nth-child(99999)", "p:is()", "@import 'x'"],
)  # fmt: skip
def test_css_outside_the_grammar(css: str) -> None:
    with pytest.raises(SelectorError):
        check_css(css, "f")


def test_grammar_costs_no_time_on_hostile_input() -> None:
    started = time.process_time()
    for css in (
        "a" + "[" * 199,
        "[a=" + "'" * 190,
        "a" * 100 + "\\" * 91,
        ":not(" * 40,
        "-" * 200,
        "a " * 99,
        # Each of these could be parted in twice as many ways with every escape; 62
        # characters took 2.6 s.
        "[" + "\\aaaaaa" * 28,
        "[" + "\\aaaaaa" * 8 + "=",
        ":not(" + "\\a1b2c3" * 27,
        ":nth-child(" + " " * 188,
    ):
        with pytest.raises(SelectorError):
            check_css(css, "f")
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "part", ["\\aaaaaa", "[\\a", "[a=", ":not(\\a1", ":is(.a,", ".\\61 ", "a ", ":nth-child( "]
)
def test_grammar_reads_any_length_in_linear_time(part: str) -> None:
    """Also what is longer than a set may hold: the bound must not be what the time hangs on."""

    def cpu_s(length: int) -> float:
        text = "[" + part * (length // len(part))
        took = []
        for _ in range(3):
            css_problem.cache_clear()
            started = time.process_time()
            assert css_problem(text)
            took.append(time.process_time() - started)
        return min(took)

    lengths = [2**n for n in range(4, 16)]  # small steps: an exponential one fails before it hangs
    for length in lengths:
        if cpu_s(2 * length) >= 0.005:
            ratio = least(lambda size=length: cpu_s(2 * size) / cpu_s(size), 3)  # type: ignore[misc]
            assert ratio < 3, f"{length}: twice the length takes {ratio:.1f} times as long"


def test_every_shipped_selector_is_inside_the_grammar() -> None:
    shipped = sorted((Path(__file__).parents[3] / "selectors").glob("*.json"))
    found: list[str] = []
    for path in shipped:
        for variant in json.loads(path.read_text())["variants"]:
            fields = variant["fields"]
            found += [*fields["content"]["root"], *fields["content"].get("exclude", [])]
            found += [variant["when"]] if variant.get("when") else []
            found += [
                candidate["css"] if isinstance(candidate, dict) else candidate
                for name, candidates in fields.items()
                if name != "content"
                for candidate in candidates
                if isinstance(candidate, str) or candidate.get("kind", "css") == "css"
            ]
    assert len(shipped) > 30 and len(found) > 300
    assert [css for css in found if css_problem(css)] == []


def test_first_candidate_with_shape_wins() -> None:
    found = apply(page(), SelectorSet.from_dict(GOOD), CONTEXT)
    assert found["title"].value == "Giá vàng giảm mạnh"
    assert found["title"].origin == "selector:h1.title"
    assert found["published"].value.isoformat() == "2026-08-15T06:54:00+07:00"
    assert found["authors"].value == ["Nguyễn Văn An"]
    assert found["section"].value == "Kinh tế"
    assert found["content"].value == (
        "Đoạn một của bài báo đủ dài để được coi là nội dung. Câu sau.\n\nĐoạn hai của bài báo cũng đủ dài để được giữ. Câu thứ hai."
    )


def test_variant_is_chosen_by_its_template() -> None:
    live = PAGE.replace(
        "<div class=body>",
        "<h1 class=live-title>Trực tiếp: giá vàng</h1><div class=live><p>"
        "Nội dung tường thuật trực tiếp đủ dài để được giữ lại.</p></div><div class=body>",
    )
    assert (
        apply(page(live), SelectorSet.from_dict(GOOD), CONTEXT)["title"].value
        == "Trực tiếp: giá vàng"
    )


def test_executor_leaves_the_page_as_it_is() -> None:
    doc = page()
    before = doc.tree.html
    apply(doc, SelectorSet.from_dict(GOOD), CONTEXT)
    assert doc.tree.html == before


def test_no_generic_chain_runs_when_the_set_gives_the_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the generic chain costs ten times as much")

    monkeypatch.setattr(generic, "content", refuse)
    monkeypatch.setattr("lxml.html.document_fromstring", refuse)
    found = extract(page(), CONTEXT, SelectorSet.from_dict(GOOD))
    assert found.is_article and found.selector_version == "example.vn@3"
    with pytest.raises(AssertionError):
        extract(page(), CONTEXT)


def test_what_the_set_misses_comes_from_the_page() -> None:
    doc = page(PAGE.replace("class=title", "class=other").replace("class=date", "class=x"))
    found = extract(doc, CONTEXT, SelectorSet.from_dict(GOOD))
    assert (found.title.value, found.published.origin) == ("Giá vàng giảm mạnh", "selector:ld")
    assert found.content.origin == "selector:div.body"


def test_names_that_another_templates_variant_knows_are_looked_for_on_the_page() -> None:
    """The variant of live pages has no selector for them: that was taken for a page
    without an author."""
    body = PAGE.replace("<div class=body>", '<div class="live body">').replace(
        "class=title", "class=live-title"
    )
    body = body.replace("<p class=author>Nguyễn Văn An - Theo Reuters</p>", "")
    byline = '<div class="byline">Tác giả: <a rel="author" href="/a">Nguyễn Văn An</a></div><div class="live body">'
    found = extract(
        page(body.replace('<div class="live body">', byline)), CONTEXT, SelectorSet.from_dict(GOOD)
    )
    assert found.content.origin == "selector:div.live" and found.title.value == "Giá vàng giảm mạnh"
    assert found.authors.value == ["Nguyễn Văn An"]


def test_disagreement_with_the_page_lowers_confidence_and_is_named() -> None:
    doc = page(PAGE.replace("15/08/2026 06:54", "11/08/2026 06:54"))
    found = extract(doc, CONTEXT, SelectorSet.from_dict(GOOD))
    assert found.disagreements == ["published"]
    assert found.published.confidence <= 0.5


ROWS = (
    "<ul class=facts><li><b>Chủ đề</b> Anh Tuấn Lê</li><li><b>Ngày đăng:</b> 14/08/2026</li>"
    "<li><b>Tác giả</b> Trần Thị Bình</li><li><b>Tác giả</b> Lê Văn Tám</li></ul>"
)


@pytest.mark.parametrize(
    ("field", "label", "expected"),
    [
        ("authors", "Tác giả", ["Trần Thị Bình", "Lê Văn Tám"]),
        ("authors", "Chủ đề", ["Anh Tuấn Lê"]),
        ("authors", "Người viết", None),
        ("section", "Chủ đề", "Anh Tuấn Lê"),
    ],
)
def test_a_row_is_read_by_its_label(field: str, label: str, expected: Any) -> None:
    made = SelectorSet.from_dict(
        changed(f"variants.1.fields.{field}", [{"css": "ul.facts li", "label": label}])
    )
    found = apply(page(PAGE.replace("<p class=author>", ROWS + "<p class=author>")), made, CONTEXT)
    if expected is None:
        assert field not in found
    else:
        assert found[field].value == expected and repr(label) in found[field].origin


def test_a_date_is_read_behind_its_label_and_not_before_another() -> None:
    made = SelectorSet.from_dict(
        changed("variants.1.fields.published", [{"css": "li", "label": "Ngày đăng:"}])
    )
    html = PAGE.replace(
        "<p class=author>", "<ul><li>Cập nhật 15/08/2026</li></ul>" + ROWS + "<p class=author>"
    )
    when = apply(page(html), made, CONTEXT)["published"].value
    assert when is not None and when.date().isoformat() == "2026-08-14"


@pytest.mark.parametrize(
    "line", ["Theo ông Trần Văn Bình và bà Lê Thị Mai thì giá vàng hôm nay đã giảm mạnh", "a" * 200]
)
def test_behind_an_authors_label_a_line_of_the_text_is_no_name(line: str) -> None:
    made = SelectorSet.from_dict(
        changed("variants.1.fields.authors", [{"css": "p", "label": "Báo Mẫu /"}])
    )
    signed = "<p>Báo Mẫu / {}</p><p class=author>"
    assert apply(
        page(PAGE.replace("<p class=author>", signed.format("Trần Thị Bình"))), made, CONTEXT
    )["authors"].value
    assert "authors" not in apply(
        page(PAGE.replace("<p class=author>", signed.format(line))), made, CONTEXT
    )


@pytest.mark.parametrize("place", ["article > div", "main div", "main.detail div"])
def test_bare_tags_name_nobody_in_a_line_of_text(place: str) -> None:
    """A set had the byline's box, and behind it ``article > div``: where a desk signs, the first
    place names nobody, and the second one took a word of the lead for a person."""
    lead = "Nhể gược tệp ngẩm nghiệt khùy học chuỷnh khũ như nhừa lượt hơn đã những, Kenmarsonri, cật bim chỉ Huế ừa dếp đây là."
    body = (
        '<main class=detail><article><div class="by">Nhóm PV</div><div>Từ khóa: xậng kị giân buôn</div>'
        f"<div>{lead}</div></article></main>"
    )
    doc = GOOD | {"variants": [{"template": "a", "fields": {
        "title": [{"css": "h1"}], "authors": [{"css": "div.by"}, {"css": place}],
        "content": {"root": ["article"]}}}]}  # fmt: skip
    assert "authors" not in apply(page(body), SelectorSet.from_dict(doc), CONTEXT)
    signed = body.replace("Từ khóa: xậng kị giân buôn", "Nguyễn Văn An")
    found = apply(page(signed), SelectorSet.from_dict(doc), CONTEXT)
    assert found["authors"].value == ["Nguyễn Văn An"]
