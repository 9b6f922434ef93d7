"""Cleaning of running text: what stands in an article's root and is not the article. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from newscrawler.extraction import vietnamese
from newscrawler.extraction.blocks import Block
from newscrawler.extraction.vietnamese import strip_sapo_prefix

#: Shorter than this is no article text (a caption, a notice).
MIN_CONTENT_CHARS = 40
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff\ufffc]")
# Those and all space but " " and line ends, in one class: one look at a text instead of two.
_UNTIDY = re.compile(
    "[\t\r\x0b\x0c\x1c-\x1f\x85\xa0\u00ad\u1680\u2000-\u200b\u200e\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\ufffc]"
)
_KEY = re.compile(r"[^\W_]+")

# "Read also" and "related news" beside those of the languages below.
_READ_ALSO = (
    "相关(?:阅读|新闻|报道|文章)|延伸阅读|推荐阅读|相關(?:閱讀|新聞|報導)|延伸閱讀|あわせて読む|こちらも|관련\\s?(?:기사|뉴스)|함께\\s?볼|"
    "اقرأ (?:أيضا|المزيد)|إقرأ أيضا|شاهد أيضا|مواضيع ذات صلة|أخبار ذات صلة|بیشتر بخوانید|مطالب مرتبط|همچنین بخوانید|یہ بھی پڑھیں|"
    "(?:यह|ये) भी पढ़ें|और पढ़ें|संबंधित खबरें|আরও পড়ুন|อ่านเพิ่มเติม|ข่าวที่เกี่ยวข้อง|อ่านข่าว|"
    "[iİ]lgili haber|bunlar da ilginizi|ayrıca oku|קראו גם|קרא עוד|כתבות נוספות|читайте також|дивіться також|по теме\\b|"
    "διαβάστε (?:επίσης|ακόμη|ακόμα)|cite(?:ș|s|ş)te (?:ș|s|ş)i|olvassa el|kapcsolódó|čtěte (?:také|též)|přečtěte si|čítajte aj|"
    "прочетете (?:още|също)|още по темата|pročitajte (?:i|još)|preberite (?:še|tudi)|прочитајте|lexo edhe|lue myös|"
    "läs (?:också|även|mer)|læs (?:også|mere)|les (?:også|mer)|lees (?:ook|meer|verder)|(?:simak|lihat) juga|przeczytaj (?:też|także)"
)
# A line of its own that leads away from the article, in any place.
_AWAY = re.compile(
    rf"^\W{{0,4}}(?:{_READ_ALSO}|"
    r">>|→|►|▶|»(?!.*«)|đọc thêm|xem thêm|đọc tiếp|(?:tin liên quan|tin cùng chuyên mục|bài liên quan|ý kiến của bạn|lưu bài viết|chia sẻ|bình luận)\s*(?:[:：(]|$)"
    r"|mời (?:bạn |quý )?(?:độc giả |đọc giả )?(?:xem|đọc)"
    r"|tags?\s*(?::|\n)|\d{1,2}:\d{2} min\b|video verfügbar|verfügbar bis|từ kh(?:óa|oá)\s*(?::|$)"
    r"|theo dõi\b.{0,60}\btrên (?:google|facebook|fanpage|zalo|youtube|tiktok|kênh|ứng dụng|app|instagram|telegram|mạng xã hội|các nền tảng)"
    r"|read more\b|read also"
    r"|also read|read next|see also|related\s*:|related (?:articles?|stories|posts|news|topics|coverage)"
    r"|more on this"
    r"|more from|click here|sign up|subscribe|follow us|join us on|share this|share on|download (?:the|our) app"
    r"|get the latest|watch:|watch more|listen:|recommended|you may also like|you might also like|don't miss"
    r"|editor'?s? picks?"
    r"|advertisement|advertising|anzeige\b|werbung|sponsored|story continues below|continue reading"
    r"|article continues|scroll (?:down|to)|loading|lesen sie (?:auch|mehr|hier|dazu)|lesen sie:|mehr zum thema"
    r"|mehr dazu|mehr zu|auch interessant"
    r"|das könnte sie|weiterlesen|weitere (?:artikel|informationen|themen|nachrichten|infos)|jetzt (?:abonnieren"
    r"|lesen|anmelden)|newsletter|folgen sie|teilen\b|zum thema\b|zur startseite|zum seitenanfang|zurück zu"
    r"|alle rechte"
    r"|lire aussi|à lire aussi|voir aussi|a lire|leer más|lea también|le puede interesar|te puede interesar"
    r"|ver también|leia (?:também|mais)|veja também|saiba mais|leggi anche|guarda anche|читайте также"
    r"|читать также|lees ook|läs också|læs også|les også|czytaj (?:też|także)|zobacz także|baca juga|関連記事"
    r"|explore further|zum weiterlesen|alle angaben ohne gewähr|vorschau auf den nächsten"
    r"|más sobre\b|más noticias|mais sobre\b|plus d'infos|lust auf mehr|noch mehr|weiterführende (?:informationen|links)"
    r"|あわせて読みたい|この記事は.{0,8}(?:会員|有料)|有料会員(?:に|登録)|残り\s?\d+文字|会員登録|おすすめ情報|関連キーワード)",
    re.I,
)
# Sentences of an article begin with some of those words as well.
_SENTENCE_SO = re.compile(
    r"^(?:zum thema|teilen|werbung|mehr zu|weitere \w+|recommended|loading|sponsored)(?: [\w„“”\"’'(),%-]+){4,}[.!?]$",
    re.I,
)
# Notices at the end: everything from here on is not the article.
_END = re.compile(
    r"^\W{0,3}(?:ý kiến của bạn|comments?\W*$|\d+ comments?\W*$|kommentare?\W*$|leave a (?:reply|comment)"
    r"|schreibe einen kommentar|post a comment|join the conversation|copyright\b|©|\(c\)\s+\d{4}"
    r"|all rights reserved"
    r"|tags\W*$|この記事は.{0,8}(?:会員|有料)限定"
    r"|\(\*\)\s*không sao chép|about the author|über (?:den autor|die autorin)|tags?\s*:|từ kh(?:óa|oá)\s*(?::|$)|schlagwörter"
    r"|stichwörter|filed under|topics\s*:|(?:presse|medien)kontakt\b|(?:press|media) (?:contact|enquiries|inquiries)s?\b|rückfragehinweis"
    r"|(?:for )?(?:more|further) information,? please contact|kontakt für (?:die )?(?:presse|medien|rückfragen)|liên hệ (?:báo chí|truyền thông))",
    re.I,
)
# Titles of boxes: at the end they end the article, in the middle they are one line of clutter.
_BOX = re.compile(
    rf"^\W{{0,3}}(?:{_READ_ALSO})\W*$|"
    r"^\W{0,3}(?:(?:tin liên quan|tin cùng chuyên mục|bài liên quan)\W*$|đọc thêm|xem thêm|related (?:articles?|stories"
    r"|posts|news|topics|content|links|coverage)\W*$|top stories\W*$|mehr zum thema\W*$|das könnte (?:sie|dich)|auch interessant\W*$|you (?:may"
    r"|might) also like"
    r"|more (?:stories|news|articles)\b.{0,30}$|recommended for you|read more on|most (?:read|popular)\W*$"
    r"|meistgelesen|latest news\W*$)",
    re.I,
)
# Asks the reader for something and links to it.
_APPEAL = re.compile(
    r"(?=.{0,300}\b(?:newsletters?|inbox|posteingang|posteingänge|boletín|infolettre|bản tin)\b)"
    r".{0,300}\b(?:sign up|subscribe|register|anmelden|melde dich|melden sie|abonnier\w*|suscr[ií]b\w*|inscr[ií]\w*"
    r"|abonnez|iscriv\w*|assine|đăng ký)\b|.{0,160}\b(?:findest du|finden sie|gibt es|lesen sie|liest du|find (?:it|them)"
    r"|klicken sie|klicke|click|nhấn|bấm)\s(?:hier|here|vào đây|tại đây)\b|.{0,160}\bhier klicken\b"
    r"|(?:quý |mời |các )?(?:bạn đọc |độc giả )?(?:đăng ký|tải|theo dõi|tham gia|đặt mua|mua)\b.{0,120}\b(?:tại|vào|ở) đây\b",
    re.I | re.S,
)
# What the text is filed under, the rest of the line a link.
_FILED = re.compile(r"^\W{0,3}(?:(?:dòng )?sự kiện|chủ đề|chuyên đề|chuyên mục)\s*:", re.I)
# The firm that has sent a press release, described by itself behind it.
_ABOUT = re.compile(
    r"^\W{0,3}(?:about|über(?: die| das| den)?|à propos de|acerca de|sobre|om|over)\s+(?P<name>\S.{1,50}?)\W*$", re.I
)
_CREDIT = re.compile(
    r"^\W{0,3}(?:ảnh(?: minh họa)?|video|clip|đồ họa|nguồn(?: ảnh)?|photos?(?: by| credit| courtesy)?"
    r"|image(?: credit| source)?|picture|credit|source|foto(?:s|graf|credit)?|(?:titel)?bild(?:er|quelle|nachweis|credit)?"
    r"|grafik|quelle|illustration|getty images|(?:©|copyright)\s*(?:ap|afp|dpa|reuters|getty|imago))"
    r"(?:\s*[:：©/]|\s+(?:via|von|by|credit)\b).{0,140}$|^\W*(?:getty images|reuters|afp|ap photo|dpa|imago"
    r"|shutterstock|picture alliance).{0,60}$|.{0,100}/\s?(?:getty images|afp|reuters|dpa|ap|shutterstock"
    r"|imago)\W*$",
    re.I,
)
# "... this afternoon. Photo: Jane Doe", "... (Ảnh: TTXVN)": the words of a picture. Longer ones are paragraphs.
_CAPTION_CHARS = 300
_ENDS_WITH_CREDIT = re.compile(
    r"(?:[.!?…”\"')]\s*|\s[-–|]\s*|\s?[(\[]\s*)(?:nguồn ảnh|ảnh(?: minh h(?:ọa|oạ)| tư liệu)?|photos?|fotos?|bild(?:er)?|images?|pictures?|video|clip|đồ họa)"
    r"\s*:\s*(?:[^.:!?]|\.(?=\S)|(?<=\s[^\W\d_])\.){2,50}[.)\]\s]*$",
    re.I,
)
_BYLINE = re.compile(
    r"^\W{0,3}(?:(?:by|von|par|por|di|door|tác giả|autor(?:in)?|author|text|written by|posted by"
    r"|published by)\s*:?\s+[^\W\d_][^.!?]{2,70}|(?:published|posted|updated|last updated|veröffentlicht"
    r"|aktualisiert|stand|cập nhật|publié|publicado|actualizado|erstellt)\b[^.!?]{0,60}\d.{0,40}"
    r"|(?:كتبت?|بقلم|लेखक|מאת|نویسنده|yazan|penulis|автор|作者|记者|記者)\s*[:：].{2,40}|(?:โดย|بقلم|מאת)\s.{2,40}"
    r"|\d+\s*(?:min(?:ute)?s?|phút)\s*(?:read|lesezeit|đọc)?\W*)$",
    re.I,
)
_DATE_LINE = re.compile(
    r"^\W*(?:(?:(?:zuerst|erstmals|first|originally)\s+)?(?:veröffentlicht|erstellt|aktualisiert|published|updated|posted"
    r"|publiée?|mise? à jour|publicado|actualizado|atualizado|pubblicato|aggiornato|đăng|cập nhật|xuất bản)"
    r"(?:\s+(?:am|on|le|el|em|il|lúc|ngày))?[\s:]+)?(?:(?:(?:thứ|chủ nhật|mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa"
    r"|so)\w*\s*\w*|(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo|segunda|terça|quarta|quinta|sexta)(?:-feira)?)"
    r"[,.]?\s*)?(?:\d{1,2}:\d{2}\s*\w{0,4}[,\s|-]+)?(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"
    r"|\d{1,2}\.?\s+(?:de\s+)?\w{3,10}\.?,?\s+(?:de\s+)?\d{4}|\w{3,10}\.?\s+\d{1,2},?\s+\d{4}|\d{4}-\d\d-\d\d)"
    r"(?:[\s,|@–-]*(?:um|at|lúc|à|às|a las)?\s*\d{1,2}[:.h]\d{2}.{0,20})?\W*$",
    re.I,
)
# "Acme is a leading provider of ...", behind the news of a press release.
_FIRM = re.compile(
    r"(?P<name>[A-ZÄÖÜ][\w&.+-]{2,20}(?: [A-ZÄÖÜ][\w&.+-]{1,20}){0,3})(?: \([^()]{2,30}\))?,? (?:is|ist|est|es) (?:a|an|the|one of the|eine?r?|der|die|das|une?|una?|le|la|el)\b"
    r"(?=.{0,120}\b(?:providers?|suppliers?|manufacturers?|compan(?:y|ies)|developers?|leaders?|leading|vendors?|Anbieter\w*|Hersteller\w*|Unternehmen|Konzern|entreprise|empresa|leader mondial)\b)"
)
# Wire services' and desks' notes under a story.
_DESK = re.compile(
    r"^\W{0,3}(?:(?:additional |with )?report(?:ing|s) (?:by|from)\b|with (?:files|reports"
    r"|additional reporting) (?:from|by)\b|writing by\b|editing by\b|compiled by\b|redaktion\s*:|sendung\s*:"
    r"|faktencheck\s*:"
    r"|mit (?:informationen|material) (?:von|der)\b|(?:this|the) (?:article|story|post) (?:was |is "
    r"|has been )?(?:first |originally )?(?:published|appeared)|(?:first|originally) published (?:in|on|by)\b"
    r"|dieser (?:artikel|text|beitrag) (?:ist|erschien|wurde) .{0,30}(?:zuerst|erschienen)"
    r"|(?:follow|write to|contact|email|e-mail|reach) .{0,40}(?:@|\bon twitter\b|\bat\b .{2,40}@)"
    r"|get in touch with|for more (?:stories|news|information|on)\b|(?:estimated )?(?:reading time|lesezeit"
    r"|tempo de leitura|temps de lecture|tiempo de lectura|leestijd|thời gian đọc)\b"
    r"|(?:der|dieser) (?:beitrag|artikel|eintrag) wurde am\b|we want to hear what you think|our standards\s*:"
    r"|(?:atenção\s*:\s*)?(?:os )?comentários (?:com|que|são)\b|image illustrative|photo d'illustration|symbolbild"
    r"|stay (?:informed|up to date)|sign up (?:for|to)|to (?:comment|order|subscribe)\b"
    r"|send (?:us )?(?:a )?(?:tips?|feedback)|have (?:a|you) (?:tip|story)|if you (?:have"
    r"|want to) .{0,30}(?:contact|email)|ihre meinung ist)",
    re.I,
)
_SOURCE_LINE = re.compile(
    r"^\W*(?:\(?theo\b.{2,60}\)?|nguồn\s*:.{2,60}|\((?:ap|afp|dpa|reuters|ttxvn|sda|apa|dpa/\w+"
    r"|[a-z]{2,4}/[a-z]{2,6})\))\W*$",
    re.I,
)
# "Jane Doe is a staff writer at ..." under the text.
_BIO = re.compile(
    r"(?:[A-ZÄÖÜÀ-Ý][\w.'’-]+ ){2,4}(?:is|was|works|writes|covers|reports|ist|war|arbeitet|schreibt|leitet|berichtet|est|es|é)\b"
    r"(?=.{0,200}\b(?i:reporter\w*|redakteur\w*|[ck]orrespond\w*|journalist\w*|editor|writer|columnist|kolumnist\w*"
    r"|autor(?:in)?|author|rédact\w+|journaliste|periodista|redactora?)\b)",
    re.S,
)
#: What may stand beside the name in a Vietnamese signature.
SIGNED_ROLE = re.compile(
    r"^\W*(?:tác giả|bài và ảnh|bài|thực hiện)\s*:\s*|\s*\([^()]{2,40}\)\s*$"
    r"|\s+(?:tổng hợp|thực hiện|biên dịch|lược dịch|lược ghi|ghi|dịch)\s*$",
    re.I,
)
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


def content_of(blocks: Iterable[Block], headline: str | None = None, site_name: str | None = None) -> str | None:
    """Paragraphs joined by a blank line, without what is not article text; None when nothing is left."""
    kept = tidy(blocks, headline)
    if not kept:
        return None
    lines = [_visible(b.text) for b in kept]
    lines[0] = strip_sapo_prefix(lines[0])
    lines[-1] = re.sub(r"\s*\./\.\s*$", ".", lines[-1])
    text = "\n\n".join(line for line in lines if line)
    return text if len(text) >= MIN_CONTENT_CHARS else None


def tidy(blocks: Iterable[Block], headline: str | None = None) -> list[Block]:
    """The blocks that are article text, in order."""
    head = key(headline) if headline else ""
    kept: list[Block] = []
    seen: dict[str, str | set[str]] = {}
    blocks = list(blocks)
    ahead: _Ahead | None = None
    written = 0  # characters kept
    box: frozenset[int] | None = None  # set while in a box: the elements beside whose paragraphs it stands
    for position, block in enumerate(blocks):
        text = block.text
        if box is not None:
            if block.holder not in box:
                continue
            box = None
        if not _KEY.search(text) and not clean_line(text).strip("_*-–— „“”»«\"'"):
            continue
        if head and _is_headline(block, head, written):
            continue
        if len(text) < 80 and is_box_title(text):
            ahead = ahead or _Ahead(blocks)
            beside = _beside(block, kept)
            if ahead.goes_on(beside, position):
                box = beside
                continue
            if written > 300 and ahead.running[position] < (0.15 if _is_box(text) else 0.5) * written:
                break
        if len(text) < 70 and (about := _ABOUT.match(text)) and position + 1 < len(blocks):
            ahead = ahead or _Ahead(blocks)
            named = about["name"].casefold() in blocks[position + 1].text[:120].casefold()
            if named and 3 * ahead.running[position] < written:
                break
        if len(kept) > 3 and (firm := _FIRM.match(text)) and position + 1 < len(blocks):
            ahead = ahead or _Ahead(blocks)
            named = blocks[position + 1].text[:120].startswith(firm["name"])
            if named and 2 * (ahead.running[position] + len(text)) < written:
                break
        if leads_away(block) or (len(kept) < 3 and len(text) < 70 and block.tag == "p" and _BYLINE.match(text)):
            continue
        # The lead again, a quote shown twice.
        if len(text) > 40 and _is_repeated(strip_sapo_prefix(text) if len(kept) < 3 else text, seen):
            continue
        kept.append(block)
        written += len(text)
    kept = _without_front(_without_captions(_without_repeated_links(kept)))
    return _without_repeated_lead(_without_tail(kept))


class _Ahead:
    """What comes behind each block. ``running``: characters of whole sentences that are not links."""

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
    """The title again, above the text or in it. ``head`` is its key; ``written``: characters kept before it."""
    if block.tag == "h1" and written < 400:
        return True
    if not written and len(block.text) < 250 and " | " in block.text and key(block.text).startswith(head):
        return True  # the page's title, site and rubric behind it
    if len(block.text) > 4 * len(head) + 40:  # too long whatever its signs: keys are dear
        return False
    k = key(block.text)
    return k == head or (not written and len(k) < 1.3 * len(head) and head in k)


def _is_repeated(text: str, seen: dict[str, str | set[str]]) -> bool:
    """Whether a text with the same key was asked for before. ``seen``: begin of the key -> the first text that begins
    so, or the keys of all that do: most begin by themselves, and keys are dear."""
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
    return length > 80 and block.link_chars < 0.4 * length and bool(_SENTENCE_END.search(block.text))


def _beside(heading: Block, kept: list[Block]) -> frozenset[int]:
    """The elements that hold the last paragraphs, where the heading of a box stands in another one of its own."""
    parents = frozenset(b.holder for b in kept[-5:] if b.tag == "p" and _is_running(b))
    return frozenset() if heading.holder in parents else parents


def is_box_title(line: str) -> bool:
    """Whether a line by itself announces other articles, comments or tags."""
    return _is_box(line) or bool(_END.match(line)) or (not line.isascii() and vietnamese.is_end(line))


def _is_box(line: str) -> bool:
    return bool(_BOX.match(line)) or (not line.isascii() and vietnamese.is_box_title(line))


def leads_away(block: Block) -> bool:
    """A line of links, a share line, a picture credit: not text wherever it stands."""
    text = block.text
    length = len(text)
    if length < 80 and is_box_title(text):
        return True
    if (length < 90 or (length < 250 and block.link_chars > 0.3 * length)) and _AWAY.match(text):
        return bool(block.link_chars) or not _SENTENCE_SO.match(text)
    if length < 160 and _CREDIT.match(text):
        return True
    if length < 300 and block.link_chars > 0 and _APPEAL.match(text):
        return True
    if length < 320 and _DESK.match(text):
        return True
    if length < 200 and vietnamese.leads_away(text):
        return True
    if length < 120 and 2 * block.link_chars > length and _FILED.match(text):
        return True
    linked = block.link_chars / max(1, length)
    if block.tag == "li" and linked > 0.5 and length < 180:
        return True
    if block.tag in ("h2", "h3", "h4"):
        return False
    return (
        linked > 0.8
        and length < 200
        and not (
            block.tag in ("p", "td") and _SENTENCE_END.search(text) and length > 60 and 2 * block.bold_chars < length
        )
    )


def _without_repeated_links(blocks: list[Block]) -> list[Block]:
    """Linked lines that begin alike ("READ THIS TOO | ..." three times) are a box, whatever its class."""
    starts = Counter(" ".join(b.text.split()[:2]) for b in blocks if b.link_chars > 0.4 * len(b.text))
    often = {s for s, n in starts.items() if n > 1}
    if not often:
        return blocks
    return [b for b in blocks if not (b.link_chars > 0.4 * len(b.text) and " ".join(b.text.split()[:2]) in often)]


def _without_captions(blocks: list[Block]) -> list[Block]:
    """Short paragraphs that end with who took the picture are captions, unless they are what the page consists of."""
    found = [
        b
        for b in blocks
        if len(b.text) < _CAPTION_CHARS and ":" in b.text[-70:] and _ENDS_WITH_CREDIT.search(b.text[-70:])
    ]
    if not found or 2 * sum(len(b.text) for b in found) > sum(len(b.text) for b in blocks):
        return blocks
    mine = {id(b) for b in found}
    return [b for b in blocks if id(b) not in mine]


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
    while blocks and _is_tail(blocks[-1], len(blocks)):
        blocks = blocks[:-1]
    return blocks


def _is_tail(block: Block, position: int) -> bool:
    text = block.text
    if block.tag[:1] == "h" and block.tag[1:].isdigit():
        return not text.endswith(".")  # a heading of nothing; a sentence stood over a picture
    if _SOURCE_LINE.match(text) or _DATE_LINE.match(text) or (len(text) < 80 and _BYLINE.match(text)):
        return True
    if position > 2 and vietnamese.is_tail(text):
        return True
    if position > 2 and ((len(text) < 400 and _BIO.match(text)) or (len(text) < 200 and text.endswith(":"))):
        return True  # who the author is; an introduction to a box that is off
    return position > 2 and _is_signature(block)


def _is_signature(block: Block) -> bool:
    text = SIGNED_ROLE.sub("", block.text.strip()) if len(block.text) <= 80 else block.text
    names = [w for w in (part.strip("()[]-,") for part in text.split()) if w]
    if not 1 <= len(names) <= 6 or len(text) > 50 or not text or text[-1] in '.!?:;”"' or block.tag == "li":
        return False
    return all(w[:1].isupper() or w in ("và", "-", "/", "&", "und", "and", "von", "van", "de") for w in names)


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
