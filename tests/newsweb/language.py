"""Vietnamese-looking text: a vocabulary under Zipf's law, sentences, titles, names. Deterministic.

The forms are built from the syllable structure of Vietnamese (onset, rime, tone), so that
folding of diacritics, đ, tokenising and index size behave as on the real thing. Nothing is
copied from a page.
"""

from __future__ import annotations

import hashlib
import random
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate


def _words(text: str) -> list[str]:
    return text.split()


#: Real function and news words, most frequent first: they take the top ranks.
COMMON = _words(
    "và của là các có được trong cho với một những không người này đã khi để từ ra đến năm ngày về sau "
    "theo tại nhiều việc cũng vào còn như trên hơn đó bị phải thì sẽ đang nên mới hai đồng lại chỉ đây "
    "bằng vì rất nước mà làm nay công ty thành phố thị trường doanh nghiệp cơ quan kinh tế xã hội dự án "
    "quốc gia chính phủ giá tăng giảm đầu tư phát triển sản phẩm khách hàng giáo dục sức khỏe học sinh "
    "bệnh viện bác sĩ cảnh sát điều tra giao thông du lịch bóng đá trận đấu cầu thủ huấn luyện viên ngân "
    "hàng lãi suất cổ phiếu bất động sản xuất khẩu nhập khẩu nông nghiệp thời tiết bão lũ môi trường công "
    "nghệ trí tuệ nhân tạo điện thoại ứng dụng mạng thông tin báo cáo kế hoạch"
)
_ONSETS = ["", *_words("b c ch d đ g gi h kh l m n ng nh ph qu r s t th tr v x")]
_OPEN = _words(
    "a o ô ơ u ư ai ao au âu ây ay eo êu ia iêu oa oai oi ôi ơi ua ưa ui ưi uôi ươi uê uy ưu i e ê"
)
_NASAL = _words(
    "am ăm âm an ăn ân ang ăng âng anh em en eng êm ên ênh im in inh iêm iên iêng oan oang oanh om on ong "
    "ôm ôn ông ơm ơn um un ung ưng uân uôm uôn uông ươm ươn ương uyên uynh"
)
_STOP = _words(
    "ac ăc âc ach ap ăp âp at ăt ât ec ep et êch êp êt ich ip it iêc iêp iêt oac oat oc op ot ôc ôp ôt ơp "
    "ơt uc up ut ưc ưt uât uôc uôt ươc ươp ươt uyêt"
)
_TONES = ("", "\u0300", "\u0301", "\u0309", "\u0303", "\u0323")
_VOWELS = "aăâeêioôơuưy"
_HO = _words(
    "Nguyễn Trần Lê Phạm Hoàng Huỳnh Phan Vũ Võ Đặng Bùi Đỗ Hồ Ngô Dương Lý Đinh Mai Trịnh Đoàn Tạ Lương"
)
_DEM = _words(
    "Văn Thị Minh Thu Ngọc Hoài Đức Hữu Quang Thanh Xuân Kim Hồng Bảo Gia Anh Tuấn Phương Nhật Khánh"
)
_TEN = _words(
    "Anh Bình Châu Dũng Đạt Giang Hà Hải Hạnh Hiếu Hòa Hùng Hương Khôi Lan Linh Long Mai Nam Nga Nhung "
    "Phong Phúc Quân Quỳnh Sơn Tâm Thảo Thắng Thủy Trang Trung Tú Uyên Vân Việt Yến Đông Nghĩa Oanh"
)
PLACES = (
    "Hà Nội",
    "TP.HCM",
    "Đà Nẵng",
    "Hải Phòng",
    "Cần Thơ",
    "Huế",
    "Nghệ An",
    "Đắk Lắk",
    "Quảng Ninh",
    "Lâm Đồng",
    "Đồng Nai",
    "Khánh Hòa",
    "Lào Cai",
    "An Giang",
    "Thanh Hóa",
    "Cà Mau",
    "Bắc Ninh",
    "Gia Lai",
    "Đồng Tháp",
)
_TERMS = (
    "Bộ Y tế",
    "Bộ Công an",
    "UBND tỉnh",
    "Quốc hội",
    "WHO",
    "Ngân hàng Nhà nước",
    "EVN",
    "VN-Index",
    "VinFast",
    "FIFA",
    "Bộ Giáo dục và Đào tạo",
    "AI",
    "USD",
    "GDP",
    "SEA Games",
    "Công an TP Hà Nội",
)
_LATIN = _words(
    "an el or in us ta mo ri ka ber son ton ver lin dor sha ken mar phil gar den wil ros tel nov zen qua "
    "lex cor vas mil hart ford ham land berg wood field"
)
#: Number of vocabulary forms; DESIGN asks for 100,000 at least.
FORMS = 120_000


