"""Whether a page is an article, and else what it is. Pure.

"challenge" (asks for proof of a browser, or for consent first), "missing" (says that it is not there), "no title",
"no content", "video" (a film with a sentence or two), "listing" (a home or section page), "stub" (too little text).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from newscrawler.extraction import witnesses
from newscrawler.extraction.blocks import ends_a_sentence
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document

if TYPE_CHECKING:
    from newscrawler.extraction.extract import Extraction

#: Characters of content below which a page is a stub, and below which a page that says "paid" is one.
STUB_CHARS = 120
PAID_STUB_CHARS = 400
#: Characters of sentences below which a page that is a video by its own words is one and not an article.
VIDEO_CHARS = 350
# A headline says less about a section page: so many linked headings and no sign of one article.
_LISTING_HEADINGS = 12
_LINKED_HEADINGS = "h1 a[href],h2 a[href],h3 a[href],h4 a[href],a[href] h2,a[href] h3"
# So many on a page whose address is an article's: a site sends what it has lost to its front page.
_FRONT_HEADINGS = 20
# Links on the root of a host that make it a home page rather than a page with one text.
_HOME_LINKS = 60
# A page that asks for consent or says that it is missing is not longer.
_WALL_CHARS = 4_000
_MISSING_CHARS = 800
_CONSENT = re.compile(
    r"cookies?\b|consent|einwilligung|datenschutz|privacy|personal data|personenbezogene|données personnelles|datos personales"
    r"|dữ liệu cá nhân|quyền riêng tư|(?:our|and) partners|unsere partner|nos partenaires|nuestros socios|javascript|ad-?blocker",
    re.I,
)
_MISSING = re.compile(
    r"^\W*(?:(?:error|lỗi|fehler|erreur)\W{0,3})?404\b|\b(?:page|article|story|seite|trang|bài viết|página|pagina) (?:is |was |wurde |bạn (?:tìm|yêu cầu) )?"
    r"(?:not found|no longer available|nicht gefunden|không (?:tồn tại|tìm thấy)|no encontrada|non trovata|não encontrada|introuvable)"
    r"|^\W*không tìm thấy (?:trang|bài viết|nội dung|đường dẫn)|^page introuvable",
    re.I,
)
# What protections call the page that they show instead.
_WALL = re.compile(
    r"\W*(?:just a moment|attention required|access denied|are you a robot|checking your browser|pardon our interruption"
    r"|one more step|security check|verif(?:y|ying) (?:you are|that you)|human verification|bot verification|ddos-guard"
    r"|xác minh bạn|đang kiểm tra trình duyệt)",
    re.I,
)
_VIDEO_PATH = re.compile(r"^(?:[a-z0-9-]+\.)*?videos?\.|/(?:videos?|watch|clips?)/", re.I)


def why_not(out: Extraction, doc: Document, context: PageContext) -> str:
    """Why the page is no article; "" when it is one."""
    if _is_challenge(doc):
        return "challenge"
    content = out.content.value
    if not out.title.value:
        called = _called(doc)
        if _MISSING.search(called):
            return "missing"
        if _WALL.match(called):
            return "challenge"
        return "no title" if content or not _is_script_alone(doc) else "challenge"
    seen = witnesses.of(doc)
    if len(content or "") < _MISSING_CHARS and not seen.has_article and _MISSING.search(out.title.value):
        return "missing"
    is_video = _is_video(doc, seen)
    if not content:
        return "video" if is_video else "no content"
    if is_video and _sentences(content) < VIDEO_CHARS:
        return "video"
    if len(content) < _WALL_CHARS and not seen.has_article and _asks_for_consent(content):
        return "challenge"
    if _is_listing(out, doc, context, seen):
        return "listing"
    dense = len(re.findall("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]", content[:1000])) > 100
    factor = 0.4 if dense else 1.0  # a Chinese character says as much as two or three letters
    if len(content) < STUB_CHARS * factor or (seen.is_free is False and len(content) < PAID_STUB_CHARS * factor):
        return "stub"
    return ""


def _is_challenge(doc: Document) -> bool:
    """A small page without a paragraph whose script sets a cookie or moves on (docs/extraction.md)."""
    if len(doc.body) > 4_000 or doc.tree.css_first("p") is not None:
        return False
    return bool(re.search(r"document\.cookie\s*=|location\.(?:reload|href|replace)", doc.text_html))


def _called(doc: Document) -> str:
    """What the page calls itself, where that is no headline."""
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
    return of_consent > 0.6 * len(content) and len(_CONSENT.findall(content)) >= max(2, len(content) // 300)


def _sentences(content: str) -> int:
    """Characters of whole sentences: a film's page has its title, its date and its tags in lines of their own."""
    return sum(len(part) for part in content.split("\n\n") if len(part) > 200 or ends_a_sentence(part))


def _is_video(doc: Document, seen: witnesses.Witnesses) -> bool:
    kind = (doc.meta_first("og:type") or "").lower()
    if kind.startswith("video") or ("videoobject" in seen.types and not seen.has_article):
        return True
    return bool(_VIDEO_PATH.search(doc.url.partition("://")[2]))


def _is_listing(out: Extraction, doc: Document, context: PageContext, seen: witnesses.Witnesses) -> bool:
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
    if is_root or context.url_is_article is False or seen.types & {"collectionpage", "searchresultspage"}:
        return True
    dated = out.published.confidence
    if not out.title.origin.startswith(("generic:", "selector:")):
        return dated < 0.75  # no visible heading is the page's title: a section's name stands in the menu
    # Teasers are many and short; an article has long paragraphs or outweighs its linked headings.
    content = out.content.value or ""
    long_paragraphs = sum(len(p) > 200 for p in content.split("\n\n"))
    return dated < 0.6 and long_paragraphs < 3 and len(content) < 120 * linked


def _is_front(out: Extraction, doc: Document) -> bool:
    """A front or section page at an article's address: nothing on it says of what day it is, and which heading is its own."""
    if out.published.confidence >= 0.6 and out.published.origin != "url":
        return False
    linked = len(doc.tree.css(_LINKED_HEADINGS))
    if not out.title.origin.startswith(("generic:", "selector:")):
        return linked >= _FRONT_HEADINGS
    content = out.content.value or ""
    return (
        linked >= _LISTING_HEADINGS
        and len(content) < 60 * linked
        and not any(len(p) > 200 for p in content.split("\n\n"))
    )
