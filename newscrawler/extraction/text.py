"""Cleaning of running text: what stands in an article's root and is not the article. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from newscrawler.extraction import lexicon, vietnamese
from newscrawler.extraction.blocks import Block
from newscrawler.extraction.vietnamese import without_paper_name

#: Shorter than this is no article text (a caption, a notice).
MIN_CONTENT_CHARS = 40
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff\ufffc]")
# Those and all space but " " and line ends, in one class: one look at a text instead of two.
_UNTIDY = re.compile(
    "[\t\r\x0b\x0c\x1c-\x1f\x85\xa0\u00ad\u1680\u2000-\u200b\u200e\u200f\u2028\u2029\u202f\u205f"
    "\u2060\u3000\ufeff\ufffc]"
)
_KEY = re.compile(r"[^\W_]+")

# A line of its own that leads away from the article, in any place.
_AWAY = lexicon.Pattern(
    r"^\W{0,4}(?:<away.read_also>|>>|→|►|▶|»(?!.*«)|<away.line>|(?:<away.whole_line>)\s*(?:[:：(]|$)"
    r"|(?:<away.tags>)\s*(?::|\n)|\d{1,2}:\d{2} min\b|(?:<away.keywords>)\s*(?::|$)"
    r"|(?:<away.before_colon>)\s*:"
    r"|(?:<away.follow_us>)\b.{0,60}\b(?:<away.follow_on>) (?:<away.follow>)"
    r"|(?:<wall.this_article>).{0,8}(?:<wall.members>)|(?:<wall.rest>)\s?\d+(?:<wall.characters>))"
)
# Sentences of an article begin with some of those words as well.
_SENTENCE_SO = lexicon.Pattern(r"^(?:<away.begins_sentence>)(?: [\w„“”\"'’(),%-]+){4,}[.!?]$")
# Notices at the end: everything from here on is not the article.
_END = lexicon.Pattern(
    r"^\W{0,3}(?:(?:\d+ )?(?:<end.whole_line>)\W*$|<end.line>|©|\(c\)\s+\d{4}"
    r"|(?:<wall.this_article>).{0,8}(?:<wall.members>)(?:<wall.only>)"
    r"|(?:<away.keywords>)\s*(?::|$))"
)
# Titles of boxes: at the end they end the article, in the middle they are one line of boilerplate.
_BOX = lexicon.Pattern(
    r"^\W{0,3}(?:(?:<away.read_also>|<box.whole_line>)\W*$|<box.line>|(?:<box.more>).{0,30}$)"
)
# Asks the reader for something and links to it.
_APPEAL = lexicon.Pattern(
    r"(?=.{0,300}\b(?:<appeal.newsletter>)\b).{0,300}\b(?:<appeal.subscribe>)\b"
    r"|.{0,160}\b(?:<appeal.find>)\s(?:<appeal.here>)\b|.{0,160}\b(?:<appeal.click>)\b"
    r"|(?:<appeal.begins>)\b.{0,120}\b(?:<appeal.at_here>)\b",
    re.I | re.S,
)
# What the text is filed under, the rest of the line a link.
_FILED = lexicon.Pattern(r"^\W{0,3}(?:<filed.label>)\s*:")
# The firm that has sent a press release, described by itself behind it.
_ABOUT = lexicon.Pattern(r"^\W{0,3}(?:<about.firm>)\s+(?P<name>\S.{1,50}?)\W*$")
_CREDIT = lexicon.Pattern(
    r"^\W{0,3}(?:<credit.picture>|(?:©|<credit.copyright>)\s*(?:<credit.agency_behind_copyright>))"
    r"(?:\s*[:：©/]|\s+(?:<credit.behind>)\b).{0,140}$|^\W*(?:<credit.whole_line>).{0,60}$"
    r"|.{0,100}/\s?(?:<credit.behind_slash>)\W*$"
)
# "... this afternoon. Photo: Jane Doe", "... (Ảnh: TTXVN)": the words of a picture. Longer
# ones are paragraphs.
_CAPTION_CHARS = 300
_ENDS_WITH_CREDIT = lexicon.Pattern(
    r"(?:[.!?…”\"')]\s*|\s[-–|]\s*|\s?[(\[]\s*)(?:<credit.caption_end>)"
    r"\s*:\s*(?:[^.:!?]|\.(?=\S)|(?<=\s[^\W\d_])\.){2,50}[.)\]\s]*$"
)
_BYLINE = lexicon.Pattern(
    r"^\W{0,3}(?:(?:<byline.line>)(?:\s*+:)?\s++[^\W\d_][^.!?]{2,70}"
    r"|(?:<byline.line_of_date>)\b[^.!?]{0,60}\d.{0,40}"
    r"|(?:<byline.line_before_colon>)\s*[:：].{2,40}|(?:<byline.line_before_space>)\s.{2,40}"
    r"|\d+\s*(?:<reading.minutes>)\s*(?:<reading.read>)?\W*)$"
)
_DATE_LINE = lexicon.Pattern(
    r"^\W*(?:(?:(?:<date.line_first>)\s+)?(?:<date.line_stated>)(?:\s+(?:<date.line_on>))?[\s:]+)?"
    r"(?:(?:(?:<date.line_weekday_start>)\w{0,20}\s{0,5}\w{0,20}"
    r"|(?:<date.line_weekday>)(?:<date.line_weekday_end>)?)[,.]?\s*)?"
    r"(?:\d{1,2}:\d{2}(?:[,\s|-]++|\s*+\w{1,4}[,\s|-]++))?(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"
    r"|\d{1,2}\.?\s+(?:(?:<date.line_of>)\s+)?\w{3,10}\.?,?\s+(?:(?:<date.line_of>)\s+)?\d{4}"
    r"|\w{3,10}\.?\s+\d{1,2},?\s+\d{4}"
    r"|\d{4}-\d\d-\d\d)"
    r"(?:[\s,|@–-]*+(?:(?:<date.line_at>)\s*+)?\d{1,2}[:.h]\d{2}.{0,20})?\W*$"
)
# "Acme is a leading provider of ...", behind the news of a press release.
_FIRM = lexicon.Pattern(
    r"(?P<name>[A-ZÄÖÜ][\w&.+-]{2,20}(?: [A-ZÄÖÜ][\w&.+-]{1,20}){0,3})(?: \([^()]{2,30}\))?,?"
    r" (?:<firm.is>) (?:<firm.a>)\b"
    r"(?=.{0,120}\b(?:<firm.kind>)\b)",
    flags=0,
)
# Wire services' and desks' notes under a story.
_DESK = lexicon.Pattern(
    r"^\W{0,3}(?:<note.line>|(?:<note.this_text>) .{0,30}(?:<note.shown_before>)"
    r"|(?:<note.contact>) .{0,40}(?:@|\b(?:<note.on_network>)\b|\b(?:<note.at>)\b .{2,40}@)"
    r"|(?:<note.if_you>) .{0,30}(?:<note.write>))"
)
_SOURCE_LINE = lexicon.Pattern(
    r"^\W*(?:\(?(?:<source.according_to>)\b.{2,60}\)?|(?:<source.word>)\s*:.{2,60}"
    r"|\((?:<source.agency_in_brackets>|[a-z]{2,4}/[a-z]{2,6})\))\W*$"
)
# "Jane Doe is a staff writer at ..." under the text.
_BIO = lexicon.Pattern(
    r"(?:[A-ZÄÖÜÀ-Ý][\w.'’-]+ ){2,4}(?:<bio.does>)\b(?=.{0,200}\b(?i:<bio.post>)\b)", re.S
)
#: What may stand beside the name in a Vietnamese signature.
SIGNED_ROLE = lexicon.Pattern(
    r"^\W*(?:<signed.label>)\s*:\s*|(?:(?<!\s)\s++)?\([^()]{2,40}\)\s*+$"
    r"|(?<!\s)\s++(?:<signed.done>)\s*+$"
)
# Between the names of a signature, beside words.
_BETWEEN_NAMES = ("-", "/", "&")
_SENTENCE_END = re.compile(r"[.!?…。！？:;»”\"'’)]$")


def clean_line(line: str) -> str:
    """NFC, invisible characters out, runs of space to one; line breaks stay."""
    if not line.isascii():
        if _INVISIBLE.search(line):
            line = _INVISIBLE.sub("", line)
        line = unicodedata.normalize("NFC", line)
    if "\n" not in line:
        return " ".join(line.split())
    return "\n".join([" ".join(part.split()) for part in line.split("\n")]).strip()


def _visible(line: str) -> str:
    """``clean_line`` of what ``blocks.walk`` gave, whose white space is collapsed already."""
    if line.isascii():
        return line
    return clean_line(line) if _INVISIBLE.search(line) else unicodedata.normalize("NFC", line)


def key(text: str) -> str:
    """What two equal texts share whatever their spacing, case and signs."""
    return "".join(_KEY.findall(text.casefold()))


def content_of(
    blocks: Iterable[Block], headline: str | None = None, site_name: str | None = None
) -> str | None:
    """Paragraphs joined by a blank line, without what is not article text; None
    when nothing is left."""
    kept = tidy(blocks, headline)
    if not kept:
        return None
    lines = [_visible(b.text) for b in kept]
    lines[0] = without_paper_name(lines[0])
    lines[-1] = re.sub(r"(?:(?<!\s)\s++)?\./\.\s*+$", ".", lines[-1])
    text = "\n\n".join(line for line in lines if line)
    return text if len(text) >= MIN_CONTENT_CHARS else None


def tidy(blocks: Iterable[Block], headline: str | None = None) -> list[Block]:
    """The blocks that are article text, in order."""
    kept = _Tidying(list(blocks), key(headline or "")).kept()
    kept = _without_front(_without_captions(_without_repeated_links(kept)))
    return _without_repeated_lead(_without_tail(kept))


class _Tidying:
    """One pass over the blocks of a page: what is kept depends on what was kept before."""

    def __init__(self, blocks: list[Block], head: str) -> None:
        self.blocks = blocks
        self._head = head  # key of the headline
        self._kept: list[Block] = []
        self._written = 0  # characters kept
        self._seen: dict[str, str | set[str]] = {}
        # Set while in a box: the elements beside whose paragraphs it stands.
        self._box: frozenset[int] | None = None

    def kept(self) -> list[Block]:
        for position, block in enumerate(self.blocks):
            if self._is_in_box(block) or self._is_nothing(block):
                continue
            if len(block.text) < 80 and is_box_title(block.text):
                beside = _beside(block, self._kept)
                if self._ahead.goes_on(beside, position):
                    self._box = beside
                    continue
                if self._is_last_box(block, position):
                    break
            if self._is_about_firm(block, position):
                break
            if leads_away(block) or self._is_byline(block) or self._is_said(block):
                continue
            self._kept.append(block)
            self._written += len(block.text)
        return self._kept

    @cached_property
    def _ahead(self) -> _Ahead:
        return _Ahead(self.blocks)

    def _is_in_box(self, block: Block) -> bool:
        if self._box is not None and block.holder in self._box:
            self._box = None
        return self._box is not None

    def _is_nothing(self, block: Block) -> bool:
        """Signs alone, or the headline again."""
        text = block.text
        if not _KEY.search(text) and not clean_line(text).strip("_*-–— „“”»«\"'"):
            return True
        return bool(self._head) and _is_headline(block, self._head, self._written)

    def _is_last_box(self, block: Block, position: int) -> bool:
        """Whether little text follows the title of a box: it ends the article."""
        share = 0.15 if _is_box(block.text) else 0.5
        return self._written > 300 and self._ahead.running[position] < share * self._written

    def _is_about_firm(self, block: Block, position: int) -> bool:
        """Whether a firm begins to describe itself, under a press release."""
        if position + 1 == len(self.blocks):
            return False
        text, following = block.text, self.blocks[position + 1].text[:120]
        if len(text) < 70 and (about := _ABOUT.match(text)):
            is_named = about["name"].casefold() in following.casefold()
            if is_named and 3 * self._ahead.running[position] < self._written:
                return True
        if len(self._kept) > 3 and (firm := _FIRM.match(text)):
            rest = self._ahead.running[position] + len(text)
            return following.startswith(firm["name"]) and 2 * rest < self._written
        return False

    def _is_byline(self, block: Block) -> bool:
        """Who wrote it, above the text."""
        is_short = len(block.text) < 70 and block.tag == "p"
        return is_short and len(self._kept) < 3 and _BYLINE.match(block.text) is not None

    def _is_said(self, block: Block) -> bool:
        """The lead again, a quote shown twice."""
        text = block.text
        if len(text) <= 40:
            return False
        if len(self._kept) < 3:
            text = without_paper_name(text)
        return _is_repeated(text, self._seen)


class _Ahead:
    """What comes behind each block. ``running``: characters of whole sentences
    that are not links."""

    def __init__(self, blocks: list[Block]) -> None:
        self.running = [0] * len(blocks)
        self._last: dict[int, int] = {}  # element -> position of its last running paragraph
        total = 0
        for position in range(len(blocks) - 1, -1, -1):
            self.running[position] = total
            if _is_running(blocks[position]):
                total += len(blocks[position].text)
                self._last.setdefault(blocks[position].holder, position)

    def goes_on(self, parents: frozenset[int], position: int) -> bool:
        """Whether running text follows in one of these elements."""
        return any(self._last.get(parent, -1) > position for parent in parents)


def _is_headline(block: Block, head: str, written: int) -> bool:
    """The title again, above the text or in it. ``head`` is its key; ``written``:
    characters kept before it."""
    text = block.text
    if block.tag == "h1" and written < 400:
        return True
    if not written and len(text) < 250 and " | " in text and key(text).startswith(head):
        return True  # the page's title, site and rubric behind it
    if len(text) > 4 * len(head) + 40:  # too long whatever its signs: keys are dear
        return False
    k = key(text)
    return k == head or (not written and head in k and len(k) < 1.3 * len(head))


def _is_repeated(text: str, seen: dict[str, str | set[str]]) -> bool:
    """Whether a text with the same key was asked for before. ``seen``: begin of the
    key -> the first text that begins so, or the keys of all that do: most begin by
    themselves, and keys are dear."""
    begin = key(text[:48])[:24]
    if len(begin) < 24:
        begin = key(text)[:24]
    same = seen.get(begin)
    if same is None:
        seen[begin] = text
        return False
    if isinstance(same, str):
        same = seen[begin] = {key(same)}
    k = key(text)
    if len(k) > 40 and k in same:
        return True
    same.add(k)
    return False


def _is_running(block: Block) -> bool:
    length = len(block.text)
    return (
        length > 80 and block.link_chars < 0.4 * length and bool(_SENTENCE_END.search(block.text))
    )


def _beside(heading: Block, kept: list[Block]) -> frozenset[int]:
    """The elements that hold the last paragraphs, where the heading of a box stands in
    another one of its own."""
    parents = frozenset(b.holder for b in kept[-5:] if b.tag == "p" and _is_running(b))
    return frozenset() if heading.holder in parents else parents


def is_box_title(line: str) -> bool:
    """Whether a line by itself announces other articles, comments or tags."""
    return (
        _is_box(line) or bool(_END.match(line)) or (not line.isascii() and vietnamese.is_end(line))
    )


def _is_box(line: str) -> bool:
    return bool(_BOX.match(line)) or (not line.isascii() and vietnamese.is_box_title(line))


def leads_away(block: Block) -> bool:
    """A line of links, a share line, a picture credit: not text wherever it stands."""
    text = block.text
    length = len(text)
    if length < 80 and is_box_title(text):
        return True
    is_line = length < 90 or (length < 250 and block.link_chars > 0.3 * length)
    if is_line and _AWAY.match(text):
        return bool(block.link_chars) or not _SENTENCE_SO.match(text)
    return _is_notice(block) or _is_link(block)


def _is_notice(block: Block) -> bool:
    """A picture's credit, an appeal to the reader, a desk's note, what the text is filed under."""
    text = block.text
    length = len(text)
    if length >= 320:
        return False
    return bool(
        (length < 160 and _CREDIT.match(text))
        or (length < 300 and block.link_chars > 0 and _APPEAL.match(text))
        or _DESK.match(text)
        or (length < 200 and vietnamese.leads_away(text))
        or (length < 120 and 2 * block.link_chars > length and _FILED.match(text))
    )


def _is_link(block: Block) -> bool:
    """Nothing but a link, of a list or a line; a linked sentence of the text is none."""
    length = len(block.text)
    if length >= 200 or block.tag in ("h2", "h3", "h4"):
        return False
    linked = block.link_chars / max(1, length)
    if block.tag == "li" and linked > 0.5 and length < 180:
        return True
    if linked <= 0.8:
        return False
    may_be_sentence = block.tag in ("p", "td") and length > 60 and 2 * block.bold_chars < length
    return not (may_be_sentence and _SENTENCE_END.search(block.text))


def _without_repeated_links(blocks: list[Block]) -> list[Block]:
    """Linked lines that begin alike ("READ THIS TOO | ..." three times) are a box,
    whatever its class."""
    starts = Counter(
        " ".join(b.text.split()[:2]) for b in blocks if b.link_chars > 0.4 * len(b.text)
    )
    often = {s for s, n in starts.items() if n > 1}
    if not often:
        return blocks
    return [
        b
        for b in blocks
        if not (b.link_chars > 0.4 * len(b.text) and " ".join(b.text.split()[:2]) in often)
    ]


def _without_captions(blocks: list[Block]) -> list[Block]:
    """Short paragraphs that end with who took the picture are captions, unless they are
    what the page consists of."""
    found = [block for block in blocks if _is_caption(block.text)]
    if not found or 2 * sum(len(b.text) for b in found) > sum(len(b.text) for b in blocks):
        return blocks
    captions = {id(block) for block in found}
    return [block for block in blocks if id(block) not in captions]


def _is_caption(text: str) -> bool:
    end = text[-70:]
    return len(text) < _CAPTION_CHARS and ":" in end and bool(_ENDS_WITH_CREDIT.search(end))


def _without_front(blocks: list[Block]) -> list[Block]:
    """Bylines, dates and rubrics before the first sentence are off."""
    first = 0
    for i, block in enumerate(blocks[:12]):
        text = block.text
        if _BYLINE.match(text) or _DATE_LINE.match(text):
            first = i + 1
        elif len(text) > 90 or (_SENTENCE_END.search(text) and len(text) > 30):
            break
    return blocks[first:]


def _without_tail(blocks: list[Block]) -> list[Block]:
    end = len(blocks)
    while end and _is_tail(blocks[end - 1], end):
        end -= 1
    return blocks[:end]


def _is_tail(block: Block, position: int) -> bool:
    text = block.text
    if block.tag[:1] == "h" and block.tag[1:].isdigit():
        return not text.endswith(".")  # a heading of nothing; a sentence stood over a picture
    if _SOURCE_LINE.match(text) or _DATE_LINE.match(text):
        return True
    if len(text) < 80 and _BYLINE.match(text):
        return True
    return position > 2 and (_announces(text) or vietnamese.is_tail(text) or _is_signature(block))


def _announces(text: str) -> bool:
    """Who the author is; a box that is off."""
    if len(text) < 400 and _BIO.match(text):
        return True
    return len(text) < 200 and text.endswith(":")


def _is_signature(block: Block) -> bool:
    text = block.text
    if len(text) <= 80:
        text = SIGNED_ROLE.sub("", text.strip())
    if block.tag == "li" or not 0 < len(text) <= 50 or text[-1] in '.!?:;”"':
        return False
    names = list(filter(None, (part.strip("()[]-,") for part in text.split())))
    between = {*_BETWEEN_NAMES, *lexicon.words("signed.between")}
    return 1 <= len(names) <= 6 and all(n[0].isupper() or n in between for n in names)


def _without_repeated_lead(blocks: list[Block]) -> list[Block]:
    """A summary that the first paragraph says again is dropped."""
    if len(blocks) > 1:
        first, second = blocks[0].text, blocks[1].text
        if key(first[:40])[:10] == key(second[:40])[:10]:  # few do, and whole keys are dear
            a, b = key(first), key(second)
            if len(a) > 40 and len(b) > len(a) and b.startswith(a[: max(40, int(0.9 * len(a)))]):
                return blocks[1:]
    return blocks


def one_line(text: str) -> str:
    """A title or a name on one line."""
    return " ".join(clean_line(text).split())


def is_clean(text: str) -> bool:
    """Whether :func:`paragraphs` has nothing to do; a look without making a copy."""
    if "  " in text or " \n" in text or "\n " in text or "\n\n\n" in text or _UNTIDY.search(text):
        return False
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        return False
    return text == text.strip()


def paragraphs(text: str) -> str:
    """Paragraphs cleaned line by line, one blank line between; what the store keeps."""
    return "\n\n".join(p for p in (clean_line(part) for part in re.split(r"\n\s*\n", text)) if p)
