"""Sites of which only the home page is told: what they announce, and how their addresses
look. Drawn by seed.

Feeds are announced by home and section pages, by one of them, or not at all; sitemaps stand where
they usually do, named by robots.txt or not; the sections of the menu have addresses of every shape,
and a vendor's tag of an article; "About us" has that tag too, and the menu names a tag page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.newsweb.language import rng_for, slugify
from tests.newsweb.templates import SECTION_NAMES

#: Addresses of sections: one word, four words and more, with an id, with an ending,
#: below a common folder.
SECTION_SHAPES = (
    "/{slug}",
    "/tin-tuc-{slug}-hom-nay.html",
    "/{slug}-{id}.htm",
    "/chuyen-muc/{slug}/",
    "/{slug}.html",
    "/category/{slug}",
    "/muc/{id}/{slug}-moi-nhat",
)
FEEDS = ("home", "home and sections", "none")
SITEMAPS = ("unnamed", "named", "news, unnamed", "none")
ABOUT = "/gioi-thieu"
TAG = "/tags/gia-vang-sjc.html"


@dataclass(frozen=True)
class Unknown:
    """What is unknown of one site. ``vendor_tag``: every page says that it is an article."""

    sections: tuple[tuple[str, str], ...]  # (path, label)
    feeds: str  # one of FEEDS
    sitemap: str  # one of SITEMAPS
    vendor_tag: bool

    @property
    def sitemap_path(self) -> str:
        if self.sitemap == "none":
            return ""
        return "/news-sitemap.xml" if self.sitemap.startswith("news") else "/sitemap.xml"

    @property
    def is_named(self) -> bool:
        return self.sitemap == "named"

    def truth(self) -> dict[str, Any]:
        return {
            "sections": [path for path, _ in self.sections],
            "feeds": self.feeds,
            "sitemap": self.sitemap_path,
            "sitemap_is_named": self.is_named,
            "vendor_tag": self.vendor_tag,
        }


def drawn(seed: int, key: str, number: int) -> Unknown:
    """``number``: of the site. Shapes and channels go round from a drawn start, so that a
    few sites have them all."""
    rng = rng_for(seed, "unknown", key)
    first = rng_for(seed, "unknown").randrange(84)
    sections = []
    for place, label in enumerate(rng.sample(SECTION_NAMES, k=5)):
        shape = SECTION_SHAPES[(first + number + place * (number % 2)) % len(SECTION_SHAPES)]
        path = shape.format(slug=slugify(label), id=100_000 + rng.randrange(900_000))
        sections.append((path, label))
    return Unknown(
        tuple(sections),
        FEEDS[(first + number) % len(FEEDS)],
        SITEMAPS[(first + number) % len(SITEMAPS)],
        vendor_tag=number % 2 == 0,
    )
