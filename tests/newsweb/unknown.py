"""Sites of which only the home page is told: what they announce, and how their addresses
look. Drawn by seed.

Feeds are announced by home and section pages, by one of them, or not at all; sitemaps stand where
they usually do, named by robots.txt or not; the sections of the menu have addresses of every shape,
and so have the articles; a vendor's tag of an article stands on every page of some sites; "About
us" and "Contact" have such a tag too, and the menu names a tag page. One in six is plain: its
articles state nothing of themselves and their addresses are too short to be taken for one's. Some
sites sign their articles at the end of the text and state an organisation where the author belongs;
of some every fourth page fails when it is asked for first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.newsweb.language import rng_for, slugify
from tests.newsweb.markup import Markup
from tests.newsweb.templates import SECTION_NAMES, TEMPLATES, Template

#: Addresses of sections: one word, four words and more, with an id, with an ending,
#: below a common folder, by a parameter.
SECTION_SHAPES = (
    "/{slug}",
    "/tin-tuc-{slug}-hom-nay.html",
    "/{slug}-{id}.htm",
    "/chuyen-muc/{slug}/",
    "/{slug}.html",
    "/category/{slug}",
    "/muc/{id}/{slug}-moi-nhat",
    "/c/{id}",
    "/tin-moi-nhat-ve-{slug}-c{id}.html",
)
#: Addresses of articles, and what their ids are; "" = those of the template.
ARTICLE_SHAPES = (
    ("", ""),
    ("/{section}/{slug}", "slug"),
    ("/{day}/{slug}.html", "slug"),
    ("", ""),
    ("/{section}/{id}.html", "seq"),
    ("/{slug}/{id}", "seq"),
    ("/bai/{id}", "seq"),
    ("/{slug}", "slug"),
)
#: The address of an article of a site that states nothing, and the least of its ids: too short to
#: be taken for one.
PLAIN_SHAPE, PLAIN_FIRST_ID = "/tin/{id}", 1000
#: One site in so many is such a one.
PLAIN_ONE_IN = 6
#: The last paragraph of an article that its writer signs.
SIGNATURES = (
    "p[style=text-align:right] strong",
    "p.tacgia strong",
    "p[align=right] b",
)
#: Below which pages of one word stand, which each article links to.
TOPICS = ("/tu-khoa/", "/t/", "/dong-su-kien/", "/nhan-vat/", "/diem-den/")
#: Second addresses of articles: a parameter, a piece of the path, none.
TWINS = ("?box=moi", "/amp", "")
FEEDS = ("home", "home and sections", "none")
SITEMAPS = ("unnamed", "named", "news, unnamed", "none")
ABOUT = "/gioi-thieu"
CONTACT = "/lien-he.html"
TAG = "/tags/gia-vang-sjc.html"
#: Of a site that fails, one page in so many.
FAILS_ONE_IN = 4


@dataclass(frozen=True)
class Unknown:
    """What is unknown of one site. ``vendor_tag``: every page says that it is an article.
    ``shape``, ``ids``: of its articles' addresses. ``signature``: where its writers sign, "" = as
    the template has it. ``fails``: one page in four is not there when it is first asked for."""

    sections: tuple[tuple[str, str], ...]  # (path, label)
    feeds: str  # one of FEEDS
    sitemap: str  # one of SITEMAPS
    vendor_tag: bool
    shape: str = ""
    ids: str = ""
    signature: str = ""
    fails: bool = False
    topics: str = TOPICS[0]
    twin: str = ""  # what second addresses of its articles have at their end
    section_shapes: tuple[str, ...] = ()  # of SECTION_SHAPES, those of its sections
    is_plain: bool = False  # its articles state nothing of themselves

    @property
    def sitemap_path(self) -> str:
        if self.sitemap == "none":
            return ""
        return "/news-sitemap.xml" if self.sitemap.startswith("news") else "/sitemap.xml"

    @property
    def is_named(self) -> bool:
        return self.sitemap == "named"

    def template(self, own: Template) -> Template:
        """The template with the addresses and the signatures that were drawn."""
        if self.shape:
            own = replace(own, shape=self.shape, ids=self.ids, twin="")
        if self.is_plain:
            own = replace(own, first_id=PLAIN_FIRST_ID)
            return replace(own, own_markup=_bare(own.markup))
        return replace(own, own_markup=self._signed(own.markup)) if self.signature else own

    def _signed(self, markup: Markup) -> Markup:
        metas = tuple(name for name in markup.metas if name not in ("writer", "facebook"))
        return replace(
            markup, author="", avatar=False, tail_author=self.signature, jsonld="org",
            author_meta=True, metas=metas,
        )  # fmt: skip

    def truth(self) -> dict[str, Any]:
        return {
            "sections": [path for path, _ in self.sections],
            "section_shapes": sorted(set(self.section_shapes)),
            "feeds": self.feeds,
            "sitemap": self.sitemap_path,
            "sitemap_is_named": self.is_named,
            "vendor_tag": self.vendor_tag,
            "shape": self.shape,
            "signature": self.signature,
            "fails": self.fails,
            "topics": self.topics,
            "twin": self.twin,
            "is_plain": self.is_plain,
        }


def _bare(markup: Markup) -> Markup:
    return replace(
        markup, jsonld="", metas=(), author_meta=False, date_attr="", wrap="div.main-content"
    )


def drawn(seed: int, key: str, number: int) -> Unknown:
    """``number``: of the site. Shapes and channels go round from a drawn start, so that a
    few sites have them all."""
    rng = rng_for(seed, "unknown", key)
    first = rng_for(seed, "unknown").randrange(2520)
    sections, shapes = [], []
    for place, label in enumerate(rng.sample(SECTION_NAMES, k=5)):
        shape = SECTION_SHAPES[(first + number + place * (number % 2)) % len(SECTION_SHAPES)]
        path = shape.format(slug=slugify(label), id=100_000 + rng.randrange(900_000))
        sections.append((path, label))
        shapes.append(shape)
    shape, ids = ARTICLE_SHAPES[(first + number) % len(ARTICLE_SHAPES)]
    is_plain = (first // 13 + number) % PLAIN_ONE_IN == 0
    if is_plain:
        shape, ids = PLAIN_SHAPE, "seq"
    signature = rng.choice(SIGNATURES) if (first // 7 + number) % 3 == 0 else ""
    return Unknown(
        tuple(sections),
        FEEDS[(first + number) % len(FEEDS)],
        SITEMAPS[(first // 3 + number) % len(SITEMAPS)],
        vendor_tag=not is_plain and (first // 5 + number) % 2 == 0,
        shape=shape,
        ids=ids,
        signature=signature if not is_plain else "",
        fails=(first // 9 + number) % 4 == 0,
        topics=rng.choice(TOPICS),
        twin=TWINS[(first // 11 + number) % len(TWINS)],
        section_shapes=tuple(shapes),
        is_plain=is_plain,
    )


def drawn_template(seed: int, number: int) -> Template:
    """One of all templates that need no proof of a browser; so many sites in a row differ."""
    keys = sorted(key for key, template in TEMPLATES.items() if not template.challenge)
    rng_for(seed, "templates").shuffle(keys)
    return TEMPLATES[keys[number % len(keys)]]
