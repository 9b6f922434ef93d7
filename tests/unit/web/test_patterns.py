"""Shapes of URLs: what a trap makes has one shape, what a newsroom writes has one too and
is not counted by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newscrawler.web.url_patterns import pattern_id, pattern_of


@pytest.mark.parametrize(
    ("paths", "shape"),
    [
        (["/lich/2026/11/21", "/lich/2025/1/3"], "/lich/0/0/0"),
        (["/lich?ngay=3&thang=11", "/lich?thang=1&ngay=31"], "/lich?ngay&thang"),
        (["/tim?f0=1&f1=2", "/tim?f1=1&f0=2"], "/tim?f0&f0"),
        (["/loc/mau-do/trang-12", "/loc/mau-do/trang-7"], "/loc/mau-do/trang-0"),
        (["/a/a", "/a/a/a/a/a"], "/a/+"),
        (["/phien/4f3e9a771c0d", "/phien/0c11aa0b77"], "/phien/x"),
        (["/tin/mot-tieu-de-dai-lam.html", "/tin/hai-nguoi-di-xa-lam.html"], "/tin/~.html"),
        (["/thoi-su"], "/thoi-su"),
        (["/"], "/"),
        (["/b/c/d/e/f/g/h", "/b/c/d/e/f/g/i/j/k/l"], "/b/c/d/e/f/g/*"),
    ],
)
def test_what_a_generator_makes_has_one_shape(paths: list[str], shape: str) -> None:
    assert {pattern_of(path) for path in paths} == {shape}


def test_sections_keep_their_own_shapes() -> None:
    paths = [
        "/thoi-su",
        "/the-gioi",
        "/kinh-doanh/chung-khoan",
        "/thoi-su?page=2",
        "/thoi-su.html",
        "/rss",
    ]
    assert len({pattern_of(path) for path in paths}) == len(paths)


@given(st.text(max_size=300))
def test_any_text_has_a_short_shape_and_an_id(text: str) -> None:
    shape = pattern_of("/" + text)
    assert pattern_of("/" + text) == shape and 0 <= pattern_id("/" + text) < 2**32


def test_it_takes_linear_time() -> None:
    import time

    started = time.perf_counter()
    pattern_of("/" + "a-1/" * 20_000 + "?" + "&".join(f"p{i}=1" for i in range(20_000)))
    assert time.perf_counter() - started < 1
