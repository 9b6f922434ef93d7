"""Whether a page is an article, and else what it is. Pure.

"challenge" (asks for proof of a browser, or for consent first), "missing" (says that it is not
there), "no title", "no content", "video" (a film with a sentence or two), "listing" (a home or
section page), "stub" (too little text), "page" (nobody calls it an
article, it states no date of one, and shows none over a text).
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from newscrawler.extraction import lexicon, page_metadata, teasers
from newscrawler.extraction.blocks import ends_a_sentence
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.result import Extraction

#: Characters of content below which a page is a stub, and below which a page that
#: says "paid" is one.
STUB_CHARS = 120
PAID_STUB_CHARS = 400
#: Characters of sentences below which a page that is a video by its own words is one and
#: not an article.
VIDEO_CHARS = 350
# A headline says less about a section page: so many linked headings and no sign of one article.
_LISTING_HEADINGS = 12
_LINKED_HEADINGS = "h1 a[href],h2 a[href],h3 a[href],h4 a[href],a[href] h2,a[href] h3"
# So many on a page whose address is an article's: a site sends what it has lost to its front page.
_FRONT_HEADINGS = 20
# So many teasers make a page a list, if most of its text stands in them or its own
# menu leads to it.
_LISTING_TEASERS = 8
_TEASER_SHARE = 0.6
# Fewer make one of a page whose address is no article's, if there is hardly another text.
_FEW_TEASERS = 3
_FEW_TEASERS_SHARE = 0.8
# A list's own text is a line or two of what it is about; a short article whose teasers were taken
# for text has more.
_OWN_CHARS = 400
# Characters from which a page that states nothing of itself is an article by what readers see.
_PLAIN_CHARS = 400
# Where dates come from that readers see.
_SHOWN = frozenset({"text", "time"})
# What a page that says of itself that it is an article has somewhere: a type of schema.org, or
# OpenGraph's.
_CLAIMS = re.compile(r"(?:News|\W)Article\b|BlogPosting|content=[\"']?article\b", re.I | re.A)
# Where a site links to its sections and service pages; what it calls them is short.
_MENUS = (
    "nav a[href], header a[href], footer a[href], [role=navigation] a[href], [class*=menu] a[href]"
)
_MENU_NAME_CHARS, _MENU_NAME_WORDS = 40, 6
# Links on the root of a host that make it a home page rather than a page with one text.
_HOME_LINKS = 60
# A page that asks for consent or says that it is missing is not longer.
_WALL_CHARS = 4_000
_MISSING_CHARS = 800
_CONSENT = lexicon.Pattern(r"<consent.about>")
_MISSING = lexicon.Pattern(
    r"^\W*(?:(?:<missing.error>)\W{0,3})?404\b|^\W*(?:<missing.line>)"
    r"|\b(?:<missing.what>) (?:(?:<missing.verb>) )?(?:<missing.state>)"
)
# What protections call the page that they show instead.
_WALL = lexicon.Pattern(r"\W*(?:<wall.title>)")
# Scripts whose characters say as much as two or three letters.
_DENSE = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_LISTING_TYPES = frozenset({"collectionpage", "searchresultspage"})
_VIDEO_PATH = re.compile(r"^(?:[a-z0-9-]+\.)*?videos?\.|/(?:videos?|watch|clips?)/", re.I)


def why_not(out: Extraction, doc: Document, context: PageContext) -> str:
    """Why the page is no article; "" when it is one."""
    if _is_challenge(doc):
        return "challenge"
    content = out.content.value or ""
    if not out.title.value:
        return _untitled(doc, content)
    seen = page_metadata.of(doc)
    if len(content) < _MISSING_CHARS and _says_missing(out, seen):
        return "missing"
    if _is_video(doc, seen) and _sentences(content) < VIDEO_CHARS:
        return "video"
    if not content:
        return "no content"
    if _is_wall(content, seen):
        return "challenge"
    return _not_one_article(out, doc, context, seen) or ("stub" if _is_stub(content, seen) else "")


def _is_wall(content: str, seen: page_metadata.PageMetadata) -> bool:
    return len(content) < _WALL_CHARS and not seen.has_article and _asks_for_consent(content)


def _not_one_article(
    out: Extraction, doc: Document, context: PageContext, seen: page_metadata.PageMetadata
) -> str:
    """Of a page with a headline and a text: "listing", "page" or ""."""
    in_menu = context.needs_evidence and _is_in_own_menu(doc, out.title.value)
    if _is_listing(out, doc, context, seen) or _is_teasers(out, doc, context, in_menu):
        return "listing"
    if not context.needs_evidence:
        return ""
    is_one = _states_an_article(out, doc, seen) or _shows_an_article(out, context)
    return "page" if in_menu or not is_one else ""


def _says_missing(out: Extraction, seen: page_metadata.PageMetadata) -> bool:
    return not seen.has_article and _MISSING.search(out.title.value) is not None


def _untitled(doc: Document, content: str) -> str:
    """The kind of a page without a headline, by what it calls itself."""
    called = _called(doc)
    if _MISSING.search(called):
        return "missing"
    if _WALL.match(called) or (not content and _is_script_alone(doc)):
        return "challenge"
    return "no title"


def _is_stub(content: str, seen: page_metadata.PageMetadata) -> bool:
    least: float = STUB_CHARS if seen.is_free is not False else PAID_STUB_CHARS
    if len(_DENSE.findall(content[:1000])) > 100:
        least *= 0.4  # a Chinese character says as much as two or three letters
    return len(content) < least


def _is_challenge(doc: Document) -> bool:
    """A small page without a paragraph whose script sets a cookie or moves on
    (docs/extraction.md)."""
    if len(doc.body) > 4_000 or doc.tree.css_first("p") is not None:
        return False
    return bool(re.search(r"document\.cookie\s*=|location\.(?:reload|href|replace)", doc.text_html))


def _called(doc: Document) -> str:
    """The page's name for itself, where that is no headline."""
    node = doc.tree.css_first("title")
    return node.text(deep=True)[:200].strip() if node is not None else ""


