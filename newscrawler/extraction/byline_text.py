"""Who wrote it as a line of the text says: "By ...", a date and a name, a signature, the
source behind it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from newscrawler.extraction import agreement, authors, dates, lexicon, page_metadata, regions
from newscrawler.extraction.blocks import Block, block_list
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import foreign
from newscrawler.extraction.text import SIGNED_ROLE
from newscrawler.extraction.vietnamese import is_vietnamese

FOREIGN = lexicon.Pattern(r"<class.byline>|(?<!<class.post>-)footer")
_BYLINE_START = lexicon.Pattern(
    r"^\W{0,3}(?:(?:<byline.start>)(?:\s*:\s*|\s+)|(?:<byline.start_before_colon>)\s*[:：]\s*"
    r"|(?:<byline.start_before_space>)\s+)(?=[^\W\d_])"
    r"|^\W{0,3}[가-힣]{2,4}\s?(?:<role.behind_korean>)(?=$|[\s=(·])"
)
# A label in an element of its own; the name follows in the next one.
_LABEL = lexicon.Pattern(r"^\W{0,3}(?:<byline.label_alone>)\s*+(?::\s*+)?$")
EAST = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{2,8}$")
OWN = lexicon.Pattern(
    r"(?<!<class.author_of_another>-)(?:<class.byline_own>)(?!-?(?:<class.author_told_of>))"
    r"(?!.{0,300}(?:<class.byline_of_another>))"
)
FOREIGN_TAGS = ("footer", "aside", "nav", "figure", "figcaption", "blockquote")
# A date and the name behind it in one line; elements set apart by style alone leave
# nothing between them.
_DATED = lexicon.Pattern(
    r"^(?:[^\W\d_]{2,10}(?:"
    r" [^\W\d_]{2,6})?,\s*)?(?:\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}/\d{1,2}/\d{4})[\s,|–-]*"
    r"(?:\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?(?: Uhr| ?\(?(?:GMT|UTC) ?[+-]\d{1,2}\)?|"
    r" (?-i:[A-Z]{1,3}T)\b)?[\s,|–-]*)?"
    r"(?:(?:<byline.behind_date>)\s+)?(?P<name>[^\W\d_][^\d|]{4,60})$"
)
# The other way round a day in words: "Tuesday 15 October 2019 by Jane Doe".
_DAY_BY = lexicon.Pattern(
    r"^(?P<day>(?:(?:<date.stated>)\s+)?(?:(?:<date.on>)\s+)?"
    r"(?:[^\W\d_]{3,12}\.?,?\s+){0,2}\d[^\n|;]{6,40}?)[\s,–-]+(?:<byline.by>)\s+"
    r"(?P<name>(?-i:[^\W\d_a-z])[^\d|:;!?]{4,50}?)\.?$"
)
# An account or a given name, in a line that has a date as well.
_USER = lexicon.Pattern(
    r"(?:^|[\s|])(?:<byline.account_by>|(?:<byline.account_before_colon>)\s*:)\s+"
    r"([^\W\d_][\w.-]{1,20})"
    r"(?=\s*(?:$|[|—–@]|- |(?:<byline.account_before>) (?:\w{3,10},?\.? )?\d|in rubrik\b))"
)
# Where a blog is often called as its owner is.
_BLOGS = re.compile(
    r"\.(?:wordpress\.com|blogspot\.\w|tumblr\.com|substack\.com|over-blog\.com|typepad\.com"
    r"|livejournal\.com)"
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
_SOURCE = lexicon.Pattern(
    r"^\W{0,3}(?:<source.line_bare>|(?:<source.line>)\s*[:：])\s*"
    r"(?P<name>[^\W\d_][^:：?!]{1,58}?)[\s.)\]*]*$"
)
_IN_BRACKETS = re.compile(r"^\(([^()]{2,30})\)[.\s]*$")
# "(By Jane Doe)" behind the last word of a text, and what some agencies put behind that.
SIGNED = lexicon.Pattern(r"\((?:<byline.signed>)\s+([^()]{4,100})\)[\W_]*\w{0,8}\W*$", flags=0)
_SIGNED_CHARS = 160
_NO_SOURCE = lexicon.Pattern(r"<source.nobody>")
_SOURCE_BLOCKS = 3
# Paragraphs that may stand above a date with the writer's name.
_LEADS = 3


def note(doc: Document, text: str) -> None:
    """For extraction.credits: what stands where authors stand, whether it names people or not."""
    if 2 <= len(text) <= 80:
        page_metadata.of(doc).bylines.append(text)


def find(doc: Document, context: PageContext, sites: list[str]) -> Iterator[Named]:
    """A short block or line that begins with "By", "Von", "Tác giả:" ..., or the name that
    closes an article.

    Notes the source that a line behind the text names (:attr:`PageMetadata.source`) where it
    finds no such line.
    """
    scan = _Scan(doc, context, sites)
    for order, block in enumerate(block_list(doc)):
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
        self.since = 9  # blocks since the last running text, lists of links apart
        self.vietnamese = False  # whether that is Vietnamese
        self.closing_holder: int | None = None  # the element that holds the closing line
        self.source_holder: int | None = None  # the one that holds the line of the source

    def read(self, block: Block) -> list[str]:
        """The names of a byline; [] where the block is none."""
        length = len(block.text)
        if self.label and length <= 80 and not self._foreign(block):
            if names := self._full_names(block.text):
                return names
        self.label = length <= 20 and bool(_LABEL.match(block.text))
        if length <= 200:
            if names := self._lines(block):
                return names
            self._end(block)
        if length > 120 and (signed := SIGNED.search(block.text[-_SIGNED_CHARS:])):
            if not self._foreign(block):
                return self._full_names(signed[1])
        self._go_on(block)
        return []

    def _go_on(self, block: Block) -> None:
        """Notes whether the text goes on behind what seemed to close it."""
        length = len(block.text)
        is_sentence = length > 60 and block.text[-1] in _FULL_STOP and not block.link_chars
        if not (length > 120 or is_sentence):
            self.since += block.link_chars < 0.5 * length
            return
        is_same_part = length > 200 or block.holder == self.closing_holder
        if block.node.tag == "p" and is_same_part:
            self.closing = None  # what seemed to close it was a sub-heading
        self.since, self.ran, self.vietnamese = 0, self.ran + 1, is_vietnamese(block.text)
        if self.source_holder == block.holder:
            page_metadata.of(self.doc).source = None  # of a picture or a part

    def _lines(self, block: Block) -> list[str]:
        for line in block.text.split("\n"):
            # Behind the text a date and two words are a teaser's: its day and its rubric.
            dated_name = dated(line) if self.ran <= _LEADS else None
            user = account(line)
            begun = dated_name is not None or begins(line)
            if dated_name is None and user is None and not (begun and len(line) <= 140):
                continue
            if self._foreign(block):
                break
            said = dated_name["name"] if dated_name else line
            if begun and (names := self._names(said)):
                return names
            if user and self.user is None:
                self.user = self._user(user) or None
            if begun and len(line) <= 60:
                note(self.doc, said)
        return []

    def _names(self, text: str) -> list[str]:
        return [name for name in self._clean(text) if not name.islower() and _is_full(name)]

    def _user(self, account: str) -> list[str]:
        sites = [] if _BLOGS.search(self.doc.url) else self.sites
        return agreement.clean(self.doc, self.context, [account], sites, nicknames=True)

    def _end(self, block: Block) -> None:
        """A signature or a source behind the text."""
        if self.since < 3 and self._may_sign(block):
            names = self._clean(block.text)
            whole = bool(names) and all(2 <= len(n.split()) <= 5 for n in names)
            if whole and not self._foreign(block):
                self.closing, self.closing_holder = names, block.holder
        if self.since <= _SOURCE_BLOCKS and len(block.text) <= 80:
            named = _source_of(block, self.sites)
            if named and not self._foreign(block):
                page_metadata.of(self.doc).source, self.source_holder = named, block.holder

    def _may_sign(self, block: Block) -> bool:
        return _closes(block) or (self.vietnamese and _is_bare_name(block))

    def _clean(self, text: str) -> list[str]:
        return agreement.clean(self.doc, self.context, [text], self.sites)

    def _full_names(self, text: str) -> list[str]:
        return [name for name in self._clean(text) if len(name.split()) > 1]

    def _foreign(self, block: Block) -> bool:
        return foreign(block.node, FOREIGN, self.parts, FOREIGN_TAGS, OWN)


def _is_full(name: str) -> bool:
    """A given name and a surname, or a name in a script that sets no space between them."""
    return len(name.split()) > 1 or EAST.match(name) is not None


def dated(line: str) -> re.Match[str] | None:
    """A date and a name behind it, or "by" and a name."""
    return _DATED.match(line) or _day_by(line)


def account(line: str) -> str | None:
    """The name of an account in a line with a day."""
    if len(line) >= 200 or not _HAS_DAY.search(line):
        return None
    found = _USER.search(line)
    return found[1] if found else None


def _day_by(line: str) -> re.Match[str] | None:
    """A day and nothing else before "by" and a name."""
    if len(line) > _DAY_BY_CHARS:
        return None
    match = _DAY_BY.match(line)
    if match is None or len(match["day"].split()) > _DAY_WORDS:
        return None
    return match if dates.parse(match["day"], _ANY_DAY) else None


def is_label(text: str) -> bool:
    """A label in an element of its own: the name follows in the next one."""
    return _LABEL.match(text) is not None


def begins(line: str) -> bool:
    """Whether a line starts with a word that bylines start with."""
    return bool(_BYLINE_START.match(line) or authors.VIET_LABEL.match(line))


def _source_of(block: Block, sites: list[str]) -> str | None:
    """What a line names as the source of the text: "Theo TTXVN", "Quelle: kathpress", "Our
    Paper / Their Paper"."""
    stated = _SOURCE.match(block.text)
    if stated is not None:
        name = stated["name"]
        # "Theo đó, ..." and "Theo Bộ Y tế, ..." begin sentences.
        is_name = name[0].isupper() or ":" in block.text[:12]
        is_short = len(name.split()) <= 7 and "," not in name
        return name if is_name and is_short and not _NO_SOURCE.match(name) else None
    agency = _IN_BRACKETS.match(block.text)
    if agency and any(map(authors.is_agency, re.split(r"[/,\s]+", agency[1]))):
        return agency[1]
    ours, slash, theirs = block.text.partition(" / ")
    if slash and 3 <= len(theirs) <= 40 and authors.key(ours) in map(authors.key, sites):
        return theirs
    return None


