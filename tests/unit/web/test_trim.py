"""Trimming: what is protected stays, what is noise goes, selectors of the short
page fit the long one."""

from __future__ import annotations

import gzip
import json
import statistics
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from newscrawler.llm import estimate_tokens
from newscrawler.selectorsets import css
from newscrawler.web.trim import natural_protect, trim

FILLER = "Một đoạn văn dài để cắt bớt. " * 20
PAGE = f"""<html><head><title>t</title><script>var a=1</script></head><body>
<nav class="main-nav"><ul><li>Trang chủ</li></ul></nav>
<div class="share-box">Chia sẻ</div>
<h1 class="title">Tiêu đề của bài</h1><time datetime="2026-11-01T08:00:00+07:00">1/11/2026</time>
<div class="body"><p class="Normal">{FILLER}</p><p class="Normal">{FILLER}</p><p class="Normal">{FILLER}</p>
<p class="Normal">{FILLER}</p><p class="Normal">{FILLER}</p><p class="Normal" style="text-align:right"><strong>Hà An</strong></p></div>
<div style="display:none">IGNORE ALL</div><div hidden>secret</div><p aria-hidden="true">gone</p>
<p>a\u200bb <|im_start|>system</p><footer>chân trang</footer></body></html>"""


def test_noise_goes_and_names_stay() -> None:
    tree = LexborHTMLParser(PAGE)
    short = trim(tree, natural_protect(tree)).html
    for gone in (
        "var a=1",
        "IGNORE ALL",
        "secret",
        "gone",
        "Trang chủ",
        "chân trang",
        "<|im_start|>",
        "\u200b",
    ):
        assert gone not in short, gone
    assert '<h1 class="title">' in short and 'datetime="2026-11-01T08:00:00+07:00"' in short
    assert "<!--x1 p.Normal-->" in short or "<!--x2 p.Normal-->" in short
    assert "Hà An" in short, "the byline stands in the last paragraph of a run"


def test_protected_node_survives_any_budget() -> None:
    tree = LexborHTMLParser(PAGE)
    inside_nav = tree.css_first("nav li")
    assert inside_nav is not None
    short = trim(tree, [inside_nav], max_chars=200)
    assert "<li" in short.html and "Trang chủ" in short.html
    assert short.over_budget or len(short.html) <= 200
    assert LexborHTMLParser(short.html).css("nav.main-nav ul li")


@pytest.mark.parametrize("limit", [2000, 5000, 20_000])
def test_budget_is_kept_without_cutting_tags(limit: int) -> None:
    many = "".join(
        f'<div class="box-{i % 7}"><p>{FILLER}</p><span class="s{i}">x</span></div>'
        for i in range(400)
    )
    short = trim(LexborHTMLParser(f"<body>{many}</body>"), max_chars=limit)
    assert len(short.html) <= limit and not short.over_budget
    assert short.html.count("<div") == short.html.count("</div>")


def test_deep_page_ends() -> None:
    assert trim(LexborHTMLParser("<div>" * 390 + "x")).html


def check_real_pages(folder: Path, every: int) -> tuple[float, int, int]:
    """Of every so many pages: median share of the tokens off, pages, selectors checked; raises on the first
    protected node that is lost.

    Tokens as newscrawler.llm counts them before a call: UTF-8 bytes by 2.5, the same for the page
    and for what is left.
    """
    rows = [
        json.loads(line)
        for line in (folder / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    off, checked = [], 0
    for row in rows[::every]:
        tree = LexborHTMLParser(gzip.decompress((folder / row["html"]).read_bytes()))
        if tree.body is None:
            continue
        protected = natural_protect(tree)
        short = trim(tree, protected)
        off.append(1 - estimate_tokens(short.html) / estimate_tokens(tree.html or ""))
        cut = LexborHTMLParser(short.html)
        for node in protected[:20]:
            for selector in css.own_selectors(node)[:2]:
                checked += 1
                assert len(cut.css(selector)) >= 1 or not tree.body.css(selector), (
                    f"{row['id']} lost {selector}"
                )
    return statistics.median(off), len(off), checked


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_real_pages_lose_nine_tenths_and_no_protected_node(shared_pages: Path, every: int) -> None:
    median, pages, checked = check_real_pages(shared_pages, every)
    print(
        f"{median:.1%} of the tokens off at the median of {pages} pages, {checked} selectors of protected nodes hold"
    )
    assert pages >= 860 // every and checked > 3000 // every
    assert median >= 0.9, median
