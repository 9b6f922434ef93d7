"""Names of people from bylines: who wrote it, without sources, roles, agencies, sites, dates. Pure.

Vietnamese, English and German bylines are known in detail, some forms of other languages as well.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from newscrawler.extraction.document import words

MAX_NAMES = 8
MAX_WORDS = 6
# One word of so many capitals is a wire service or a desk (ERBOL), not a given name.
_ACRONYM_CHARS = 5

_URL = re.compile(r"https?://\S+|www\.\S+|\S+@\S+\.\w+", re.I)
_HANDLE = re.compile(r"(?:^|\s)\(?@[\w.]+\)?")
# "Theo X" and "Nguồn: X" name where a text was taken from.
_SOURCE = re.compile(
    r"^\W*(?:theo|nguồn|nguồn tin|source|sources|quelle|quellen|fuente|fonte|via|ảnh|video|hình|đồ họa|clip|photo"
    r"|photos"
    r"|photographs?|foto|fotos|fotograf|bild|bilder|image|images|illustration|illustrations"
    r"|grafik|graphics?|camera|crédit photo)\s*(?::|\s)\s*",
    re.I,
)
_CREDIT = re.compile(
    r"\s*[-–—;|/,.(]*\s*(?:ảnh|video|hình(?: ảnh)?|đồ họa|thiết kế|trình bày|kỹ thuật|quay phim|dựng(?: phim)?|biên tập|clip|photos? by|photographs? by|pictures? by|photography by"
    r"|illustrations? by|foto|fotos|bild|graphics?)\s*:.*$"
    r"|\s*[-–;|,(]?\s*(?:photos|photographs|pictures|photography|illustrations?) by .*$"
    r"|\s*[-–;|,(]?\s*(?:illustration(?:en)?|fotos?|fotografie|bilder|grafik(?:en)?|videos?|mitarbeit|übersetzung) von .*$",
    re.I,
)
_LEAD = re.compile(
    r"^\W*(?:(?:written|words|posted|published|reported|reporting|analysis|opinion|story|text|article|edited"
    r"|compiled|submitted|contributed|created|review|reviewed|interview|geschrieben|verfasst|erstellt"
    r"|gepostet|veröffentlicht)\s+(?:by|von)"
    r"|by|von|vom|par|por|di|da|door|av|af|autor(?:en|in|innen|a|es|as)?|author(?:s|\(s\))?|auteur|autore|tác giả"
    r"|bài và ảnh|bài|thực hiện|người viết|(?:nhóm )?(?:phóng viên|pv|ctv|btv)|biên tập viên|cộng tác viên|nhà báo"
    r"|(?:ein )?(?:blog ?)?(?:beitrag|artikel|gastbeitrag|interview|kommentar|bericht|text|review) von|gespeichert von"
    r"|eingestellt von|text und fotos? von|(?:photos?|words) and (?:text|photos?|words) by"
    r"|text und fotos?|redaktion|redakteur(?:in)?|text|texte|words|reporter"
    r"|yazan|muhabir|haber|รายงานโดย|โดย|كتبت?|بقلم|लेखक|מאת|نویسنده|به قلم|خبرنگار|oleh|penulis|автор|текст|от|skrevet av|skriven av|tekst|tekst og foto|szerző|napisał|文|取材|撮影・文"
    r"|autorin\s?/\s?autor|autor\s?/\s?autorin|auteur|escribe|作者|记者|記者|著者|执笔|責任編輯|责任编辑|责编|编辑)"
    r"(?:\s*[:：]\s*|\s+)(?=\S)",
    re.I,
)
_LEAD_COLON = re.compile(
    r"^\W*(?:ein\s+)?(?:\w+\s+){0,3}?(?:autor(?:en|in|innen)?|author|verfasser(?:in)?|tác giả|bài viết|thực hiện"
    r"|text|von|by|interview|protokoll|redaktion|journalist(?:in)?|ansprechpartner(?:in)?|editor)\s*[:：]\s*",
    re.I,
)
_ROLE = re.compile(
    r"^(?:pv|ctv|btv|bbt|nhóm pv|nhóm phóng viên|phóng viên|biên tập viên|cộng tác viên|tổng hợp|ban biên tập"
    r"|tòa soạn|ban \w+|staff|staff writer|staff reporter"
    r"|reporter|editor|editors|editorial|editorial staff|editorial team|editorial board|newsroom|news desk"
    r"|web desk|online desk|digital desk|desk|contributor|contributors|(?:[\w&.-]+ ){0,3}(?:writers?|columnists?)"
    r"|(?:[\w&.-]+ ){1,4}(?:managers?|directors?|officers?|presidents?|analysts?|engineers?|professors?|producers?)|guest|guest author"
    r"|guest contributor|correspondent|columnist|journalist|author|authors|(?:(?:user|site|super|web) ?)?admin(?:istrator)?|webmaster"
    r"|redaktion|die redaktion|online-redaktion|onlineredaktion|newsdesk|redaktionsteam|redakteur(?:in)?"
    r"|redacción|redaccion|redazione|rédaction|la rédaction|redactie|redaktionen|redacția|redakcja|συντακτικη ομαδα|συντακτική ομάδα|team|das team"
    r"|unknown|anonymous|no author|letzte aktualisierung|autoreninfo|publié|interview|analyse|kommentar"
    r"|gastkommentar|essay|reportage|opinion|meinung|feature|bericht|autor\*in|autor:in|anonym|n/?a|none|null"
    r"|undefined|agencies|agency|agencias|agentur|agenturen"
    r"|wire|wire reports|wires|wire services|news services|other|various|live|video|foto|fotos|bild|ticker|news"
    r"|nachrichten|politik|sport|wirtschaft|kultur|presse|pressestelle|pressemitteilung|press release"
    r"|press association|facebook|twitter|instagram|linkedin|youtube|whatsapp|telegram|e-?mail|share|follow|print"
    r"|drucken|comments?"
    r"|read more|profile|bio|autor|autorin|gastautor|gastbeitrag|freelance(?:r)?|special to .*|for .{0,40}"
    r"|senior .{0,40}|chief .{0,40}|associate .{0,30}|political .{0,30}|national .{0,30}|staff .{0,30}"
    r"|publié(?: le)?|publicado(?: el)?|entfolgen|folgen|edit|startseite|aktualisiert|datum"
    r"|chefredakteur(?:in)?|ressortleiter(?:in)?|volontär(?:in)?|korrespondent(?:in)?|freier journalist"
    r"|freie journalistin|mehr|alle artikel|homepage|home|search|login|subscribe|(?:see|view) all.*|more .*"
    r"|all posts.*|posts by.*|artikel von.*|about the author|thứ (?:hai|ba|tư|năm|sáu|bảy|[2-7])|chủ nhật|t[2-7]|cn"
    r"|tin|bài|ảnh|hình|nội dung|thiết kế|trình bày|kỹ thuật|biên tập|phụ trách|minh họa|hỏi|đáp|trả lời|internet|nvcc|sưu tầm)$",
    re.I,
)
_AGENCY_NAMES = (
    "ap|afp|reuters|thomson reuters|dpa|apa|sda|sid|kna|epd|ansa|efe|tass|upi|pti|ani|ians|bernama|xinhua|"
    "kyodo|yonhap|bloomberg|associated press|the associated press|press association|pa media|pa|cnn wire|"
    "agence france-presse|deutsche presse-agentur|europa press|belga|anp|ntb|tt|ritzau|interfax|ria|dts|"
    "ots|ddp|dapd|awp|ttxvn|vna|vov|vtv|bnews|vietnamplus|vnanet.vn|vietnam+|cnn|bbc|news agency|cp|"
    "the canadian press|canadian press|aap|australian associated press|getty images|getty|shutterstock|"
    "istock|dpa-afx|dpa/tmn|tmn|red|msn|wire|ots/pr|presseportal|pr newswire|business wire|keystone-sda|"
    "keystone|imago|google|wordpress|youtube"
)
_AGENCY = frozenset(_AGENCY_NAMES.split("|"))
# Names of places that a column or a tag is often called after, as key() writes them.
_PLACE_NAMES = (
    "việt nam|hà nội|hồ chí minh|thành phố hồ chí minh|sài gòn|đà nẵng|hải phòng|cần thơ|huế|thừa thiên huế|quảng ninh|"
    "quảng nam|quảng ngãi|quảng trị|quảng bình|nghệ an|hà tĩnh|thanh hóa|bắc ninh|bắc giang|hưng yên|nam định|"
    "thái nguyên|lào cai|lâm đồng|đắk lắk|gia lai|đồng nai|đồng tháp|"
    "an giang|kiên giang|cà mau|tiền giang|tây ninh|hoa kỳ|trung quốc|hàn quốc|"
    "nhật bản|đông nam á|biển đông|trung đông|châu á|châu âu"
)
_PLACES = frozenset(_PLACE_NAMES.split("|"))
#: Words in the names of bodies.
CORPORATE = re.compile(
    r"\b(?:redaktion\w*|rédaction|redacci[oó]n|redazione|editorial|editors?|newsroom|news|team|staff|desk|agency"
    r"|agencies|agentur\w*|agencia|agence|agenzia|media|press(?:e\w*)?|magazin\w*|magazine|zeitung\w*|"
    r"times|post|tribune|herald|gazette|journal|guardian|telegraph|daily|weekly|online|digital|tv|radio|network|group"
    r"|gmbh|inc|ltd|llc|ag|e\.?v|verband\w*|verein\w*|stiftung\w*|institut\w*|university|universität|hochschule"
    r"|foundation|"
    r"association|ministerium\w*|bundes\w+|company|corporation|committee|council|department|office|bureau|club"
    r"|blog|\.com|\.de|\.org|\.net|\.vn|www|wiki|shop|studio|verlag|redakteure|báo|tạp chí|đài|tòa soạn|nhóm|ban"
    r"|thông tấn xã|"
    r"nhịp sống|trí thức trẻ|tri thức|thông tấn|netzwerk|society|project|center|centre|zentrum|service|services"
    r"|communications?|report(?:s|ing|ers)?|correspondents|holdings|investors|solutions|technologies|industries|affairs|tagesschau|sendung|kanal|welle|rundfunk|fernsehen"
    r"|channel|contributors?|gesellschaft|union|partei|landesverband|kommunikation)\b",
    re.I,
)
_BAD_WORD = re.compile(
    r"\b(?:the|this|that|is|are|was|were|has|have|will|with|about|more|read|click|here|subscribe|follow|copyright"
    r"|rights|reserved|standards|practices|polic(?:y|ies)|guidelines|headline|photo|image|minutes?|uhr|min|lesezeit|comments?|kommentare?|share|teilen|updated?"
    r"|published|veröffentlicht|aktualisiert|"
    r"ist|sind|wurde|haben|wird|nicht|ein|eine|der|die|das|und|oder|mit|für|auf|bei|zum|zur|im|in|als|nach|les"
    r"|des|est|sur|pour|dans|una|para|con|los|las|cập nhật|đăng|bình luận|chia sẻ|gmt|trước|phút|giờ|ngày|tháng"
    r"|january|february|march|april|june|july|"
    r"august|september|october|november|december|januar|februar|märz|juni|juli|oktober|dezember|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|to"
    r"|at|on|of|for|from|what|how|why)\b",
    re.I,
)
_PARTICLES = words(
    "af al av ben bin d' da das de del della den der di dos du e el ibn la le mac mc o' st ten ter und "
    "van vom von y zu zum zur"
)
_TITLES = re.compile(
    r"^(?:(?:dipl|ing|mag|med|phil|rer|nat|h\.c)\.[\s-]*|(?:prof|dr|mr|mrs|ms|sir|herr|frau|ths|ts|pgs|gs|bs|rechtsanw[aä]lt(?:in)?|notar(?:in)?|luật sư|nhà (?:báo|văn|thơ|nghiên cứu)"
    r"|thạc sĩ|tiến sĩ|(?:phó )?giáo sư|nhạc sĩ|họa sĩ|đạo diễn|kiến trúc sư|kỹ sư|dược sĩ|lương y|chuyên gia|bạn đọc|độc giả"
    r"|(?:đại|thượng|trung|thiếu) (?:tá|úy|tướng)|linh mục|hòa thượng|thượng tọa|tskh|kts|ck[i12]{1,2}|p\.v|pv|ctv|btv"
    r"|bác sĩ|nsnd|nsưt|bscki{1,2}|ls)(?:\.[\s-]*|[\s-]+))+(?=\w)",
    re.I,
)
_SPLIT = re.compile(
    r"\s*(?:[;|•·\n、，]|,(?!\s*(?:jr|sr|ii|iii|md|phd|ph\.d|m\.d|esq)\b)|\s/\s|/(?=\s*[A-ZĐÀ-Ỹ][\w]+\s)"
    r"|\s+[-–—]\s+|\s+[-–—](?=(?-i:[^\W\d_a-zß-öø-ÿ]))|(?<=\w)[-–—]\s+(?=(?-i:[^\W\d_a-zß-öø-ÿ]))|\s*&\s*|\s\+\s"
    r"|\s+(?:and|und|et|và|y|e|og|och|en|con|with|with additional reporting by|sowie|mit|i|и"
    r"|ve)\s+(?=(?-i:[^\W\d_a-zß-öø-ÿ])))\s*",
    re.I,
)
# Degrees and licences behind a name and a comma.
_DEGREE = re.compile(
    r"(?:M\.?A|M\.?S|M\.?D|D\.?O|R\.?N|R\.?D|J\.?D|B\.?A|B\.?S|M\.?Ed|Ph\.?D|M\.?Sc|B\.?Sc|M\.?B\.?A|M\.?P\.?H|R\.?D\.?N|C\.?F\.?A"
    r"|C\.?F\.?P|C\.?P\.?A|Pharm\.?D|D\.?D\.?S|D\.?V\.?M|L\.?C\.?S\.?W|F\.?A\.?C\.?P|Esq)\.?"
)
# Two Vietnamese names with a bare hyphen between them: a double-barrelled one has no accents.
_TWO_GLUED = re.compile(
    r"^(?=[^-]*[ăâđêôơưáàảãạấầẩẫậắằẳẵặéèẻẽẹếềểễệíìỉĩịóòỏõọốồổỗộớờởỡợúùủũụứừửữựýỳỷỹỵ])"
    r"((?:[^\W\d_]{1,7} ){1,4}[^\W\d_]{1,7})-((?:[^\W\d_]{1,7} ){1,4}[^\W\d_]{1,7})$",
    re.I,
)
_TAIL = re.compile(
    r"\s*(?:[,(\[|•·–—-]+\s*)?(?:(?<!\w)(?:cập nhật|updated|published|posted|aktualisiert|veröffentlicht|stand"
    r"|erstellt|last updated|vào lúc|lúc|vào|ngày|đăng|am|on|um|at|vor|il|le|el)\b:?\s*)*"
    r"(?:(?:(?:mo|di|mi|do|fr|sa|so|mon|tue|wed|thu|fri|sat|sun)[,.]|(?:mon|tue|wed|fri|sat|sun|\w{3,6}day|\w{3,7}tag|mittwoch)[,.]?)\s+)?"
    r"(?:\d{1,2}[:.h]\d{2}|\d{1,2}[./-] ?\d{1,2}[./-]\d{2,4}|\d{1,2}\.?\s+\w{3,9}\.?,?\s+\d{4}"
    r"|\w{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}|\d{4}-\d\d-\d\d|\d+\s*(?:min|minutes?|hours?|giờ|phút"
    r"|ngày)\b).*$",
    re.I | re.S,
)
_FILED = re.compile(
    r"\s+(?:(?:published|posted|filed|veröffentlicht|erschienen|gespeichert)\s+(?:in|on|to|under|am|um)\b"
    r"|in rubrik|publié|publicado)(?!\w).*$",
    re.I | re.S,
)
_SUFFIX = re.compile(
    r"\s*(?:\((?:thực hiện|tổng hợp|ghi|biên dịch|dịch|t/h|th|theo [^)]*|[^)]{1,40})\)|\[[^\]]{1,40}\]"
    r"|\s+(?:tổng hợp|thực hiện|biên dịch|lược dịch|lược ghi|ghi|dịch|t\.?h))\s*$",
    re.I,
)
_ROLE_TAIL = re.compile(
    r"\s*(?:,|–|—|\s-|\||:|\bis (?:a|an|the)\b|\bist\b|\bfor\b|\bof (?:the|cnn|ap|reuters)\b|\bim\b|\baus\b"
    r"|\bin\b|\bsenior\b|\bstaff\b|\bthe associated\b|\bassociated press\b|\bcontributing\b|\bassistant\b"
    r"|\bphóng viên\b|\bbiên tập viên\b|\bcộng tác viên\b|\bcorrespondent\b|\breporter\b|\breuters\b|\beditor\b|\bcolumnist\b|\bredakteur)(?:\s.*)?$",
    re.I,
)
# What follows is a source, or who has put the text into another language.
_NOT_BY = re.compile(
    r"^\W*(?:theo|nguồn|(?:übersetzung|übersetzt|translated|translation|traduction|traduit|traducción|traducido|vertaling)"
    r"(?: (?:von|by|de|par|por|door))?\s*:?)\s.*",
    re.I,
)
# What Vietnamese papers put before a name, one or several of them: "Tin, ảnh: ", "Nội dung: ", "Viết bởi ".
VIET_LABEL = re.compile(
    r"^\W*(?:(?:(?:ảnh|video|clip|hình)\s*(?:,|và|-|&|/|\+)\s*)?(?:tin|bài(?: viết)?|nội dung|phóng sự|kịch bản)"
    r"(?:\s*(?:,|và|-|&|/|\+)\s*(?:tin|bài|ảnh|hình(?: ảnh)?|video|clip|đồ họa|thiết kế|trình bày|biên tập))*\s*:\s*"
    r"|(?:tổng hợp|biên soạn|lược dịch|biên dịch|người (?:đưa tin|viết|thực hiện)|tác giả bài viết)\s*:\s*"
    r"|(?:được )?(?:(?:đăng|viết|gửi|đăng tải) )?bởi\s*:?\s+"
    r"|(?:bài(?: viết)?|ghi chép|phóng sự|(?:bút |hồi )?ký|tùy bút|tản văn|truyện ngắn|thơ)\s+của\s+(?=(?-i:[A-ZĐÀ-Ý]|[Ạ-Ỹ])))",
    re.I,
)
_VIET_LETTER = re.compile("[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")
_NICKNAME = re.compile(r"[^\W\d_][\w.-]{1,18}")
_JUNK = re.compile(r"[\u200b\ufeff\u00ad©®™]")


def clean(
    raw: Iterable[str], site_name: str | None = None, sites: Iterable[str] = (), *, nicknames: bool = False
) -> list[str]:
    """Names in order, without repeats; [] when there is none. ``sites``: what the site calls itself.

    ``nicknames``: a single word in lower case counts as a name (blogs); for places that are marked as author.
    """
    own = _keys((site_name, *sites))
    out: list[str] = []
    seen: set[str] = set()
    for item in raw:
        for part in split(item):
            name = _one(part, own, nicknames)
            if not name:
                continue
            k = key(name)
            if k in seen or any(set(k.split()) < set(s.split()) for s in seen if len(k.split()) == 1):
                continue
            seen.add(k)
            out.append(name)
            if len(out) >= MAX_NAMES:
                return out
    return out


@lru_cache(maxsize=1024)
def _keys(names: tuple[str | None, ...]) -> frozenset[str]:
    return frozenset(key(n) for n in names if n)


def is_agency(name: str) -> bool:
    return name.casefold() in _AGENCY or key(name) in _AGENCY


def without_tail(part: str) -> str:
    """A part of a byline without a lead word, the date and the signs at its ends."""
    return _TAIL.sub("", _LEAD.sub("", part)).strip(" .,;:|-–—•·\"'„“”‚‘’()[]*_>»«…")


def key(name: str) -> str:
    folded = unicodedata.normalize("NFC", name).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split())


@lru_cache(maxsize=1024)
def split(text: str) -> tuple[str, ...]:
    """A byline cut into names, its lead word, credits, roles and dates off."""
    text = html.unescape(unicodedata.normalize("NFC", text))
    text = " ".join(_JUNK.sub("", text.replace("\n", " ; ")).split())
    if not text or len(text) > 400:
        return ()
    if "<" in text:
        text = re.sub(r"<[^<>]{1,200}>", " ; ", text)
    text = VIET_LABEL.sub("", text)
    if _SOURCE.match(text) and not _LEAD.match(text):
        return ()
    text = _URL.sub(" ; ", text)
    text = _HANDLE.sub(" ", text)
    text = re.sub(r"^(?:By|Von)(?=[A-ZÄÖÜ][a-zäöü])", "", text)
    for _ in range(2):
        text = _LEAD_COLON.sub("", text) if ":" in text[:60] else text
        text = _LEAD.sub("", text)
    text = _CREDIT.sub("", text)
    text = re.sub(r"^\W*(?:theo|according to)\s.*$", "", text, flags=re.I)
    text = re.sub(r"\W+(?:edited|editing) by\s.*$", "", text, flags=re.I)
    if _VIET_LETTER.search(text):  # "Thu Hà Theo Nhịp sống kinh tế"; Theo is a name elsewhere
        text = re.sub(r"^([^()]*\w)[\s,;|–-]+theo\s+\S.*$", r"\1", text, flags=re.I)
    text = re.sub(r"\s+theo dõi(?!\w).*$", "", text, flags=re.I)  # a button
    text = re.sub(r"\((?:theo|nguồn|source|via)[^)]*\)", " ", text, flags=re.I)
    text = _TWO_GLUED.sub(r"\1 - \2", re.sub(r"\s\([^()]{20,120}\)", " ", text))  # an explanation, "and" in it
    return tuple(part for part in (p.strip() for p in _SPLIT.split(text)) if part)


@lru_cache(maxsize=4096)
def _one(name: str, own: frozenset[str], nicknames: bool) -> str | None:
    """One cleaned name; None when it is not a person's. Those who write for a site write often."""
    name = _NOT_BY.sub("", name)
    for _ in range(2):
        name = _LEAD.sub("", name)
        name = _SUFFIX.sub("", name)
    name = re.sub(
        r"^(?:eingestellt|gespeichert|geschrieben|verfasst|posted|published) (?:von|by)\b\s*", "", name, flags=re.I
    )
    name = _FILED.sub("", _TAIL.sub("", name))
    if "/" in name:  # "Văn Giáp/Bnews/vnanet.vn": the agency stands behind
        name = name.partition("/")[0]
    if len(name.split()) > 2:
        whole, name = name, _ROLE_TAIL.sub("", name)
        if name != whole and name.isupper() and len(name.split()) == 1:
            return None  # "HLNF Staff Report": a desk
    half = len(name) // 2
    if half > 3 and name[:half].strip() == name[-half:].strip():
        name = name[:half]  # the name of a picture and of a link, without a space
    if _DEGREE.fullmatch(name):
        return None
    name = re.sub(r"\s*(?:선임기자|기자|특파원|记者|記者|さん|氏|著|文)$", "", name)
    name = _TITLES.sub("", name).strip(" .,;:|-–—•·/\"'„“”‚‘’()[]*_>»«…")
    name = re.sub(r"^(?:\w)\s+(?=(?:\w+\s+){1,5}\w+$)", lambda m: "" if _avatar(m[0], name) else m[0], name)
    if not name or _ROLE.match(name):
        return None
    if nicknames and _NICKNAME.fullmatch(name) and not CORPORATE.search(name) and not _BAD_WORD.search(name):
        acronym = name.isupper() and 2 < len(name) <= _ACRONYM_CHARS
        return name if key(name) not in own and key(name) not in _AGENCY and not acronym else None
    if len(name) > 60 or any(c.isdigit() for c in name) or _BAD_SIGN.search(name):
        return None
    return name if looks_like_person(name, own) else None


