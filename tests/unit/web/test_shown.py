"""Texts for people: nothing that steers a terminal or a spreadsheet, no password of an address."""

from __future__ import annotations

import json
import time

import pytest

from newscrawler.utils.display import cell, json_shown, line_shown, shown, url_shown
from tests.measured import least

STEERING = [
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]


@pytest.mark.parametrize("code", [*STEERING, 0x061C, 0x200E, 0x2028, 0x2029, 0xD800, 0xDFFF])
def test_what_a_terminal_obeys_is_replaced(code: int) -> None:
    for text in (f"a{chr(code)}b", f"đ{chr(code)}"):
        assert shown(text) == text.replace(chr(code), "\ufffd")
        assert line_shown(text).isprintable()
        shown(text).encode()
        assert chr(code) not in json_shown(json.dumps(text, ensure_ascii=False))
        if code < 0xD800:
            assert json.loads(json_shown(json.dumps(text, ensure_ascii=False))) == text


@pytest.mark.parametrize(
    "text", ["", "Hà Nội – 5 °C", "一\n二\tthree", "ภาษาไทย", "👩‍👩‍👧", "שלום"]
)
def test_what_people_write_stays(text: str) -> None:
    assert shown(text) == text
    assert json_shown(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


def test_a_cell_of_a_table_is_one_line() -> None:
    assert line_shown("one\r\n  two\tthree\n") == "one two three "


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://:PW@h:6379/0", "redis://***@h:6379/0"),
        ("redis://user:PW@h:6379/0", "redis://***@h:6379/0"),
        ("redis://:P/W#1@h:6379/0", "redis://***@h:6379/0"),
        ("redis://:P?W@h:6379/0", "redis://***@h:6379/0"),
        ("redis://:P@W@h:6379/0", "redis://***@h:6379/0"),
        ("redis+cluster://u:PW@h1:1,h2:2/0", "redis+cluster://***@h1:1,h2:2/0"),
        ("redis://h:6379/0?password=PW&db=1", "redis://h:6379/0?password=***&db=1"),
        ("https://elastic:PW@es.example:9200", "https://***@es.example:9200"),
        ("https://llm.example/v1?api_key=PW", "https://llm.example/v1?api_key=***"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("https://es.example:9200", "https://es.example:9200"),
        ("/var/lib/articles.db", "/var/lib/articles.db"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, told: str) -> None:
    assert url_shown(url) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no answer from http://u:PW@h/v1 in 3 s", "no answer from http://***@h/v1 in 3 s"),
        ("'redis://:PW@h', twice 'redis://:PW@h'", "'redis://***@h', twice 'redis://***@h'"),
        ("https://medium.com/@user/x", "https://medium.com/@user/x"),
        ("https://a.vn?mail=a@b.vn", "https://a.vn?mail=a@b.vn"),
        ("mail a@b.vn", "mail a@b.vn"),
    ],
)
def test_passwords_inside_a_text_are_hidden(text: str, told: str) -> None:
    assert shown(text) == told


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("+1+cmd", "'+1+cmd"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1+1", "'\t=1+1"),
        (" =1", "' =1"),
        ("\r=1", "\ufffd=1"),
        ("-5 độ C", "'-5 độ C"),
        ("-5", "-5"),
        ("+84", "+84"),
        ("1,5", "1,5"),
        ("Giá = 5", "Giá = 5"),
        ("", ""),
        (None, None),
        (5, 5),
    ],
)
def test_cells_are_no_formulas(value: object, written: object) -> None:
    assert cell(value) == written


@pytest.mark.parametrize("text", ["a://" * 2, "a" * 8, "a://x", "\x1b", " \n", "a:/", "http://a:b"])
@pytest.mark.parametrize("function", [shown, line_shown, json_shown, url_shown, cell])
def test_twice_the_text_is_no_more_than_three_times_the_work(function: object, text: str) -> None:
    def cpu(count: int) -> float:
        long, best = text * count, 9.0
        for _ in range(5):
            start = time.thread_time()
            function(long)  # type: ignore[operator]
            best = min(best, time.thread_time() - start)
        return best

    count = 20_000
    assert least(lambda: cpu(2 * count) / (cpu(count) + 0.0017), 3) < 3
