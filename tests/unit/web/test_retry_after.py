"""Retry-After as sites write it. Nothing may raise: the status of the answer
would be lost with it."""

from __future__ import annotations

import random
import time

import pytest

from newscrawler.web.outcomes import retry_after_s

#: Sun, 22 Nov 2026 06:00:00 GMT
NOW_MS = 1_795_327_200_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"120", 120),
        (b" 120 ", 120),
        (b"0", 0),
        (b"000120", 120),
        (b"Sun, 22 Nov 2026 06:10:00 GMT", 600),
        (b"Sun, 22 Nov 2026 06:10:00 -0000", 600),
        (b"Sun, 22 Nov 2026 05:00:00 GMT", 0),
        (b"9" * 400, 10**9),
        (b"9" * 5000, 10**9),
        (b"Fri, 31 Dec 9999 23:59:59 GMT", 10**9),
        (None, None),
        (b"", None),
        ("²".encode("latin-1"), None),
        ("²".encode(), None),
        ("٣".encode(), None),
        (b"-5", None),
        (b"12.5", None),
        (b"soon", None),
        (b"Sun, 99 Nov 2026 06:10:00 GMT", None),
        (b"Sun, 22 Nov 99999999999999999999 06:10:00 GMT", None),
    ],
)
def test_retry_after(value: bytes | None, expected: float | None) -> None:
    assert retry_after_s(value, NOW_MS) == expected


@pytest.mark.parametrize("zone", ["Asia/Ho_Chi_Minh", "America/New_York"])
def test_a_date_means_gmt_whatever_the_zone_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert retry_after_s(b"Sun, 22 Nov 2026 06:10:00 -0000", NOW_MS) == 600
    finally:
        monkeypatch.undo()
        time.tzset()


def test_no_bytes_at_all_raise() -> None:
    rng = random.Random(7)
    pieces = [b"Sun, ", b"22", b" Nov ", b"2026", b" 06:10", b":", b"+", b"-", b"(", b")", b"\xb2",
              b"\x00", b"9" * 30, b",", b" ", b"GMT", b'"', b"\\", b";", b"\xff"]  # fmt: skip
    for _ in range(20_000):
        value = b"".join(rng.choices(pieces, k=rng.randrange(1, 9)))
        found = retry_after_s(value, NOW_MS)
        assert found is None or 0 <= found <= 10**9, value