_BAD_SIGN = re.compile(r"[<>{}=@#$%\\!?…:]|\.\w{2,3}$")


def _avatar(letter: str, name: str) -> bool:
    """The letter of an avatar before the name ("H Hoàng Anh"): it is the first one of a word that follows."""
    rest = name.split()[1:]
    return len(rest) > 1 and letter.strip().isupper() and rest[0][:1].upper() == letter.strip()


def looks_like_person(name: str, own: set[str] | frozenset[str] = frozenset()) -> bool:
    folded = key(name)
    if not folded or folded in own or folded.replace(" ", "") in {o.replace(" ", "") for o in own}:
        return False
    if any(len(o) > 5 and (o in folded) for o in own):
        return False
    if is_agency(name) or folded in _PLACES:
        return False
    parts = name.split()
    if re.search("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]", name):
        return 2 <= len(name) <= 30
    if len(parts) > MAX_WORDS or CORPORATE.search(name):
        return False
    if len(parts) == 1:
        return 3 <= len(name) <= 25 and name[0].isupper() and not (name.isupper() and len(name) <= _ACRONYM_CHARS)
    if _BAD_WORD.search(name) and not any(w.lower() in _PARTICLES for w in parts[1:-1]):
        return False
    particles = sum(1 for w in parts if w.lower() in _PARTICLES)
    named = sum(1 for w in parts if not w[:1].islower() or w in _PARTICLES)  # "Zu billig" is no name
    letters = sum(unicodedata.category(c)[0] in "LM" for c in name)  # vowels of Hindi are marks
    if letters < 0.7 * len(name.replace(" ", "")):
        return False
    return named == len(parts) or (name.islower() and len(parts) in (2, 3) and not particles)
