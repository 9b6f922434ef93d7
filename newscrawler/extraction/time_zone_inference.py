"""On which clock a page's times are: UTC that readers see as local time, local clocks that are
labelled UTC. Pure."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from itertools import islice

from newscrawler.extraction import dates
from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.dates import Rules, When
from newscrawler.extraction.document import Document
from newscrawler.extraction.visible_dates import named_stamps, near_headline

_OFFSETS = re.compile(r"\d{2}:\d{2}:\d{2}(?:\.\d{1,6})? ?([+-](?:0\d|1[0-4]):?[0-5]\d)(?!\d)")
# A site whose clock is so far from UTC would not show UTC to its readers for long.
_FAR_FROM_UTC = timedelta(hours=4)
# Clocks of the earth, from UTC; no site of news is further.
_WEST, _EAST = timedelta(hours=-11), timedelta(hours=13)


def local(doc: Document, when: When, url: When | None, how: Rules) -> When:
    """The same instant on the site's clock: many templates print UTC, readers see the local day.

    The site's clock is the one of its country, or the offset that another place of the page writes
    the same instant with; else a day in the address, or shown beside the instant, tells which side
    of UTC the site is on.
    """
    if not when.has_time or when.value.utcoffset() != timedelta(0):
        return when
    offset = _same_clock(doc, when)
    if offset is not None:
        return When(when.value.replace(tzinfo=timezone(offset)), True, True)
    if not when.has_zone:
        return when
    is_zone_known = how.zone is not UTC
    if is_zone_known and _shows_clock(doc, when, how):
        return When(when.value.replace(tzinfo=how.zone), True, True)
    shown, offset = _same_instant(doc, when, how)
    day = shown or url
    if is_zone_known:
        return _in_zone(when, day, how)
    if offset is None and day is None:
        offset = _page_offset(doc) or _offset_of_shown(doc, when, how)
    return _on_side_of(when, day) if offset is None else _moved(when, timezone(offset))


def _moved(when: When, zone: tzinfo) -> When:
    return When(when.value.astimezone(zone), True, True)


def _in_zone(when: When, day: When | None, how: Rules) -> When:
    """On the clock of the site's country, unless that is another day than the one as written and
    that one is what readers see: a clock that is set to local time and labelled UTC."""
    moved = _moved(when, how.zone)
    written = when.value.date()
    if day is not None and day.value.date() == written and moved.value.date() != written:
        return when
    return moved


def _on_side_of(when: When, day: When | None) -> When:
    """On a clock on the side of UTC where the instant falls on that day."""
    if day is None or day.value.date() == when.value.date():
        return when
    clocks = (_moved(when, timezone(timedelta(hours=hours))) for hours in (-5, -8, 9, 5))
    return next((moved for moved in clocks if moved.value.date() == day.value.date()), when)


def _same_clock(doc: Document, when: When) -> timedelta | None:
    """The offset with which another place of the page writes the very same clock: the label
    "UTC" is a template's."""
    clock = f"{when.value:%Y-%m-%dT%H:%M:%S}"
    for match in re.finditer(
        clock + r"(?:\.\d{1,6})?([+-](?:0\d|1[0-4])):?([0-5]\d)(?!\d)", doc.text_html
    ):
        offset = timedelta(hours=int(match[1][1:]), minutes=int(match[2]))
        if offset:
            return -offset if match[1][0] == "-" else offset
    return None


def _shows_clock(doc: Document, when: When, how: Rules) -> bool:
    """The reader sees that very clock: it is the site's, and "Z" a template's habit. Only
    far from UTC is that sure."""
    local = when.value.replace(tzinfo=None, second=0, microsecond=0)
    if abs(how.zone.utcoffset(local) or timedelta(0)) < _FAR_FROM_UTC:
        return False
    shown = list(islice(named_stamps(doc, how), 6)) or list(filter(None, [near_headline(doc, how)]))
    return any(
        s.when.has_time and s.when.value.replace(tzinfo=None, second=0, microsecond=0) == local
        for s in shown
    )


def _offset_of_shown(doc: Document, when: When, how: Rules) -> timedelta | None:
    """How far from UTC the clock is that readers see, where its minute is that of the instant: the
    first clock near the headline that names no zone. None without one, or where it shows UTC."""
    shown = list(islice(named_stamps(doc, how), 6)) or list(filter(None, [near_headline(doc, how)]))
    clock = next((s.when for s in shown if s.when.has_time and not s.when.has_zone), None)
    if clock is None:
        return None
    distance = clock.value.replace(tzinfo=None, second=0, microsecond=0) - when.value.replace(
        tzinfo=None, second=0, microsecond=0
    )
    is_offset = _WEST <= distance <= _EAST and not distance % timedelta(minutes=30)
    return distance if distance and is_offset else None


def _page_offset(doc: Document) -> timedelta | None:
    """The one offset from UTC that times of the page's data are written with; None without
    one or with several."""
    found = {m[1].replace(":", "") for m in _OFFSETS.finditer(doc.text_html)} - {"+0000", "-0000"}
    if len(found) != 1:
        return None
    text = found.pop()
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:5]))
    return -offset if text[0] == "-" else offset


def _same_instant(doc: Document, when: When, how: Rules) -> tuple[When | None, timedelta | None]:
    """``(day that a time element of this instant shows, offset it is written with elsewhere)``."""
    label: When | None = None
    offset: timedelta | None = None
    for node in doc.tree.css("time[datetime]")[:4]:
        stated = dates.parse(node.attributes.get("datetime") or "", how)
        if stated is None or not stated.has_zone:
            continue
        if abs(stated.value - when.value) >= timedelta(minutes=1):
            continue
        offset = offset or stated.value.utcoffset() or None
        text = collapse(node.text(deep=True, separator=" "))
        label = label or dates.parse(text[:60], how)
    return label, offset
