"""What may be named to be taken down, and in which form it is kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from newscrawler.crawl.takedown import TakeDown, TakeDownRefused, target_of
from newscrawler.frontier.taken import DOMAIN, Entry, is_within
from newscrawler.web.urls import canonicalize, domain_of


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("báo.vn", "https://báo.vn/tin-1.html"),
        ("BÁO.vn", "https://m.báo.vn/tin-1.html"),
        ("ba\u0301o.vn", "https://báo.vn/tin-1.html"),
        ("example.vn.", "https://example.vn/tin-1.html"),
        (".example.vn", "https://m.example.vn/tin-1.html"),
        (" Example.vn/ ", "https://example.vn/tin-1.html"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/tin-1.html"),
    ],
)
def test_pages_of_a_domain_are_within_what_is_kept_of_it(text: str, page: str) -> None:
    target, is_domain = target_of(text)
    assert is_domain and target_of(target) == (target, True)
    assert is_within(domain_of(canonicalize(page) or ""), [target])


@pytest.mark.parametrize(
    "text",
    [
        "*.example.vn", "user@example.vn", "ex ample.vn", "example.vn/tin-1.html", "example.vn?x=1",
        "example.vn#x", "example..vn", "example", "b%C3%A1o.vn", "http://", "", ".",
    ],
)  # fmt: skip
def test_what_would_match_nothing_or_less_than_meant_is_refused(text: str) -> None:
    with pytest.raises(TakeDownRefused, match="neither a URL"):
        target_of(text)


@pytest.mark.parametrize("text", ["com.vn", "公司.cn", "blogspot.com."])
def test_a_public_suffix_is_refused_in_any_form(text: str) -> None:
    with pytest.raises(TakeDownRefused, match="public suffix"):
        target_of(text)


@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ("xn--bo-mia.vn", "báo.vn"),
        ("báo.vn", "Báo.vn"),  # by a version of before
        ("*.example.vn", "*.example.vn"),  # the same
        ("example.vn", "example.vn."),
    ],
)
async def test_a_block_is_lifted_as_it_was_asked_for(kept: str, asked: str) -> None:
    lifted: list[str] = []

    async def rows() -> dict[str, Entry]:
        return {DOMAIN + kept: Entry(kept, "", "", ""), DOMAIN + "b.vn": Entry("b.vn", "", "", "")}

    async def lift(names: list[str]) -> None:
        lifted.extend(names)

    async def nothing(domain: str) -> None:
        return None

    work: Any = TakeDown.__new__(TakeDown)
    work.taken, work._open_domain = SimpleNamespace(all=rows, lift=lift), nothing
    assert await work.lift(asked) == [DOMAIN + kept] == lifted