def stable_seed(*parts: object) -> int:
    """The same integer for the same parts in every process (unlike hash())."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def rng_for(*parts: object) -> random.Random:
    return random.Random(stable_seed(*parts))


def _tone(rime: str, mark: str) -> str:
    if not mark:
        return rime
    # The tone stands on the vowel with a diacritic, else on the last but one of an open group.
    spots = [i for i, c in enumerate(rime) if c in _VOWELS]
    marked = [i for i in spots if rime[i] in "ăâêôơư"]
    spot = (
        marked[-1]
        if marked
        else (spots[-1] if rime[-1] not in _VOWELS else spots[max(0, len(spots) - 2)])
    )
    return unicodedata.normalize("NFC", rime[: spot + 1] + mark + rime[spot + 1 :])


def _spell(onset: str, rime: str) -> str:
    """Vietnamese spelling rules: k before e, ê, i; ngh, gh likewise; no doubled i or u."""
    if rime[0] in "eêi":
        onset = {"c": "k", "ng": "ngh", "g": "gh"}.get(onset, onset)
    if onset == "gi" and rime[0] == "i":
        onset = "g"
    if onset == "qu" and rime[0] in "uưoô":
        onset = "k"
    return onset + rime


@lru_cache(maxsize=1)
def syllables() -> tuple[str, ...]:
    """Every syllable of the structure, about 13,000, in a fixed order."""
    found: dict[str, None] = {}
    for onset in _ONSETS:
        for rime in _OPEN + _NASAL:
            for mark in _TONES:
                found.setdefault(_tone(_spell(onset, rime), mark))
        for rime in _STOP:
            for mark in ("\u0301", "\u0323"):
                found.setdefault(_tone(_spell(onset, rime), mark))
    return tuple(found)


def fold(text: str) -> str:
    """Without diacritics, đ as d."""
    flat = unicodedata.normalize("NFD", text.replace("đ", "d").replace("Đ", "D"))
    return "".join(c for c in flat if not unicodedata.combining(c))


def slugify(text: str, limit: int = 90) -> str:
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in fold(text).lower()).split()
    slug = ""
    for word in words:
        if len(slug) + len(word) > limit:
            break
        slug = f"{slug}-{word}" if slug else word
    return slug or "tin"


@dataclass(frozen=True)
class Byline:
    """What a page prints as its author line, and whom that names (empty for desks and sources)."""

    text: str
    authors: tuple[str, ...]


class Language:
    """One vocabulary. ``forms`` is ordered by rank; rank r is drawn in proportion to 1/(r + 2)."""

    def __init__(self, seed: int = 1, forms: int = FORMS) -> None:
        rng = rng_for("vocabulary", seed)
        syl = list(syllables())
        rng.shuffle(syl)
        found: dict[str, None] = dict.fromkeys(COMMON)
        # Few syllables carry most words, as in the language itself.
        while len(found) < forms:
            kind = rng.random()
            if kind < 0.10:
                word = syl[min(int(rng.paretovariate(0.45)), len(syl) - 1)]
            elif kind < 0.80:
                word = f"{_skewed(rng, syl)} {_skewed(rng, syl)}"
            elif kind < 0.88:
                word = f"{_skewed(rng, syl)} {_skewed(rng, syl)} {_skewed(rng, syl)}"
            else:
                word = "".join(rng.choice(_LATIN) for _ in range(rng.randint(2, 4))).capitalize()
            found.setdefault(word)
        self.forms = list(found)
        self._cum = list(accumulate(1.0 / (rank + 2.0) for rank in range(1, len(self.forms) + 1)))

    def words(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(self.forms, cum_weights=self._cum, k=count)

    def sentence(self, rng: random.Random) -> str:
        length = max(4, min(48, int(rng.lognormvariate(2.75, 0.45))))
        words = self.words(rng, length)
        for i in range(1, length - 1):
            dice = rng.random()
            if dice < 0.05:
                words[i] += ","
            elif dice < 0.09:
                words[i] = self.number(rng)
            elif dice < 0.12:
                words[i] = rng.choice(PLACES)
            elif dice < 0.14:
                words[i] = rng.choice(_TERMS)
            elif dice < 0.16:
                words[i] = "ông " + self.person(rng) if dice < 0.15 else "bà " + self.person(rng)
        text = " ".join(words)
        text = text[0].upper() + text[1:]
        dice = rng.random()
        if dice < 0.05:
            return f"“{text}”, {rng.choice(('ông', 'bà', 'anh', 'chị'))} {self.person(rng)} nói."
        return text + ("?" if dice > 0.98 else ".")

    def paragraph(self, rng: random.Random) -> str:
        count = rng.choices((1, 2, 3, 4, 5, 7), weights=(16, 32, 26, 14, 8, 4))[0]
        return " ".join(self.sentence(rng) for _ in range(count))

    def title(self, rng: random.Random) -> str:
        words = self.words(rng, rng.randint(5, 9))
        words.insert(rng.randrange(len(words)), self.words(rng, 1)[0])
        dice = rng.random()
        if dice < 0.25:
            words.insert(rng.randint(1, len(words)), self.number(rng))
        elif dice < 0.35:
            words.insert(rng.randint(1, len(words)), f"'{rng.choice(self.forms[:4000])}'")
        elif dice < 0.40:
            words.insert(1, "& " + rng.choice(_TERMS))
        text = " ".join(words)
        text = text[0].upper() + text[1:]
        if dice > 0.88:
            text = f"{rng.choice(PLACES)}: {text}"
        elif dice > 0.82:
            text += "?"
        return text

    def number(self, rng: random.Random) -> str:
        kind = rng.randrange(6)
        if kind == 0:
            return f"{rng.randint(1, 99)},{rng.randint(1, 9)}%"
        if kind == 1:
            return f"{rng.randint(1, 999)}.{rng.randint(0, 999):03d} tỷ đồng"
        if kind == 2:
            return f"ngày {rng.randint(1, 28)}/{rng.randint(1, 12)}"
        if kind == 3:
            return f"{rng.randint(2, 900)} triệu USD"
        return str(rng.randint(2, 2030))

    def person(self, rng: random.Random) -> str:
        if rng.random() < 0.25:
            return f"{rng.choice(_DEM)} {rng.choice(_TEN)}"
        return f"{rng.choice(_HO)} {rng.choice(_DEM)} {rng.choice(_TEN)}"

    def byline(self, rng: random.Random, form: str) -> Byline:
        """``form`` is one of BYLINES; the names in the truth are people only."""
        a, b = self.person(rng), self.person(rng)
        while b == a:
            b = self.person(rng)
        table: dict[str, tuple[str, tuple[str, ...]]] = {
            "name": (a, (a,)),
            "two-dash": (f"{a} - {b}", (a, b)),
            "two-ndash": (f"{a} – {b}", (a, b)),
            "two-comma": (f"{a}, {b}", (a, b)),
            "two-and": (f"{a} và {b}", (a, b)),
            "two-amp": (f"{a} & {b}", (a, b)),
            "slash-vov": (f"{a}/VOV", (a,)),
            "slash-agency": (f"{a}/Bnews/vnanet.vn", (a,)),
            "slash-ttxvn": (f"{a}/TTXVN", (a,)),
            "thuc-hien": (f"{a} (thực hiện)", (a,)),
            "tong-hop": (f"{a} tổng hợp", (a,)),
            "tac-gia": (f"Tác giả: {a}", (a,)),
            "bai-anh": (f"Bài: {a} - Ảnh: {b}", (a,)),
            "theo-after": (f"{a} (Theo Bloomberg)", (a,)),
            "theo": ("Theo Nhịp sống thị trường", ()),
            "pv": ("PV", ()),
            "nhom-pv": ("Nhóm PV", ()),
            "bbt": ("BBT", ()),
            "trailing-dash": (f"{a} -", (a,)),
            "none": ("", ()),
        }
        return Byline(*table[form])


#: Every author line form of the study of Vietnamese sites.
BYLINES = _words(
    "name two-dash two-ndash two-comma two-and two-amp slash-vov slash-agency slash-ttxvn thuc-hien "
    "tong-hop tac-gia bai-anh theo-after theo pv nhom-pv bbt trailing-dash none"
)


@lru_cache(maxsize=4)
def language(seed: int) -> Language:
    """The vocabulary of a seed, made once in a process."""
    return Language(seed)


def _skewed(rng: random.Random, items: list[str]) -> str:
    return items[int(len(items) * rng.random() ** 2.2)]
