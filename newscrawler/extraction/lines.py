"""Who wrote it as a line of the text says: "By ...", a date and a name, a signature, the source behind it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from newscrawler.extraction import authors, dates, regions, witnesses
from newscrawler.extraction.blocks import Block, walk
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import foreign
from newscrawler.extraction.text import SIGNED_ROLE
from newscrawler.extraction.vietnamese import is_vietnamese

FOREIGN = re.compile(
    r"comment|kommentar|related|recommend|sidebar|(?<!post-)(?<!entry-)(?<!article-)(?<!story-)footer|widget"
    r"|latest|popular|teaser|most-?read|trending|disqus|reply|quote|zitat|about-?author|author-?bio|bio-?box"
    r"|caption|licen[cs]e|photo-?credit|image-?credit|newsletter|subscribe|login|menu|nav\b|breadcrumb|share|social|carousel"
    r"|slider|binh-?luan|lien-?quan|tin-khac|cung-chuyen-muc",
    re.I,
)
_BYLINE_START = re.compile(
    r"^\W{0,3}(?:(?:(?:written|posted|reported|reporting|words|story|text|report|analysis|interview|review|photos? and text"
    r"|text and photos?)\s+by|(?:gespeichert|blog ?beitrag|beitrag|text|texte|bericht|kommentar|interview"
    r"|text und fotos?)\s+von|by|von|par|por|door|av|af|oleh"
    r"|verfasst von|geschrieben von|ein (?:beitrag|artikel|gastbeitrag|interview|kommentar) von"
    r"|autorin\s?/\s?autor|autor\s?/\s?autorin)(?:\s*:\s*|\s+)"
    r"|(?:autor(?:in|en|a|:in)?|author|auteure?|autore|tác giả|bài và ảnh|bài|text|texte|interview|автор|penulis)\s*:\s*"
    r"|(?:责任编辑|责编|编辑|作者|记者|記者|著者|文|كتبت?|بقلم|تحرير|लेखक|מאת|نویسنده|به قلم|خبرنگار|yazan|haber|muhabir"
    r"|รายงานโดย|โดย|автори?|текст)\s*[:：]\s*|(?:โดย|بقلم|מאת)\s+)(?=[^\W\d_])"
    r"|^\W{0,3}[가-힣]{2,4}\s?(?:선임기자|기자|특파원)(?=$|[\s=(·])",
    re.I,
)
# A label in an element of its own; the name follows in the next one.
_LABEL = re.compile(
    r"^\W{0,3}(?:autor(?:in|en|:in|\*in|in\s?/\s?autor)?|author|(?:written |posted )?by|von|text|verfasser(?:in)?|tác giả|auteur|par|autore"
    r"|写真・文|文|作者|记者)\s*:?\s*$",
    re.I,
)
EAST = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{2,8}$")
OWN = re.compile(
    r"(?<!comment-)(?<!related-)(?<!license-)(?<!photo-)(?<!image-)(?:author|byline|autor)(?!-?(?:bio|box|about|info|desc))(?!.*(?:comment|related|sidebar"
    r"|widget))",
    re.I,
)
FOREIGN_TAGS = ("footer", "aside", "nav", "figure", "figcaption", "blockquote")
# A date and the name behind it in one line; elements set apart by style alone leave nothing between them.
_DATED = re.compile(
    r"^(?:[^\W\d_]{2,10}(?: [^\W\d_]{2,6})?,\s*)?(?:\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}/\d{1,2}/\d{4})[\s,|–-]*"
    r"(?:\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?(?: Uhr| ?\(?(?:GMT|UTC) ?[+-]\d{1,2}\)?| (?-i:[A-Z]{1,3}T)\b)?[\s,|–-]*)?"
    r"(?:(?:von|bởi|by)\s+)?"
    r"(?P<name>[^\W\d_][^\d|]{4,60})$",
    re.I,
)
# The other way round a day in words: "Tuesday 15 October 2019 by Jane Doe".
_DAY_BY = re.compile(
    r"^(?P<day>(?:(?:posted|published|written|erstellt|veröffentlicht|publié|publicado)\s+)?(?:(?:on|am|le|el)\s+)?"
    r"(?:[^\W\d_]{3,12}\.?,?\s+){0,2}\d[^\n|;]{6,40}?)[\s,–-]+(?:by|von|par|por|door|av|af)\s+"
    r"(?P<name>(?-i:[^\W\d_a-z])[^\d|:;!?]{4,50}?)\.?$",
    re.I,
)
# An account or a given name, in a line that has a date as well.
_USER = re.compile(
    r"(?:^|[\s|])(?:by|von|par|(?:autor(?:in)?|author|verfasst von|erstellt von|posted by)\s*:)\s+([^\W\d_][\w.-]{1,20})"
    r"(?=\s*(?:$|[|—–@]|- |(?:on|am|um|under|at) (?:\w{3,10},?\.? )?\d|in rubrik\b))",
    re.I,
)
# Where a blog is often called as its owner is.
_BLOGS = re.compile(
    r"\.(?:wordpress\.com|blogspot\.\w|tumblr\.com|substack\.com|over-blog\.com|typepad\.com|livejournal\.com)"
)
_HAS_DAY = re.compile(r"\b(?:19|20)\d\d\b")
_LAST_LINE = re.compile(r"text-align:\s*right|text-right|align-?right", re.I)

Named = tuple[list[str], str, float]  # names, origin, trust
_DAY_BY_CHARS, _DAY_WORDS = 110, 8
_ANY_DAY = dates.Rules()
# Blocks of a page that are read for a byline; a long menu alone may have 500.
_MAX_BLOCKS = 1500
_FULL_STOP = '.!?…”"»'
# "Theo X" and its like behind a text; so many blocks behind it at most.
_SOURCE = re.compile(
    r"^\W{0,3}(?:theo|nguồn(?: tin)?\s*:|quelle\s*:|source\s*:|fuente\s*:|fonte\s*:|via\s*:|bron\s*:|źródło\s*:|источник\s*:|出典\s*[:：]|来源\s*[:：])"
    r"\s*(?P<name>[^\W\d_][^:：?!]{1,58}?)[\s.)\]*]*$",
    re.I,
)
_IN_BRACKETS = re.compile(r"^\(([^()]{2,30})\)[.\s]*$")
# "(By Jane Doe)" behind the last word of a text, and what some agencies put behind that.
_SIGNED = re.compile(r"\((?:By|Reporting by|Von|Par)\s+([^()]{4,100})\)[\W_]*\w{0,8}\W*$")
_SIGNED_CHARS = 160
_NO_SOURCE = re.compile(r"(?:internet|tổng hợp|sưu tầm|getty|shutterstock|eigene|privat|dõi\b)", re.I)
_SOURCE_BLOCKS = 3
# Paragraphs that may stand above a date with the writer's name.
_LEADS = 3


def note(doc: Document, text: str) -> None:
    """For extraction.credits: what stands where authors stand, whether it names people or not."""
    if 2 <= len(text) <= 80:
        witnesses.of(doc).bylines.append(text)


def find(doc: Document, context: PageContext, sites: list[str]) -> Iterator[Named]:
    """A short block or line that begins with "By", "Von", "Tác giả:" ..., or the name that closes an article.

    Notes the source that a line behind the text names (:attr:`Witnesses.source`) where it finds no such line.
    """
    body = doc.tree.body
    if body is None:
        return
    scan = _Scan(doc, context, sites)
    for order, block in enumerate(walk(body)):
        if order > _MAX_BLOCKS:
            break
        if names := scan.read(block):
            yield names, "byline:text", 0.7
            return
    if scan.closing:
        yield scan.closing, "byline:end", 0.66
    elif scan.user:
        yield scan.user, "byline:text", 0.7


class _Scan:
    """What was read of a page, block by block."""

    def __init__(self, doc: Document, context: PageContext, sites: list[str]) -> None:
        self.doc, self.context, self.sites = doc, context, sites
        self.parts = regions.of(doc)
        self.closing: list[str] | None = None
        self.user: list[str] | None = None  # an account's name: the text may name its writer better
        self.label = False  # the block before was a label: "Author:"
        self.ran = 0  # running texts read
        self.since, self.vietnamese = 9, False  # blocks since the last, lists of links apart; if it is Vietnamese
        self.closing_holder: int | None = None  # the element that holds the closing line
        self.source_holder: int | None = None  # the one that holds the line of the source

    def read(self, block: Block) -> list[str]:
        """The names of a byline; [] where the block is none."""
        length = len(block.text)
        if self.label and length <= 80 and not self._foreign(block):
            if names := [n for n in self._clean(block.text) if len(n.split()) > 1]:
                return names
        self.label = length <= 20 and bool(_LABEL.match(block.text))
        if length <= 200 and (names := self._lines(block)):
            return names
        if length <= 200:
            self._end(block)
        if length > 120 and (signed := _SIGNED.search(block.text[-_SIGNED_CHARS:])) and not self._foreign(block):
            return [n for n in self._clean(signed[1]) if len(n.split()) > 1]
        runs = length > 120 or (length > 60 and block.text[-1] in _FULL_STOP and not block.link_chars)
        if self.closing and runs and block.node.tag == "p" and (length > 200 or block.holder == self.closing_holder):
            self.closing = None  # the text goes on: it was a sub-heading
        if runs:
            self.since, self.ran, self.vietnamese = 0, self.ran + 1, is_vietnamese(block.text)
            if self.source_holder == block.holder:
                witnesses.of(self.doc).source = None  # of a picture or a part: the text goes on
        elif block.link_chars < 0.5 * length:
            self.since += 1
        return []

    def _lines(self, block: Block) -> list[str]:
        for line in block.text.split("\n"):
            # Behind the text a date and two words are a teaser's: its day and its rubric.
            dated = _DATED.match(line) or _day_by(line) if self.ran <= _LEADS else None
            account = _USER.search(line) if len(line) < 200 and _HAS_DAY.search(line) else None
            if not (dated or account or (len(line) <= 140 and _begins(line))):
                continue
            if self._foreign(block):
                break
            begins = dated or _begins(line)
            names = self._clean(dated["name"] if dated else line) if begins else []
            names = [n for n in names if (len(n.split()) > 1 or EAST.match(n)) and not n.islower()]
            if not names and self.user is None and account is not None:
                own = [] if _BLOGS.search(self.doc.url) else self.sites
                self.user = authors.clean([account[1]], self.context.site_name, own, nicknames=True) or None
            if names:
                return names
            if begins and len(line) <= 60:
                note(self.doc, dated["name"] if dated else line)
        return []

    def _end(self, block: Block) -> None:
        """A signature or a source behind the text."""
        if self.since < 3 and (_closes(block) or (self.vietnamese and _is_bare_name(block))):
            names = self._clean(block.text)
            whole = bool(names) and all(2 <= len(n.split()) <= 5 for n in names)
            if whole and not self._foreign(block):
                self.closing, self.closing_holder = names, block.holder
        if self.since <= _SOURCE_BLOCKS and len(block.text) <= 80:
            named = _source_of(block, self.sites)
            if named and not self._foreign(block):
                witnesses.of(self.doc).source, self.source_holder = named, block.holder

    def _clean(self, text: str) -> list[str]:
        return authors.clean([text], self.context.site_name, self.sites)

    def _foreign(self, block: Block) -> bool:
        return foreign(block.node, FOREIGN, self.parts, FOREIGN_TAGS, OWN)


def _day_by(line: str) -> re.Match[str] | None:
    """A day and nothing else before "by" and a name."""
    match = _DAY_BY.match(line) if len(line) <= _DAY_BY_CHARS else None
    return match if match and len(match["day"].split()) <= _DAY_WORDS and dates.parse(match["day"], _ANY_DAY) else None


def _begins(line: str) -> bool:
    return bool(_BYLINE_START.match(line) or authors.VIET_LABEL.match(line))


def _source_of(block: Block, sites: list[str]) -> str | None:
    """What a line names as the source of the text: "Theo TTXVN", "Quelle: kathpress", "Our Paper / Their Paper"."""
    stated = _SOURCE.match(block.text)
    if stated is not None:
        name = stated["name"]
        # "Theo đó, ..." and "Theo Bộ Y tế, ..." begin sentences.
        is_name = name[0].isupper() or ":" in block.text[:12]
        return name if is_name and "," not in name and len(name.split()) <= 7 and not _NO_SOURCE.match(name) else None
    agency = _IN_BRACKETS.match(block.text)
    if agency and any(authors.is_agency(part) for part in re.split(r"[/,\s]+", agency[1])):
        return agency[1]
    ours, slash, theirs = block.text.partition(" / ")
    if slash and 3 <= len(theirs) <= 40 and authors.key(ours) in {authors.key(s) for s in sites}:
        return theirs
    return None


def _closes(block: Block) -> bool:
    """Set like a signature: bold, italic or to the right, not a heading."""
    if block.tag.startswith("h") or len(block.text) > 80 or block.text[-1] in ".?!:" or ": " in block.text:
        return False
    style = " ".join(
        (n.attributes.get("style") or "") + (n.attributes.get("class") or "")
        for n in (block.node, block.node.parent)
        if n is not None
    )
    if block.bold_chars >= 0.8 * len(block.text) or _LAST_LINE.search(style) or "author" in style:
        return True
    return any(len(e.text(deep=True).strip()) >= 0.8 * len(block.text) for e in block.node.css("em,i")[:2])


def _is_bare_name(block: Block) -> bool:
    """Nothing but capitalised words, no link, no list: how Vietnamese papers sign whatever the element is called.

    Sub-headings and labels there have a capital in the first word alone; names of places have not.
    """
    if block.tag == "li" or block.tag.startswith("h") or block.link_chars or len(block.text) > 80:
        return False
    names = SIGNED_ROLE.sub("", block.text.partition("/")[0])
    words = [word for word in re.split(r"[\s,&–-]+", names) if word and word != "và"]
    return 2 <= len(words) <= 10 and all(word.isalpha() and word[0].isupper() for word in words)
