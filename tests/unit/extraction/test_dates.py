"""Every form in which news pages were seen to write a date, and what must not become one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from newscrawler.extraction import dates
from newscrawler.extraction.context import PageContext

VIETNAM = timezone(timedelta(hours=7))
FETCHED = datetime(2026, 11, 21, 10, 0, tzinfo=VIETNAM)
SITE = dates.rules(PageContext(zone="Asia/Ho_Chi_Minh", language="vi", fetched=FETCHED))
AMERICAN = dates.rules(PageContext(fetched=FETCHED), "example.com", "en")
BRITISH = dates.rules(PageContext(fetched=FETCHED), "example.co.uk", "en")

VISIBLE = [
    ("Thứ tư, 22/10/2025, 19:25 (GMT+7)", "2025-10-22T19:25:00+07:00"),
    ("Thứ năm, 01/01/2026 21:59 (GMT+7)", "2026-01-01T21:59:00+07:00"),
    ("Thứ Sáu, 26/12/2025 - 22:10", "2025-12-26T22:10:00+07:00"),
    ("Thứ Hai, 16:54, 29/12/2025", "2025-12-29T16:54:00+07:00"),
    ("Thứ Ba, ngày 14/01/2025 - 06:01", "2025-01-14T06:01:00+07:00"),
    ("Chủ nhật, 26/7/2026 18:18 (GMT+7)", "2026-07-26T18:18:00+07:00"),
    ("CHỦ NHẬT, 26/7/2026 18:18 (GMT +7)", "2026-07-26T18:18:00+07:00"),
    ("Thứ 6, 15/08/2025 09:10:11 (GMT+7)", "2025-08-15T09:10:11+07:00"),
    ("01/01/2026 21:35 GMT+7", "2026-01-01T21:35:00+07:00"),
    ("15/08/2026 06:54", "2026-08-15T06:54:00+07:00"),
    ("- 16/09/2026 09:43", "2026-09-16T09:43:00+07:00"),
    ("18:53, 14/08/2026", "2026-08-14T18:53:00+07:00"),
    ("18:27 | 14/08/2026", "2026-08-14T18:27:00+07:00"),
    ("18:37 26/08/2020", "2020-08-26T18:37:00+07:00"),
    ("14/08/2026 18:27 |", "2026-08-14T18:27:00+07:00"),
    ("Đăng vào lúc 07:15 ngày 15/08/2026", "2026-08-15T07:15:00+07:00"),
    ("Chủ nhật04/01/2026 08:00", "2026-01-04T08:00:00+07:00"),
    ("07h15 15/08/2026", "2026-08-15T07:15:00+07:00"),
    ("Ngày 5 tháng 10 năm 2025, 08:15", "2025-10-05T08:15:00+07:00"),
    ("15-08-2026 - 01:01 AM", "2026-08-15T01:01:00+07:00"),
    ("15-08-2026 - 17:09 PM", "2026-08-15T17:09:00+07:00"),  # a 24-hour clock with a wrong label
    ("15-08-2026 - 05:09 PM", "2026-08-15T17:09:00+07:00"),
    ("15-08-2026 - 12:09 AM", "2026-08-15T00:09:00+07:00"),
    ("Sat Aug 15 2026 06:54:00 GMT+0700 (Giờ Đông Dương)", "2026-08-15T06:54:00+07:00"),
    ("9/16/2026 10:17:00\u202fAM", "2026-09-16T10:17:00+07:00"),
    (
        "9/8/2026 10:17:00 AM",
        "2026-09-08T10:17:00+07:00",
    ),  # what .NET prints, month first even in Vietnam
    ("Mon, 14 Sep 26 08:00:00 +0700", "2026-09-14T08:00:00+07:00"),
    ("Mon, 14 Sep 2026 08:00:00 +07", "2026-09-14T08:00:00+07:00"),
    ("Mon, 14 Sep 2026 08:00:00 GMT+7", "2026-09-14T08:00:00+07:00"),
    ("2026-09-14T08:00:00+07:00", "2026-09-14T08:00:00+07:00"),
    ("2026-09-14T08:00:00.123Z", "2026-09-14T08:00:00+00:00"),
    ("2026-09-14 08:00", "2026-09-14T08:00:00+07:00"),
    ("1755212345", "2025-08-14T22:59:05+00:00"),
    ("1755212345000", "2025-08-14T22:59:05+00:00"),
    ("October 22, 2019 at 3:45 p.m. EDT", "2019-10-22T15:45:00-04:00"),
    ("7:41 AM ET Nov 19, 2019", "2019-11-19T07:41:00-05:00"),
    ("22. Oktober 2019, 15:45 Uhr", "2019-10-22T15:45:00+07:00"),
    ("Montag, 3. März 2014 um 9.30 Uhr", "2014-03-03T09:30:00+07:00"),
    ("12 de octubre de 2019 18:00", "2019-10-12T18:00:00+07:00"),
    ("22 octobre 2019 à 15h45", "2019-10-22T15:45:00+07:00"),
    ("22 октября 2019, 15:45", "2019-10-22T15:45:00+07:00"),
    ("2019年10月22日 15時45分", "2019-10-22T15:45:00+07:00"),
    ("2019년 10월 22일 15:45", "2019-10-22T15:45:00+07:00"),
    ("22 ตุลาคม 2562 15:45", "2019-10-22T15:45:00+07:00"),
]


@pytest.mark.parametrize(("text", "expected"), VISIBLE)
def test_form_is_read(text: str, expected: str) -> None:
    found = dates.parse(text, SITE)
    assert found is not None
    assert found.value.isoformat() == expected
    assert found.has_time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Chủ nhật, 04/01/2026", "2026-01-04"),
        ("5 thg 10, 2025", "2025-10-05"),
        ("20191022", "2019-10-22"),
        ("19.11.19", "2019-11-19"),
        ("Oct. 3rd, 2019", "2019-10-03"),
        ("26-Jul-2019", "2019-07-26"),
        ("24 نيسان 2020", "2020-04-24"),
    ],
)
def test_day_alone_says_that_the_hour_is_unknown(text: str, expected: str) -> None:
    found = dates.parse(text, SITE)
    assert found is not None
    assert (found.value.date().isoformat(), found.has_time) == (expected, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 phút trước", "2026-11-21T09:55:00+07:00"),
        ("3 giờ trước", "2026-11-21T07:00:00+07:00"),
        ("2 ngày trước", "2026-11-19T00:00:00+07:00"),
        ("1 tuần trước", "2026-11-14T00:00:00+07:00"),
        ("Hôm qua 14:30", "2026-11-20T14:30:00+07:00"),
        ("hôm nay", "2026-11-21T00:00:00+07:00"),
        ("Vừa xong", "2026-11-21T10:00:00+07:00"),
        ("4 hours ago", "2026-11-21T06:00:00+07:00"),
        ("vor 3 Stunden", "2026-11-21T07:00:00+07:00"),
    ],
)
def test_relative_counts_from_the_fetch_time(text: str, expected: str) -> None:
    found = dates.parse(text, SITE)
    assert found is not None and found.value.isoformat() == expected


def test_relative_without_a_fetch_time_is_no_date() -> None:
    assert dates.parse("3 giờ trước", dates.Rules()) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "99/99/2026",
        "31/02/2026",
        "12:30",
        "1234567",
        "2027-01-01",
        "01/12/1901",
        "Ảnh 12/3",
        "x" * 5000,
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert dates.parse(text, SITE) is None


def test_order_of_day_and_month_follows_the_language() -> None:
    def day(rules: dates.Rules) -> str:
        found = dates.parse("10/11/2019", rules)
        assert found is not None
        return found.value.date().isoformat()

    assert (day(SITE), day(BRITISH), day(AMERICAN)) == ("2019-11-10", "2019-11-10", "2019-10-11")
    found = dates.parse("13/11/2019", AMERICAN)
    assert found is not None and found.value.month == 11


def test_zone_of_the_site_may_be_an_offset_or_unknown() -> None:
    offset = dates.rules(PageContext(zone="+07:00"))
    found = dates.parse("15/08/2026 06:54", PageContext(zone="+07:00", language="vi"))
    assert (
        offset.zone_known
        and found is not None
        and found.value.isoformat() == "2026-08-15T06:54:00+07:00"
    )
    unknown = dates.parse("2026-08-15 06:54", dates.Rules())
    assert unknown is not None and not unknown.has_zone and unknown.value.tzinfo is UTC


def test_a_month_under_two_names_and_the_half_of_the_day_in_arabic() -> None:
    for half, hour in (("مساءً", 21), ("صباحا", 9)):
        found = dates.parse(f"تم نشره الجمعة 24 نيسان / أبريل 2020 09:22 {half}", SITE)
        assert found is not None and (found.value.month, found.value.day, found.value.hour) == (
            4,
            24,
            hour,
        )


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("15/08/2026 06:54", "-03:00", "2026-08-15T06:54:00-03:00"),
        ("15/08/2026 06:54", "-04:30", "2026-08-15T06:54:00-04:30"),
        ("15/08/2026 06:54", "America/Bogota", "2026-08-15T06:54:00-05:00"),
        ("2026-08-15T06:54:00-03:00", "+07:00", "2026-08-15T06:54:00-03:00"),
        ("2026-08-15T06:54:00-0930", "+07:00", "2026-08-15T06:54:00-09:30"),
        ("Sat, 15 Aug 2026 06:54:00 -0500", "+07:00", "2026-08-15T06:54:00-05:00"),
        ("15/08/2026 06:54 (GMT-3)", "+07:00", "2026-08-15T06:54:00-03:00"),
        ("15/08/2026 06:54 (UTC-03:30)", "+07:00", "2026-08-15T06:54:00-03:30"),
    ],
)
def test_west_of_greenwich_is_behind_it(text: str, zone: str, expected: str) -> None:
    """The site's zone and the one that the text states."""
    found = dates.parse(text, dates.rules(PageContext(zone=zone, fetched=FETCHED)))
    assert found is not None and found.value.isoformat() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("22 ตุลาคม 2562", "2019-10-22T00:00:00+07:00"),
        ("25 ธันวาคม 2568 เวลา 09:05 น.", "2025-12-25T09:05:00+07:00"),
        ("3 พ.ค. 67", "2024-05-03T00:00:00+07:00"),
        ("3 พ.ค. 2567 | 18:30 น.", "2024-05-03T18:30:00+07:00"),
        ("31 ม.ค. 69 13:45 น.", "2026-01-31T13:45:00+07:00"),
        ("วันที่ 15/08/2569 06:54", "2026-08-15T06:54:00+07:00"),
        ("15 สิงหาคม 2026 06:54 น.", "2026-08-15T06:54:00+07:00"),  # the common era, in Thai
    ],
)
def test_thai_years_count_from_543_before(text: str, expected: str) -> None:
    found = dates.parse(text, SITE)
    assert found is not None and found.value.isoformat() == expected