def _is_script_alone(doc: Document) -> bool:
    """No title, no text: a script that is to prove a browser, of whatever size."""
    body = doc.tree.body
    if doc.tree.css_first("script") is None or doc.tree.css_first("title") is not None:
        return False
    return body is None or body.css_first("p,div,a,h1,iframe,form") is None


def _asks_for_consent(content: str) -> bool:
    """Most of the text is of cookies, partners and consent."""
    lowered = content.casefold()
    if "cookie" not in lowered and "javascript" not in lowered:
        return False
    parts = content.split("\n\n")
    of_consent = sum(len(part) for part in parts if _CONSENT.search(part))
    mentions = sum(1 for _ in _CONSENT.finditer(content))
    return of_consent > 0.6 * len(content) and mentions >= max(2, len(content) // 300)


def _sentences(content: str) -> int:
    """Characters of whole sentences: a film's page has its title, its date and its tags in
    lines of their own."""
    return sum(
        len(part) for part in content.split("\n\n") if len(part) > 200 or ends_a_sentence(part)
    )


def _is_video(doc: Document, seen: page_metadata.PageMetadata) -> bool:
    kind = (doc.meta_first("og:type") or "").lower()
    if kind.startswith("video") or ("videoobject" in seen.types and not seen.has_article):
        return True
    return bool(_VIDEO_PATH.search(doc.url.partition("://")[2]))


def _is_listing(
    out: Extraction, doc: Document, context: PageContext, seen: page_metadata.PageMetadata
) -> bool:
    """A home or section page: many linked headings, nothing that says "one article"."""
    if seen.has_article or doc.meta_first("article:published_time"):
        return False
    if context.url_is_article:
        # A set has found its article there, and looking for headings costs a tenth of such a page.
        return not out.content.origin.startswith("selector:") and _is_front(out, doc)
    path = urlsplit(doc.url).path.strip("/")
    is_root = not path or path in ("index.html", "index.php", "index.htm")
    linked = len(doc.tree.css(_LINKED_HEADINGS))
    if linked < _LISTING_HEADINGS:
        return is_root and len(doc.tree.css("a[href]")) >= _HOME_LINKS
    is_stated = context.url_is_article is False or not _LISTING_TYPES.isdisjoint(seen.types)
    if is_root or is_stated:
        return True
    dated = out.published.confidence
    if not _has_visible_title(out):
        return dated < 0.75  # a section's name stands in the menu
    # Teasers are many and short; an article has long paragraphs or outweighs its linked headings.
    content = out.content.value or ""
    return dated < 0.6 and _long_paragraphs(content) < 3 and len(content) < 120 * linked


def _has_visible_title(out: Extraction) -> bool:
    return out.title.origin.startswith(("generic:", "selector:"))


def _long_paragraphs(content: str) -> int:
    return sum(len(paragraph) > 200 for paragraph in content.split("\n\n"))


def _is_teasers(out: Extraction, doc: Document, context: PageContext, in_menu: bool) -> bool:
    """Many teasers and little text of its own: a list, whatever the page states of itself. Not
    asked where a set found the article: it knows the template."""
    if out.content.origin.startswith("selector:"):
        return False
    blocks = teasers.teasers(doc)
    if len(blocks) < (_FEW_TEASERS if context.needs_evidence else _LISTING_TEASERS):
        return False
    content = out.content.value or ""
    share = teasers.share_in(content, blocks)
    if len(blocks) < _LISTING_TEASERS:
        return share >= _FEW_TEASERS_SHARE
    return in_menu or (share >= _TEASER_SHARE and (1 - share) * len(content) < _OWN_CHARS)


def _is_in_own_menu(doc: Document, title: str) -> bool:
    """The page's own menu or footer leads to it under a short name that its title has, as it does
    to sections, "About us" and the like. Other names are of a language, a day or a button: articles
    have such links to themselves, too."""
    titles = f"{title}\n{_called(doc)}".casefold()
    own = teasers.address(doc.base_url, doc.url)
    for node in doc.tree.css(_MENUS):
        href = (node.attributes.get("href") or "").strip()
        if not href or "#" in href or teasers.address(doc.base_url, href) != own:
            continue  # "#content" skips the menu
        name = " ".join(node.text(deep=True).split())
        is_short = 0 < len(name) <= _MENU_NAME_CHARS and name.count(" ") < _MENU_NAME_WORDS
        if is_short and name.casefold() in titles:
            return True
    return False


def _states_an_article(out: Extraction, doc: Document, seen: page_metadata.PageMetadata) -> bool:
    """An article's own date, where articles state it, or the tag of an article with a date that
    readers see. A tag alone is no evidence: vendors put it on every page."""
    if seen.has_article and seen.published_raw:
        return True
    if doc.meta_first("article:published_time"):
        return True
    if out.published.origin.startswith(("meta:", "itemprop")) and out.published.confidence >= 0.85:
        return True
    is_tagged = seen.has_article or (doc.meta_first("og:type") or "").lower() == "article"
    return is_tagged and _has_date(out)


def _shows_an_article(out: Extraction, context: PageContext) -> bool:
    """Of a page that states nothing of itself: a headline, a text of some length, and a date that
    readers see, or the site's word that such addresses are those of its articles."""
    if not _has_visible_title(out) or len(out.content.value or "") < _PLAIN_CHARS:
        return False
    return context.others_are_articles or (_has_date(out) and out.published.origin in _SHOWN)


def _has_date(out: Extraction) -> bool:
    return out.published.confidence >= 0.6 and out.published.origin != "url"


def claims_article(doc: Document) -> bool:
    """Whether the page says somewhere that it is an article. Cheap, and no proof: the words stand
    in the teasers of lists and on every page of some vendors, too."""
    return _CLAIMS.search(doc.text_html) is not None


def _is_front(out: Extraction, doc: Document) -> bool:
    """A front or section page at an article's address: nothing on it says of what day it is, and
    which heading is its own."""
    if _has_date(out):
        return False
    linked = len(doc.tree.css(_LINKED_HEADINGS))
    if not _has_visible_title(out):
        return linked >= _FRONT_HEADINGS
    content = out.content.value or ""
    is_of_headings = linked >= _LISTING_HEADINGS and len(content) < 60 * linked
    return is_of_headings and not _long_paragraphs(content)
