"""Names of people, thousands of them: what two places of a page state is neither refused nor
changed; a newspaper is nobody."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from newscrawler.extraction import authors, credits
from newscrawler.extraction.author_choice import find as author_find
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document


def _listed(text: str, between: str = " ") -> list[str]:
    return text.split(between)


SEED = 20261122
VIETNAMESE, OTHERS = 2_000, 1_000
SURNAMES = _listed(
    "Nguyễn Trần Lê Phạm Hoàng Huỳnh Phan Vũ Võ Đặng Bùi Đỗ Hồ Ngô Dương Lý Đoàn Trịnh Đinh Phùng Tạ Lưu Quách Nghiêm Đàm "
    "Trương Triệu Lương Đào Vương Lâm Mai Tô Hà Cao Châu Thái Chu La Tống Bạch An Ông Âu Đường Giang Khúc Văn Ninh Thân Cù "
    "Mạc Vi Lò Sùng Giàng Vàng Ma Nông Bế Bàn Ban"
)
MIDDLES = _listed(
    "Thị Văn Hữu Đức Đình Công Xuân Thế Duy Trọng Minh Ngọc Quốc Thanh Hải Bá Y Con En Tin Ảnh Theo"
)
# Words that also say "posted", "station", "desk", "paper", "group", "text", "day",
# "photo", "translated".
GIVEN = _listed(
    "Đăng Đài Ban Báo Nhóm Bài Di Da Ngày Giờ Tháng Phút Trước Ảnh Tin Hình Ghi Dịch Lúc Vào Hỏi Đáp Năm Hai Ba Tư Sáu Bảy "
    "An Bình Cường Dung Em Hà Hạnh Khoa Lan Mai Nam Oanh Phúc Quang Sơn Tâm Uyên Vy Xuân Yến Ý Theo Chi"
)
PEN_NAMES = _listed(
    "Hải Đăng,Minh Đăng,Khánh Đăng,Trang Đài,Minh Đài,Đăng Khoa,Đài Trang,Ban Mai,Di Linh,Bài Thơ,Đăng Di,Hoài Ban,Phương Đài",
    ",",
)
FIRST = _listed(
    "Theo April Will June August Di Da Von Des Les Con Par Max Jan Mark Anna Lena José María João Ana François Zoë Søren "
    "Łukasz Mehmet Olga Per Im Min Sun Mon Sol Guy Rose Grace Frank Bill Mike Chase Art Ray Dean Earl Prince Norma Sat"
)
LAST = _listed(
    "Walcott Smith Jones Carter Koll Müller Nguyen Stefano Silva Costa Trapp Lindh Lynam Paul Houlihan Page Day Long Best "
    "Church Bishop English Love Short Ball Booth Bond Cross Fields Park West Wise Young Will April June March Freitag "
    "Sommer Winter Friday Monday Image Photo Minute Click Share Read For In To At On Im Aus Mit Nach Min Live Profile"
)
PARTICLES = (
    "von",
    "van der",
    "de la",
    "da",
    "di",
    "dos",
    "y",
    "e",
    "zu",
    "in 't",
    "auf der",
    "aus dem",
    "Le",
    "Des",
    "Al",
)
TEXT = "".join(
    f"<p>Paragraph {i} tells what the council has said about the bridge, who will pay for it and when it is to open.</p>"
    for i in range(4)
)


def vietnamese_names() -> list[str]:
    rnd = random.Random(SEED)
    found = {f"{a} {b} {c}" for a in SURNAMES[:20] for b in MIDDLES[:3] for c in GIVEN[:10]}
    while len(found) < VIETNAMESE - len(PEN_NAMES):
        middle = rnd.sample(MIDDLES, rnd.randint(0, 2))
        found.add(" ".join([rnd.choice(SURNAMES), *middle, rnd.choice(GIVEN)]))
    return [*sorted(found), *PEN_NAMES]


def other_names() -> list[str]:
    rnd = random.Random(SEED)
    found = [f"{first} {last}" for first, last in itertools.product(FIRST[:12], LAST[:12])]
    while len(set(found)) < OTHERS:
        first, last = rnd.choice(FIRST), rnd.choice(LAST)
        if first == last:
            continue
        middle = rnd.choice((*PARTICLES, *("",) * 8, rnd.choice("ABCDE") + "."))
        last = rnd.choice((last, last, f"{last}-{rnd.choice(LAST)}", f"O'{last}"))
        found.append(" ".join(f"{first} {middle} {last}".split()))
    return sorted(set(found))


def page(
    language: str, head: str, byline: str, behind: str = "", host: str = "example"
) -> Document:
    title = "Council approves the new bridge across the river"
    return Document(
        f"<html lang={language}><head><title>{title}</title>{head}</head><body><h1>{title}</h1>{byline}{TEXT}{behind}"
        "</body></html>".encode(),
        f"https://www.{host}.vn/a-1.html",
    )


def ld(name: str, kind: str = "Person") -> str:
    data = {"@type": "NewsArticle", "headline": "Council approves the new bridge across the river",
            "author": {"@type": kind, "name": name}}  # fmt: skip
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def meta(name: str) -> str:
    return f'<meta name="author" content="{name}">'


#: Two places of a page that state one name.
STATED = {
    "json-ld and byline": lambda n: (ld(n), f'<p class="author">{n}</p>', ""),
    "json-ld and meta": lambda n: (ld(n) + meta(n), "", ""),
    "meta and byline": lambda n: (meta(n), f'<p class="byline">{n}</p>', ""),
    "itemprop and rel": lambda n: ("", f'<span itemprop="author">{n}</span> <a rel="author" href="/x">{n}</a>', ""),
    "json-ld and signature": lambda n: (ld(n), "", f"<p><strong>{n}</strong></p>"),
}  # fmt: skip


def read(language: str, name: str, way: str, site: str | None = None) -> list[str]:
    doc = page(language, *STATED[way](name))
    return list(author_find.find(doc, PageContext(site_name=site, language=language)).value)


@pytest.mark.parametrize("way", STATED)
def test_vietnamese_names_are_neither_refused_nor_changed(way: str) -> None:
    names = vietnamese_names()
    assert len(names) == VIETNAMESE
    wrong = {name: found for name in names if (found := read("vi", name, way)) != [name]}
    assert not wrong, f"{len(wrong)} of {len(names)} (seed {SEED}): {list(wrong.items())[:20]}"


@pytest.mark.parametrize("way", STATED)
def test_names_of_other_languages_are_neither_refused_nor_changed(way: str) -> None:
    names = other_names()
    assert len(names) == OTHERS
    wrong = {name: found for name in names if (found := read("en", name, way)) != [name]}
    assert not wrong, f"{len(wrong)} of {len(names)} (seed {SEED}): {list(wrong.items())[:20]}"


@pytest.mark.parametrize("way", STATED)
@pytest.mark.parametrize(
    "body",
    ["Ban Thời sự", "Ban Biên tập", "Ban Thời Sự", "Báo Thanh Niên", "Báo Nghệ An", "Đài Truyền hình Việt Nam", "Đài Hà Nội",
     "Nhóm phóng viên", "Nhóm PV", "Thời Báo", "Ngày Đăng", "Đăng Ký", "Tạp chí Cộng sản", "Ủy Ban", "Staff Writer", "Getty Images",
     "Die Redaktion", "Press Association", "Hà Nội"],
)  # fmt: skip
def test_what_is_no_person_is_none_in_two_places_either(way: str, body: str) -> None:
    assert read("vi", body, way) == []


#: How a paper's name is written where its host and its stated name are written otherwise.
SITES = [
    ("Kênh Tin Nhanh", "kenhtinnhanh", None, None),
    ("kenhtinnhanh.vn", "kenhtinnhanh", None, None),
    ("Kenhtinnhanh", "kenhtinnhanh", "kenhtinnhanh.vn", None),
    ("Báo Kênh Tin Nhanh", "kenhtinnhanh", None, None),
    ("Kênh Tin Nhanh Online", "kenhtinnhanh", None, None),
    ("Sông Hồng Mới", "baosonghongmoi", None, None),
    ("Sông Hồng Mới", "shm", "shm.vn", None),
    ("Sông Hồng Mới", "news-1", None, "Báo Sông Hồng Mới"),
    ("Sông Hồng Mới", "news-1", "SÔNG HỒNG MỚI ONLINE", None),
    ("song hong moi", "news-1", "Sông Hồng Mới", None),
]


@pytest.mark.parametrize(("stated", "host", "site", "og"), SITES)
@pytest.mark.parametrize("kind", ["Person", "Organization"])
@pytest.mark.parametrize(
    "byline", ['<p class="author">{}</p>', "<p>Tác giả: {}</p>", "BEHIND<p><b>{}</b></p>"]
)
def test_the_paper_in_machine_places_does_not_end_the_search(
    stated: str, host: str, site: str | None, og: str | None, kind: str, byline: str
) -> None:
    """JSON-LD and meta name the newspaper, written otherwise than its host or its stated name; a
    line names who wrote."""
    head = ld(stated, kind) + meta(stated)
    head += f'<meta property="og:site_name" content="{og}">' if og else ""
    line = byline.format("Thu Hà")
    behind = line.removeprefix("BEHIND") if line.startswith("BEHIND") else ""
    doc = page("vi", head, "" if behind else line, behind, host)
    assert author_find.find(doc, PageContext(site_name=site, language="vi")).value == ["Thu Hà"]
    doc = page("vi", head, "", "", host)
    context = PageContext(site_name=site, language="vi")
    assert author_find.find(doc, context).value == []
    assert credits.find(doc, context, []).value == [stated]


@pytest.mark.parametrize(
    ("language", "text", "names"),
    [
        ("vi", "Theo Nguyễn Văn An", ["Nguyễn Văn An"]),
        ("vi", "Theo Reuters", []),
        ("vi", "Theo Sohu", []),
        ("vi", "Theo Thanh Niên", []),
        ("vi", "Theo An Ninh Thủ Đô", []),
        ("vi", "Thu Hà Theo Dân trí", ["Thu Hà"]),
        ("de", "Theo Koll", ["Theo Koll"]),
        ("en", "By Theo Walcott", ["Theo Walcott"]),
        ("nl", "Theo van Gogh", ["Theo van Gogh"]),
        ("en", "April Jones and Will Smith", ["April Jones", "Will Smith"]),
        ("en", "June Carter", ["June Carter"]),
        ("en", "Will be updated", []),
        ("en", "June 12, 2026", []),
        ("en", "April Update", []),
    ],
)
def test_theo_and_the_months_by_language(language: str, text: str, names: list[str]) -> None:
    """One place alone: a Person statement, and the line under the headline."""
    for doc in (
        page(language, ld(text), ""),
        page(language, "", f'<p class="author">{text}</p>'),
    ):
        assert author_find.find(doc, PageContext(language=language)).value == names


def test_theo_in_running_text_is_a_source() -> None:
    """A signature is a person's; a sentence that begins so is the article's, and what is no
    whole name a source."""
    body = "<p>Theo Nguyễn Văn An, giám đốc công ty, cây cầu mới sẽ được khánh thành vào cuối năm nay ở thành phố.</p>"
    assert author_find.find(page("vi", "", body), PageContext()).value == []
    signed = page("vi", "", "", "<p><b>Theo Nguyễn Văn An</b></p>")
    assert author_find.find(signed, PageContext()).value == ["Nguyễn Văn An"]
    source = page("vi", "", "", "<p><b>Theo Tuổi Trẻ</b></p>")
    assert author_find.find(source, PageContext()).value == []
    assert credits.find(source, PageContext(), []).value == ["Tuổi Trẻ"]


@pytest.mark.parametrize(
    "text",
    ["jane.roe@example.com", "Jane.Roe@Example.com", "Jane@Roe", "jane.roe@example.com, Jane Roe", "Jane Roe <jane.roe@example.com>", "Jane Roe (jane.roe@example.com)",
     "Jane Roe - jane.roe@example.com"],
)  # fmt: skip
@pytest.mark.parametrize("way", STATED)
def test_an_address_is_no_author(text: str, way: str) -> None:
    """Neither as a name nor as a part of one, where one place or two state it."""
    safe = text.replace("<", "&lt;").replace(">", "&gt;")
    assert read("en", safe, way) in ([], ["Jane Roe"])
    assert authors.clean([text], nicknames=True) == (["Jane Roe"] if "Jane Roe" in text else [])