def test_years_of_that_size_are_no_years_elsewhere() -> None:
    assert dates.parse("22 October 2562", SITE) is None


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        ("1 giờ 05 đêm", "01:05"), ("5 giờ 59 đêm", "05:59"), ("6 giờ 00 đêm", "18:00"), ("10 giờ 05 đêm", "22:05"),
        ("11:59 đêm", "23:59"), ("12 giờ 05 đêm", "00:05"), ("1 giờ 05 sáng", "01:05"), ("1 giờ 05 chiều", "13:05"),
        ("12 giờ 05 trưa", "12:05"), ("1 giờ 05 trưa", "13:05"), ("11 giờ 05 trưa", "11:05"), ("7 giờ 05 tối", "19:05"),
        ("1 giờ đêm", "01:00"), ("10 giờ đêm", "22:00"), ("3 giờ chiều", "15:00"), ("12 giờ trưa", "12:00"), ("8 giờ sáng", "08:00"),
    ],
)  # fmt: skip
def test_hours_of_the_night_are_on_both_sides_of_midnight(clock: str, expected: str) -> None:
    for text in (f"{clock}, ngày 15/08/2026", f"{clock} 15/08/2026", f"15/08/2026, {clock}"):
        found = dates.parse(text, SITE)
        assert found is not None and found.value.isoformat() == f"2026-08-15T{expected}:00+07:00"


