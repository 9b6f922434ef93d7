"""The rule by which a site's second addresses lead to its articles' own ones."""

from __future__ import annotations

import pytest

from newscrawler.discovery import second_addresses

BASE = "https://bao.vn"


@pytest.mark.parametrize(
    ("second", "own", "rule"),
    [
        ("/bai-1.html?box=moi", "/bai-1.html", "query box"),
        ("/bai?id=7&box=moi", "/bai?id=7", "query box"),
        ("/bai-1/amp", "/bai-1", "end /amp"),
        ("/bai-1/amp/", "/bai-1/", "end /amp/"),
        ("/bai-1.html.amp", "/bai-1.html", "end .amp"),
        ("/amp/bai-1.html", "/bai-1.html", "front /amp"),
        ("/bai-1/2", "/bai-1", None),  # its second page, perhaps
        ("/bai-1?page=1", "/bai-1", None),
        ("/bai-1?trang=1", "/bai-1", None),
        ("/ban-doc/bai-1", "/thoi-su/bai-1", None),
        ("/bai-1", "/bai-2", None),
        ("/bai-1?a=1&b=2", "/bai-1", None),
    ],
)
def test_a_rule_is_what_two_addresses_differ_in(second: str, own: str, rule: str | None) -> None:
    if own.endswith("/") and rule == "end /amp/":
        own = own.rstrip("/")
    assert second_addresses.rule_of(BASE + second, BASE + own) == rule
    assert second_addresses.rule_of("https://m.bao.vn" + second, BASE + own) is None
    if rule:
        assert second_addresses.applied(rule, BASE + second) == BASE + own
        assert second_addresses.applied(rule, BASE + own) is None


def test_a_rule_is_believed_after_three_addresses_and_while_none_contradicts() -> None:
    urls = [f"{BASE}/bai-{n}?box=moi" for n in range(500)]
    found = [second_addresses.original(url, {"query box": 3}, {}) for url in urls]
    assert 480 <= sum(url is not None for url in found) < 500, "some are asked for all the same"
    assert all(second_addresses.original(url, {"query box": 2}, {}) is None for url in urls)
    assert all(
        second_addresses.original(url, {"query box": 9}, {"query box": 1}) is None for url in urls
    )
