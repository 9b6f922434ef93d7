"""Per site: name, shape of addresses, sections, date form of its feeds, oddities. Facts, as data.

``TEMPLATES`` is keyed by domain. The names layout serves each domain by its own template; the ip
layout takes a choice of them, each on a loopback address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.newsweb.language import slugify
from tests.newsweb.markup import Markup
from tests.newsweb.markups import MARKUPS

SECTION_NAMES = (
    "Thời sự",
    "Thế giới",
    "Kinh doanh",
    "Pháp luật",
    "Giáo dục",
    "Sức khỏe",
    "Thể thao",
    "Giải trí",
    "Đời sống",
    "Du lịch",
)


@dataclass(frozen=True)
class Template:
    """``shape`` has {slug}, {id} and, on some, {section}, {num} (the section's number) and {day}
    (of publication, yyyy/mm/dd)."""

    key: str
    name: str
    shape: str
    ids: str = (
        "seq"  # seq | stamp (yyyymmddhhmmssmmm) | vc:<prefix> (prefix yymmddhhmmssmmm) | slug
    )
    first_id: int = 4_800_000
    section_shape: str = "/{section}"
    pager: str = "{base}-p{n}"  # {base} = section path without its ending, {end} = its ending
    feed_dates: str = "rfc822"
    feed_quirks: dict[str, str] = field(
        default_factory=dict
    )  # regex of the path -> empty | 404 | loop | gzip | full
    challenge: bool = False
    robots: str = "plain"  # plain | delay | redirect | 404 | 5xx | crlf
    delay: float = 0.0  # Crawl-delay, seconds; 0 = none
    twin: str = ""  # "m" | "amp" host twin; ".amp" path twin
    etag: str = "strong"  # strong | weak | date | none | volatile
    own_markup: Markup | None = None  # in place of that of the key

    @property
    def markup(self) -> Markup:
        return self.own_markup or MARKUPS[self.key]

    @property
    def path_regex(self) -> re.Pattern[str]:
        """Matches an article's path whatever its slug; group 1 is the article id."""
        digits = {"seq": r"(\d{4,8})", "stamp": r"(\d{17})"}.get(self.ids, r"(\d{15,20})")
        pattern = (
            re.escape(self.shape)
            .replace(r"\{slug\}", r"([\w-]+)" if self.ids == "slug" else r"[\w-]+")
            .replace(r"\{section\}", r"[\w/-]+")
            .replace(r"\{day\}", r"\d{4}/\d\d/\d\d")
        )
        return re.compile(
            "^" + pattern.replace(r"\{num\}", r"\d+").replace(r"\{id\}", digits) + "$"
        )

    def sections(self) -> list[tuple[str, str]]:
        """(path, label) of the default sections; used where no sites file says more."""
        return [
            (self.section_shape.format(section=slugify(label), num=40 + i), label)
            for i, label in enumerate(SECTION_NAMES[:5])
        ]


def _vc(key: str, name: str, prefix: str, end: str = "htm", **more: Any) -> Template:
    ids = f"vc:{prefix}" if prefix else "stamp"
    return Template(
        key,
        name,
        "/{slug}-{id}." + end,
        ids,
        section_shape="/{section}." + end,
        pager="{base}/trang-{n}{end}",
        **more,
    )


def _mc(key: str, name: str, end: str, **more: Any) -> Template:
    return Template(
        key,
        name,
        "/{slug}-post{id}." + end,
        section_shape="/{section}/",
        pager="{base}?trang={n}",
        **more,
    )


TEMPLATES: dict[str, Template] = {
    t.key: t
    for t in (
        Template(
            "vnexpress.net",
            "VnExpress",
            "/{slug}-{id}.html",
            first_id=4_954_000,
            robots="delay",
            delay=1.0,
        ),
        Template(
            "dantri.com.vn",
            "Dân trí",
            "/{section}/{slug}-{id}.htm",
            "stamp",
            section_shape="/{section}.htm",
            pager="{base}/trang-{n}{end}",
            robots="redirect",
            etag="weak",
        ),
        _vc("tuoitre.vn", "Tuổi Trẻ", "", feed_dates="us-nnbsp"),
        _vc("thanhnien.vn", "Thanh Niên", "185", etag="date"),
        Template(
            "vietnamnet.vn",
            "VietNamNet",
            "/{slug}-{id}.html",
            first_id=2_560_000,
            pager="{base}-page{n}",
            feed_quirks={r"^/rss/": "404"},
            robots="crlf",
        ),
        _mc("tienphong.vn", "Tiền Phong", "tpo", first_id=1_806_000, etag="date"),
        Template(
            "laodong.vn",
            "Lao Động",
            "/{section}/{slug}-{id}.ldo",
            first_id=1_539_000,
            challenge=True,
        ),
        _vc("nld.com.vn", "Người Lao Động", "196", robots="404"),
        _vc("vtv.vn", "VTV", "100", feed_dates="short-zone"),
        Template(
            "vov.vn",
            "VOV",
            "/{section}/{slug}-post{id}.vov",
            first_id=1_280_000,
            pager="{base}?page={n}",
            feed_dates="gmt7",
            robots="5xx",
            etag="none",
        ),
        Template(
            "znews.vn",
            "Znews",
            "/{slug}-post{id}.html",
            first_id=1_681_000,
            section_shape="/{section}.html",
            pager="{base}/trang{n}{end}",
            etag="volatile",
        ),
        _vc("kenh14.vn", "Kenh14", "215", "chn", twin="m"),
        Template(
            "24h.com.vn",
            "24h",
            "/{section}/{slug}-c{num}a{id}.html",
            first_id=1_684_000,
            section_shape="/{section}-c{num}.html",
            pager="{base}{end}?vpage={n}",
            etag="none",
        ),
        _vc(
            "cafef.vn",
            "CafeF",
            "188",
            "chn",
            feed_dates="two-digit-year",
            robots="delay",
            delay=1.5,
        ),
        _vc("cafebiz.vn", "CafeBiz", "176", "chn", twin="m"),
        _vc("soha.vn", "Soha", "198"),
        _mc(
            "vietnamplus.vn",
            "VietnamPlus",
            "vnp",
            first_id=1_046_000,
            feed_quirks={r"\.rss$": "gzip"},
            twin=".amp",
        ),
        _mc("nhandan.vn", "Nhân Dân", "html", first_id=689_000),
        Template(
            "hanoimoi.vn",
            "Hànộimới",
            "/{slug}-{id}.html",
            first_id=689_000,
            pager="{base}?p={n}",
            feed_quirks={r"\.rss$": "empty"},
        ),
        _mc("sggp.org.vn", "SGGP", "html", first_id=819_000, feed_dates="colon-zone"),
        _mc("plo.vn", "PLO", "html", first_id=819_000),
        Template(
            "cand.com.vn",
            "Công an nhân dân",
            "/{section}/{slug}-i{id}/",
            first_id=780_000,
            section_shape="/{section}/",
            pager="{base}p{n}/",
        ),
        Template(
            "vtcnews.vn",
            "VTC News",
            "/{slug}-ar{id}.html",
            first_id=1_036_000,
            section_shape="/{section}-{num}.html",
            pager="{base}/trang-{n}{end}",
            feed_dates="iso",
            twin="amp",
            robots="404",
        ),
        Template(
            "danviet.vn",
            "Dân Việt",
            "/{slug}-d{id}.html",
            first_id=1_422_000,
            section_shape="/{section}/",
            pager="{base}p{n}",
        ),
        _vc("baochinhphu.vn", "Báo Chính phủ", "102", feed_dates="us"),
        Template(
            "qdnd.vn",
            "Quân đội nhân dân",
            "/{section}/{slug}-{id}",
            first_id=1_020_000,
            pager="{base}/p/{n}",
            feed_quirks={r"^/rss": "loop"},
        ),
        _mc("giaoducthoidai.vn", "Giáo dục & Thời đại", "html", first_id=712_000),
        _vc("suckhoedoisong.vn", "Sức khỏe & Đời sống", "169"),
        Template(
            "infonet.vietnamnet.vn",
            "Infonet",
            "/{slug}-{id}.html",
            first_id=277_000,
            pager="{base}/trang{n}",
        ),
        _vc("baogiaothong.vn", "Báo Giao thông", "192"),
        Template(
            "baodautu.vn",
            "Báo Đầu tư",
            "/{slug}-d{id}.html",
            first_id=596_000,
            section_shape="/{section}-d{num}/",
            pager="{base}p{n}",
            feed_quirks={r"\.rss$": "empty"},
        ),
        Template(
            "vneconomy.vn",
            "VnEconomy",
            "/{slug}.htm",
            "slug",
            section_shape="/{section}.htm",
            pager="{base}{end}?trang={n}",
            feed_dates="utc",
            feed_quirks={r"^/rss/home\.rss$": "empty", r"^/(?!rss/).*\.rss$": "full"},
        ),
        Template(
            "baovephapluat.vn",
            "Bảo vệ pháp luật",
            "/{section}/{slug}-{id}.html",
            first_id=111_000,
            pager="{base}/page-{n}",
        ),
    )
}

#: The sites of the ip layout, in the order of their addresses: at least one of each family.
IP_SITES = (
    "vnexpress.net",
    "dantri.com.vn",
    "tuoitre.vn",
    "vietnamnet.vn",
    "tienphong.vn",
    "vietnamplus.vn",
    "vov.vn",
    "znews.vn",
    "24h.com.vn",
    "vtcnews.vn",
    "qdnd.vn",
    "vneconomy.vn",
    "baodautu.vn",
    "cafebiz.vn",
    "laodong.vn",
    "cafef.vn",
)