@pytest.mark.parametrize(
    ("days", "is_read"), [(0, True), (1, True), (2, True), (3, False), (20, False), (40, False)]
)
def test_days_ahead_of_the_fetch_are_no_publication(days: int, is_read: bool) -> None:
    """Two days are what clocks and zones may differ by; an event, a deadline or a
    discount ends later."""
    day = FETCHED + timedelta(days=days)
    for text in (
        day.isoformat(),
        f"{day:%d/%m/%Y %H:%M}",
        f"{day:%d.%m.%Y}",
        str(int(day.timestamp())),
    ):
        assert (dates.parse(text, SITE) is not None) == is_read, text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Datum:26. Januar 2026", "2026-01-26 00:00"),
        ("Stand:26.01.2026", "2026-01-26 00:00"),
        ("Published:26 January 2026", "2026-01-26 00:00"),
        ("Publié le:26 janvier 2026", "2026-01-26 00:00"),
        ("Ngày đăng:26/01/2026 lúc:10:20", "2026-01-26 10:20"),
        ("Posted:26-Jan-2026 at:3:05 PM", "2026-01-26 15:05"),
        ("10:20:26.01.2026", None),
        ("10:20:30", None),
    ],
)
def test_a_date_right_behind_the_colon_of_its_label_is_read(
    text: str, expected: str | None
) -> None:
    """Two elements without a space between them; behind a number a colon is a clock's."""
    found = dates.parse(text, SITE)
    assert (found and f"{found.value:%Y-%m-%d %H:%M}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026. január 26.", "2026-01-26 00:00"),
        ("2026. március 5., 10:20", "2026-03-05 10:20"),
        ("2026 m. sausio 26 d. 10:20", "2026-01-26 10:20"),
        ("2026. gada 26. janvāris, 10:20", "2026-01-26 10:20"),
        ("2026 Jan 26", "2026-01-26 00:00"),
        ("© 2025 January 5, 2026", "2026-01-05 00:00"),
        ("2025 5 January 2026", "2026-01-05 00:00"),
        ("2026 people 26", None),
    ],
)
def test_languages_that_begin_with_the_year(text: str, expected: str | None) -> None:
    found = dates.parse(text, SITE)
    assert (found and f"{found.value:%Y-%m-%d %H:%M}") == expected