def _closes(block: Block) -> bool:
    """Set like a signature: bold, italic or to the right, not a heading."""
    text = block.text
    if block.tag.startswith("h") or len(text) > 80 or text[-1] in ".?!:" or ": " in text:
        return False
    least = 0.8 * len(text)
    if block.bold_chars >= least or _is_set_right(block):
        return True
    italic = (node.text(deep=True).strip() for node in block.node.css("em,i")[:2])
    return any(len(piece) >= least for piece in italic)


def _is_set_right(block: Block) -> bool:
    """By the style or class of the block's element or the one above, or named after authors."""
    nodes = (node for node in (block.node, block.node.parent) if node is not None)
    attributes = (node.attributes for node in nodes)
    style = " ".join((a.get("style") or "") + (a.get("class") or "") for a in attributes)
    return "author" in style or _LAST_LINE.search(style) is not None


def _is_bare_name(block: Block) -> bool:
    """Nothing but capitalised words, no link, no list: how Vietnamese papers sign whatever the
    element is called.

    Sub-headings and labels there have a capital in the first word alone; names of places have not.
    """
    if block.tag == "li" or block.tag.startswith("h") or block.link_chars or len(block.text) > 80:
        return False
    names = SIGNED_ROLE.sub("", block.text.partition("/")[0])
    words = [
        word
        for word in re.split(r"[\s,&–-]+", names)
        if word and word not in lexicon.words("name.and")
    ]
    return 2 <= len(words) <= 10 and all(word.isalpha() and word[0].isupper() for word in words)
