"""Lines around an article in Vietnamese: titles of boxes, buttons, notices. Whole lines, so that no sentence is hit. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = re.compile(r"[^\W\d_]+")
#: A line of more characters is none of the fixed ones.
MAX_CHARS = 60
# So many signs and digits may stand before the first word.
_LEADING_SIGNS = 8


def _phrases(lines: str) -> frozenset[str]:
    return frozenset(phrase.strip() for phrase in lines.replace("\n", ",").split(",") if phrase.strip())


# What a box of other articles is called; digits and signs are left out of the comparison.
_BOXES = _phrases(
    """
    tin liên quan, bài liên quan, bài viết liên quan, tin tức liên quan, tin bài liên quan, nội dung liên quan,
    bài báo liên quan, video liên quan, chủ đề liên quan, sự kiện liên quan, các tin liên quan, các bài viết liên quan,
    có thể bạn quan tâm, bạn có thể quan tâm, có thể bạn muốn xem, có thể bạn thích, bạn có thể thích, bạn quan tâm,
    đừng bỏ lỡ, đừng bỏ qua, không thể bỏ lỡ, không nên bỏ lỡ, tin nổi bật, bài nổi bật, bài viết nổi bật, video nổi bật,
    đọc nhiều, đọc nhiều nhất, tin đọc nhiều, tin đọc nhiều nhất, bài đọc nhiều, bài đọc nhiều nhất, xem nhiều,
    xem nhiều nhất, tin xem nhiều, được xem nhiều, đọc tiếp, đọc thêm, xem thêm, xem tiếp, mời bạn đọc thêm, mời xem thêm,
    cùng chủ đề, cùng chuyên mục, cùng mục, cùng tác giả, cùng sự kiện, tin cùng chuyên mục, tin cùng mục, tin cùng chủ đề,
    tin cùng sự kiện, bài cùng chuyên mục, bài cùng chủ đề, bài cùng tác giả, bài viết cùng chuyên mục,
    bài viết cùng chủ đề, bài viết cùng tác giả, các tin cùng chuyên mục, các bài cùng chuyên mục,
    tin mới, tin mới nhất, tin tức mới nhất, bài mới nhất, bài viết mới, bài viết mới nhất, tin khác, các tin khác,
    tin tức khác, bài khác, các bài khác, bài viết khác, các bài viết khác, tin đã đưa, các tin đã đưa, tin cũ hơn,
    tin mới hơn, các tin cũ hơn, các tin mới hơn, những tin cũ hơn, những tin mới hơn, tin nên đọc, nên đọc, gợi ý cho bạn,
    dành cho bạn, tin dành cho bạn, tin tiêu điểm, tin nóng, tin tài trợ, nội dung được tài trợ
    """
)
# Where the readers' part begins.
_ENDS = _phrases(
    """
    ý kiến của bạn, ý kiến bạn đọc, bình luận bạn đọc, bình luận của bạn, gửi bình luận, viết bình luận, bình luận,
    gửi ý kiến, gửi ý kiến của bạn
    """
)
# Buttons, labels of players and pictures.
_AWAY = _phrases(
    """
    nghe đọc bài, nghe bài viết, nghe bài báo, nghe audio, giọng nữ, giọng nam, giọng miền bắc, giọng miền nam, copy link,
    copy linkcopied, copied, link bài gốc, copy link link bài gốc, copy link link bài gốc lấy link, lấy link,
    sao chép liên kết, sao chép, in bài viết, in bài, in trang, gửi email, gửi bài viết, lưu bài, lưu tin, lưu bài viết, chia sẻ,
    chia sẻ bài viết, chia sẻ facebook twitter zalo, đánh giá bài viết, bạn thấy bài viết này thế nào, trở về đầu trang,
    lên đầu trang, về đầu trang, trở lại đầu trang, quay lại trang chủ, về trang chủ, quảng cáo, đăng ký nhận bản tin,
    đăng ký nhận tin, theo dõi chúng tôi, phóng to, xem ảnh lớn, xem toàn màn hình, xem tiếp trang, ảnh minh họa,
    ảnh minh hoạ, hình minh họa, hình minh hoạ, hình ảnh minh họa, hình ảnh minh hoạ, ảnh tư liệu, ảnh chụp màn hình,
    ảnh cắt từ clip, ảnh cắt từ video, ảnh chụp từ clip, ảnh nhân vật cung cấp, ảnh internet
    """
)
# What the paper says of itself, of its rights or to its readers, behind or in a text.
_NOTICE = re.compile(
    r"^\W{0,4}(?:bản quyền (?:thuộc|bài viết)|(?:vui lòng |đề nghị |yêu cầu )?ghi rõ nguồn|(?:không|cấm) (?:được )?sao chép"
    r"|mọi (?:ý kiến|thông tin|đóng góp|chi tiết|thắc mắc|hành vi sao chép)\b.{0,80}(?:gửi|liên hệ|ghi rõ|@)"
    r"|mời (?:quý |các )?(?:bạn đọc|bạn xem|bạn|khán giả|độc giả|đọc giả|thính giả|vị)?\s?(?:cùng )?(?:theo dõi|đón xem|đón đọc|nghe|tham gia)\b"
    r"|bài viết (?:này )?(?:có )?hữu ích\b|đánh giá\s*:?\s*\d[.,]?\d?\s?/\s?5\b|tham gia (?:nhóm|cộng đồng|kênh|group)\b|tít (?:bài|phụ)\b|(?:tựa|tiêu) đề do\b"
    r"|bài viết (?:thể hiện|là|phản ánh) (?:quan điểm|ý kiến)\b)",
    re.I,
)  # fmt: skip
# Behind a text alone: there it is the paper's, before more text it may be the article's.
_TAIL = re.compile(r"^\W{0,3}(?:chủ đề\s*:|hotline\b|đường dây nóng\s*:|liên hệ quảng cáo\b|trở lại \w)", re.I)
# Who has done what, a name behind it.
_CRAFT = re.compile(
    r"^\W{0,3}(?:tác giả(?: bài viết)?|nguồn(?: tin)?|nội dung|bài(?: viết)?|tin|ảnh|thực hiện|thiết kế|trình bày|đồ họa"
    r"|kỹ thuật|biên tập|biên soạn|tổng hợp|người (?:viết|thực hiện))"
    r"(?:\s*(?:,|và|-|&|/|\+)\s*(?:bài|tin|ảnh|video|clip|đồ họa|thiết kế|trình bày))*\s*:\s*(?-i:[^\W\d_a-zà-ỹ])[^.!?:]{1,60}$",
    re.I,
)
# The paper's name before a lead.
_SAPO_PREFIX = re.compile(
    r"^(?:\(\s*(?P<name>[A-ZĐÀ-Ỹ][\w.&+ĐÀ-ỹ ]{1,24})\s*\)\s*[-–—]?\s+|(?P<code>[A-ZĐ][A-ZĐ&]{1,5}(?: Online)?"
    r"|[A-Za-z]\w{1,14}\.(?:vn|VN)|[A-Za-z]{8,20}|Báo [A-ZĐ][\wĐÀ-ỹ]{1,8}(?: [\wĐÀ-ỹ]{1,8}){0,2})"
    r"(?:\s+(?:[-–—]{1,2}|\|)\s*|\s*[-–—]\s+)(?!.{3,60} [-–—] )|BNEWS\s+)(?=[A-ZĐÀ-Ỹ\"“'])"
)
_VIETNAMESE = re.compile("[ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ]", re.I)
_TWICE = re.compile(r"^(\w.{5,40}?)\1$")  # a link and its hover text


_FIRST = frozenset(phrase.partition(" ")[0] for phrase in _BOXES | _ENDS | _AWAY)
_FIRST_OF_NOTICE = frozenset(
    ["bản", "vui", "đề", "yêu", "ghi", "không", "cấm", "mọi", "mời", "tham", "tít", "tựa", "tiêu", "bài", "đánh"]
)


def _first(line: str) -> str:
    word = _WORDS.search(line)
    return word[0].casefold() if word is not None and word.start() <= _LEADING_SIGNS else ""


@lru_cache(maxsize=2048)
def kind(line: str) -> str:
    """ "box", "end" or "away" of a line that is one of the fixed ones, else ""; templates write the same ones always."""
    if len(line) >= MAX_CHARS or _first(line) not in _FIRST:
        return ""
    phrase = " ".join(_WORDS.findall(line.casefold()))
    return "box" if phrase in _BOXES else "end" if phrase in _ENDS else "away" if phrase in _AWAY else ""


def is_box_title(line: str) -> bool:
    return kind(line) == "box"


def is_end(line: str) -> bool:
    """What the readers' comments are announced by."""
    return kind(line) == "end"


def leads_away(line: str) -> bool:
    """A button, a label or a notice: no text of an article wherever it stands. ``line``: fewer than 200 characters."""
    if kind(line) == "away":
        return True
    if _first(line) in _FIRST_OF_NOTICE and _NOTICE.match(line):
        return True
    return len(line) < 80 and line.find(line[:6], 6) > 0 and bool(_TWICE.match(line))


def is_tail(line: str) -> bool:
    return len(line) < 120 and bool(_TAIL.match(line) or _CRAFT.match(line))


def strip_sapo_prefix(line: str) -> str:
    """ "(Dân trí) - Hà Nội ..." -> "Hà Nội ...": the site's own name before a Vietnamese lead."""
    match = _SAPO_PREFIX.match(line)
    if match and is_vietnamese(line):
        return line[match.end() :]
    return line


def is_vietnamese(line: str) -> bool:
    """Whether a sentence has the letters that Vietnamese alone is full of."""
    return len(_VIETNAMESE.findall(line[:200])) >= 5
