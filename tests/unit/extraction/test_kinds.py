"""What a page is that is no article, kind by kind, and what is an article all the
same; made-up pages."""

from __future__ import annotations

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from newscrawler.extraction.kinds import claims_article
from newscrawler.extraction.teasers import form

HEAD = "Thành phố thông xe cầu mới qua sông sau ba năm thi công"
URL = "https://www.example.vn/thoi-su/cau-moi-qua-song-20260815.htm"
SAPO = "Sáng 15/8, cây cầu nối hai bờ sông chính thức thông xe sau ba năm thi công."
ARTICLE_LD = (
    '<script type="application/ld+json">{"@type":"NewsArticle","headline":"' + HEAD + '",'
    '"datePublished":"2026-08-15T07:30:00+07:00"}</script>'
)


def text(count: int, first: int = 0) -> str:
    return "".join(
        f"<p>Đoạn {n} kể lại việc thi công cây cầu, số vốn đã bỏ ra và những người dân hai bên bờ sông đã chờ đợi ra sao.</p>"
        for n in range(first, first + count)
    )


def page(
    body: str, head: str = "", url: str = URL, is_article: bool | None = None, title: str = HEAD
) -> Extraction:
    html = f"<html lang=vi><head><title>{title}</title>{head}</head><body>{body}</body></html>"
    return extract(
        Document(html.encode(), url), PageContext(language="vi", url_is_article=is_article)
    )


# ---------------------------------------------------------------- challenges, consent, missing pages
def test_a_page_of_nothing_but_script_is_a_challenge_of_any_size() -> None:
    script = "function a(){return 1}" * 5_000
    html = f"<html><head><meta charset=utf-8><script>{script}</script></head><body></body></html>"
    assert extract(Document(html.encode(), URL), PageContext()).reason == "challenge"


@pytest.mark.parametrize(
    ("title", "words"),
    [
        (
            "Before you continue",
            "We and our partners use cookies to store information on your device and to show personalised content.|"
            "If you choose to accept all, we will also use cookies and personal data to measure the reach of our pages.|"
            "You can change your consent at any time in the privacy settings of this site and of our partners.",
        ),
        (
            "Willkommen",
            "Wir und unsere Partner verarbeiten personenbezogene Daten und setzen Cookies auf Ihrem Gerät ein.|"
            "Mit Ihrer Einwilligung messen wir, wie unsere Seiten genutzt werden; Näheres sagt die Datenschutzerklärung.|"
            "Ihre Einwilligung in Cookies können Sie jederzeit widerrufen.",
        ),
        (
            "Please wait",
            "Please enable JavaScript and disable any ad blocker to continue to this page of our newspaper.|"
            "Your browser must accept cookies and run JavaScript, so that we know that you are not a robot.",
        ),
    ],
)
def test_a_page_that_asks_for_consent_first_is_a_challenge(title: str, words: str) -> None:
    body = "".join(f"<p>{part}</p>" for part in words.split("|"))
    found = page(f"<h1>{title}</h1><main>{body}</main>", title=title)
    assert (found.reason, found.is_article) == ("challenge", False)


@pytest.mark.parametrize(
    "title",
    ["Just a moment...", "Attention Required! | Guard", "Access Denied", "Are you a robot?"],
)
def test_a_page_that_doubts_its_reader_is_a_challenge(title: str) -> None:
    words = "<p>You don't have permission to access this page on this server, or we must first see that you are human.</p>"
    found = page(f"<h1>{title}</h1>{words}<p>Reference #18.5e0f1.170</p>", title=title)
    assert (found.reason, found.is_article) == ("challenge", False)


def test_an_article_about_cookies_is_one() -> None:
    about = (
        "<p>The court has ruled that a newspaper may not set cookies before its readers have agreed to them.</p>"
        "<p>The judges said that a box that is ticked already is no consent, whatever its small print may say.</p>"
        "<p>The publisher said on Friday that it will appeal, as it lives from advertising and from nothing else.</p>"
        "<p>Two other courts have come to another view, and the question will go to Luxembourg in the spring.</p>"
    )
    assert page(
        f"<h1>Court forbids ticked boxes</h1><article>{about}</article>",
        title="Court forbids ticked boxes",
    ).is_article


@pytest.mark.parametrize(
    "title",
    [
        "404 - Không tìm thấy trang",
        "Trang không tồn tại",
        "Lỗi 404",
        "Page not found",
        "Seite nicht gefunden",
        "Página no encontrada",
    ],
)
def test_a_page_that_says_that_it_is_missing(title: str) -> None:
    sorry = "<p>Trang bạn tìm có thể đã được gỡ, đổi tên hoặc tạm thời không truy cập được. Mời bạn quay lại trang chủ hoặc tìm kiếm nội dung khác.</p>"
    found = page(f"<h1>{title}</h1><main>{sorry}</main>", title=title)
    assert (found.reason, found.is_article) == ("missing", False)


def test_an_article_on_a_missing_page_of_history_is_one() -> None:
    title = "404 ngày trên biển của hai ngư dân miền Trung"
    assert page(f"<h1>{title}</h1><article>{text(8)}</article>", title=title).is_article


# ---------------------------------------------------------------- videos
PLAYER = "<div class=player><video src=a.mp4></video></div>"
LINES = (
    "<div class=time>15/08/2026 07:30</div><div class=cat>Video</div><div class=by>Minh Anh</div>"
    "<ul class=x><li>cầu mới</li><li>thông xe</li><li>giao thông</li><li>thành phố</li></ul>"
)


@pytest.mark.parametrize(
    "url", ["https://www.example.vn/video/cau-moi-1.htm", "https://video.example.vn/cau-moi-1.htm"]
)
def test_a_film_with_a_sentence_is_a_video_whatever_its_data_say(url: str) -> None:
    found = page(f"<h1>{HEAD}</h1>{PLAYER}<p>{SAPO}</p>{LINES}", ARTICLE_LD, url, True)
    assert (found.reason, found.is_article) == ("video", False)


def test_a_film_with_a_whole_article_below_is_an_article() -> None:
    found = page(
        f"<h1>{HEAD}</h1>{PLAYER}<article>{text(8)}</article>",
        ARTICLE_LD,
        "https://www.example.vn/video/cau-1.htm",
    )
    assert found.is_article


def test_an_article_with_a_film_in_it_is_an_article() -> None:
    video = '<script type="application/ld+json">{"@type":"VideoObject","name":"Clip"}</script>'
    found = page(
        f"<h1>{HEAD}</h1><article><p>{SAPO}</p>{PLAYER}{text(2)}</article>", ARTICLE_LD + video
    )
    assert found.is_article


# ---------------------------------------------------------------- stubs
def test_a_paid_article_s_first_lines_are_a_stub() -> None:
    paid = ARTICLE_LD.replace('"@type"', '"isAccessibleForFree":false,"@type"')
    found = page(
        f"<h1>{HEAD}</h1><article>{text(2)}</article><div class=paywall>Đăng ký để đọc tiếp</div>",
        paid,
    )
    assert found.reason == "stub"


def test_a_short_report_that_is_free_is_an_article() -> None:
    assert page(f"<h1>{HEAD}</h1><article>{text(2)}</article>", ARTICLE_LD).is_article


# ---------------------------------------------------------------- listings at an article's address
def teasers(count: int) -> str:
    return "".join(
        f"<div class=t><h3><a href=/tin-{n}.htm>Tiêu đề của một bài báo khác số {n} trong ngày</a></h3></div>"
        for n in range(count)
    )


def test_the_front_page_at_the_address_of_a_lost_article_is_a_listing() -> None:
    front = '<meta property="og:title" content="Báo Ví Dụ - Tin tức trong ngày"><meta property="og:type" content="website">'
    heads = "".join(
        f"<div><p>Mô tả của bài báo số {n}, một câu dài vừa phải nói về chuyện đã xảy ra hôm nay.</p></div>"
        for n in range(9)
    )
    found = page(
        teasers(30) + heads, front, is_article=True, title="Báo Ví Dụ - Tin tức trong ngày"
    )
    assert (found.reason, found.is_article) == ("listing", False)


def test_an_article_with_many_teasers_below_is_an_article() -> None:
    found = page(
        f"<h1>{HEAD}</h1><span class=time>15/08/2026 07:30</span><article>{text(6)}</article>{teasers(40)}",
        is_article=True,
    )
    assert found.is_article


# ---------------------------------------------------------------- articles in unusual shapes
def kept(found: Extraction) -> list[str]:
    return (found.content.value or "").split("\n\n")


def test_a_live_report_is_its_entries_in_order() -> None:
    entries = "".join(
        f"<div class=live-item id='https://www.example.vn/live/share-{n}'><div class=live-time>0{n}:15</div>"
        f"<div class=live-text><p>Lúc này, đoàn xe thứ {n} đã đi qua cầu trong tiếng vỗ tay của người dân hai bên đường.</p></div></div>"
        for n in range(8)
    )
    found = kept(
        page(f"<h1>{HEAD}</h1><p class=sapo>{SAPO}</p><div class=live>{entries}</div>", ARTICLE_LD)
    )
    assert found[0] == SAPO
    assert [p for p in found if p.startswith("Lúc này")] == [
        f"Lúc này, đoàn xe thứ {n} đã đi qua cầu trong tiếng vỗ tay của người dân hai bên đường."
        for n in range(8)
    ]


def test_an_interview_keeps_questions_and_answers() -> None:
    pairs = "".join(
        f"<p><strong>Thưa ông, vì sao việc thứ {n} kéo dài như vậy?</strong></p>"
        f"<p>Việc thứ {n} phải chờ mặt bằng, chờ vốn và chờ mùa nước xuống, nên chậm hơn kế hoạch gần một năm.</p>"
        for n in range(5)
    )
    found = kept(
        page(f"<h1>{HEAD}</h1><p class=sapo>{SAPO}</p><div class=body>{pairs}</div>", ARTICLE_LD)
    )
    assert sum(p.startswith("Thưa ông") for p in found) == 5
    assert sum(p.startswith("Việc thứ") for p in found) == 5


def test_a_magazine_of_columns_is_read_across_all_of_them() -> None:
    columns = "".join(
        f"<section class='emag-row'><div class='col-{n % 2}'>{text(2, 2 * n)}</div></section>"
        for n in range(6)
    )
    found = page(
        f"<div class=emag-cover><h1>{HEAD}</h1></div><p class=sapo>{SAPO}</p><div class=e-magazine>{columns}</div>",
        ARTICLE_LD,
    )
    assert [p.split()[1] for p in kept(found) if p.startswith("Đoạn")] == [
        str(n) for n in range(12)
    ]


def test_a_photo_essay_without_text_is_no_empty_article() -> None:
    """Captions are its text where there is nothing else; else it is refused, never
    stored with its menu."""
    pictures = "".join(
        f"<figure><img src={n}.jpg><figcaption>Ảnh {n}: người dân đứng dọc hai bên bờ sông từ sáng sớm để xem lễ thông xe.</figcaption></figure>"
        for n in range(6)
    )
    found = page(
        f"<h1>{HEAD}</h1><p class=sapo>{SAPO}</p><div class=photo>{pictures}</div>", ARTICLE_LD
    )
    words = kept(found)
    assert found.reason in ("", "stub")
    assert all(p == SAPO or p.startswith("Ảnh ") for p in words), words


# ---------------------------------------------------------------- lists and pages that say that they are articles
VENDOR = (
    '<meta property="og:type" content="article">'
    '<meta property="article:published_time" content="2026-08-15T07:30:00+07:00">'
)
MENU = (
    '<nav><a href="/">Trang chủ</a><a href="/tin-tuc-giai-tri-showbiz.html">Giải trí</a>'
    '<a href="/gioi-thieu">Giới thiệu</a></nav>'
)


def teaser(n: int, lead: str = SAPO) -> str:
    name = f"Tin thứ {n} kể về cây cầu mới qua sông và người dân"
    return (
        f'<div class="item"><a href="/tin-thu-{n}-qua-song-{n}.html"><img alt=""></a>'
        f'<h3><a href="/tin-thu-{n}-qua-song-{n}.html">{name}</a></h3><p>{lead} Đó là tin số {n}.</p><time>15/08/2026 07:{n:02d}</time></div>'
    )


def teasers_of(count: int) -> str:
    return "".join(teaser(n) for n in range(10, 10 + count))


@pytest.mark.parametrize(
    "head", [VENDOR, ARTICLE_LD, VENDOR + ARTICLE_LD], ids=["og", "ld", "both"]
)
@pytest.mark.parametrize("is_article", [True, None])
def test_teasers_and_no_text_of_its_own_are_a_list_whatever_it_states(
    head: str, is_article: bool | None
) -> None:
    body = f"<main><h1>Giải trí</h1><div>{teasers_of(12)}</div></main>"
    found = page(
        body, head, "https://www.example.vn/tin-tuc-giai-tri-showbiz-123456.html", is_article
    )
    assert (found.reason, found.is_article) == ("listing", False)


@pytest.mark.parametrize("paragraphs", [2, 12])
@pytest.mark.parametrize("head", ["", VENDOR, ARTICLE_LD])
def test_an_article_beside_many_teasers_is_one(head: str, paragraphs: int) -> None:
    aside = f"<aside><h4>Đọc nhiều</h4>{teasers_of(20)}</aside>"
    body = f"{MENU}<main><h1>{HEAD}</h1><time>15/08/2026 07:30</time><article>{text(paragraphs)}</article>{aside}</main>"
    assert page(body, head, URL, True).is_article


def test_an_article_whose_paragraphs_are_full_of_links_is_one() -> None:
    linked = "".join(
        f'<p>Theo báo cáo số {n} thì <a href="/bao-cao-so-{n}-cua-thanh-pho.html">việc thi công cây cầu mới qua sông đã xong</a> '
        f"từ tháng {n}, và người dân hai bên bờ sông đã chờ đợi điều đó rất lâu.</p>"
        for n in range(1, 12)
    )
    assert page(f"<h1>{HEAD}</h1><article>{linked}</article>", VENDOR).is_article


def asked_to_show(body: str, head: str, url: str) -> Extraction:
    """A page whose address is no article's and that nobody asked for."""
    html = f"<html lang=vi><head><title>{HEAD}</title>{head}</head><body>{body}</body></html>"
    return extract(Document(html.encode(), url), PageContext(language="vi", needs_evidence=True))


ABOUT = "https://www.example.vn/gioi-thieu"


@pytest.mark.parametrize(
    "head",
    [
        '<meta property="og:type" content="article">',
        '<meta name="page-type" content="article">',
        '<script type="application/ld+json">{"@type":"NewsArticle","headline":"Giới thiệu"}</script>',
        '<meta property="og:type" content="article"><meta property="article:modified_time" content="2026-08-15T07:30:00+07:00">',
    ],
)
def test_a_vendor_s_tag_alone_is_no_evidence(head: str) -> None:
    found = asked_to_show(
        f"<main><h1>Giới thiệu tòa soạn của chúng tôi</h1>{text(6)}</main>", head, ABOUT
    )
    assert (found.reason, found.is_article) == ("page", False)


def test_a_few_teasers_alone_are_a_list_whatever_it_states() -> None:
    url = "https://www.example.vn/tu-khoa/cau-qua-song"
    tag = f"<main><h1>Chủ đề</h1>{teasers_of(4)}</main>"
    assert asked_to_show(tag, ARTICLE_LD, url).reason == "listing"
    beside = f"<main><h1>{HEAD}</h1><article>{text(6)}</article>{teasers_of(4)}</main>"
    assert asked_to_show(beside, ARTICLE_LD, url).is_article


def test_what_the_page_s_own_menu_names_is_no_article_whatever_it_states() -> None:
    body = f"{MENU}<main><h1>Giới thiệu tòa soạn của chúng tôi</h1>{text(6)}</main>"
    assert asked_to_show(body, VENDOR + ARTICLE_LD, ABOUT).reason == "page"
    section = "https://www.example.vn/tin-tuc-giai-tri-showbiz.html"
    intro = f"<main><h1>Giải trí</h1>{text(3)}{teasers_of(9)}</main>"
    assert asked_to_show(MENU + intro, VENDOR + ARTICLE_LD, section).reason == "listing"


@pytest.mark.parametrize(
    "head",
    [
        VENDOR,
        ARTICLE_LD,
        '<meta property="og:type" content="article"><meta name="pubdate" content="2026-08-15T07:30:00+07:00">',
    ],
)
def test_an_article_at_an_address_that_is_none_s_shows_that_it_is_one(head: str) -> None:
    body = f"{MENU}<main><h1>{HEAD}</h1>{text(6)}</main>"
    assert asked_to_show(body, head, "https://www.example.vn/cau-moi").is_article


@pytest.mark.parametrize("name", ["Tiếng Việt", "15/08/2026", "Chép liên kết"])
def test_an_article_s_link_to_itself_under_another_name_takes_nothing_from_it(name: str) -> None:
    """Switches of the language, the day in an entry's header, buttons to share."""
    url = "https://www.example.vn/cau-moi"
    body = f'<header><a href="{url}">{name}</a></header><h1>{HEAD}</h1>{text(6)}<div>{teasers_of(12)}</div>'
    assert asked_to_show(body, VENDOR, url).is_article


PLAIN = "https://www.example.vn/news?id=1"
DATE = "<div>15/08/2026 07:30</div>"


@pytest.mark.parametrize(
    ("date", "head", "is_article"),
    [
        (DATE, "", True),
        ("", "", False),
        ("", '<meta name="date" content="2026-08-15T07:30:00+07:00">', False),
        ("", '<script type="application/ld+json">{"@type":"WebPage","datePublished":"2026-08-15"}</script>', False),
    ],
)  # fmt: skip
def test_a_page_that_states_nothing_is_an_article_by_a_date_that_readers_see(
    date: str, head: str, is_article: bool
) -> None:
    found = asked_to_show(f"<h1>{HEAD}</h1>{date}<div>{text(6)}</div>", head, PLAIN)
    assert (found.is_article, found.reason) == (is_article, "" if is_article else "page")
    in_menu = f'<nav><a href="{PLAIN}">{HEAD[:20]}</a></nav>'
    body = f"{in_menu}<h1>{HEAD}</h1>{date}<div>{text(6)}</div>"
    assert asked_to_show(body, head, PLAIN).reason == "page", "its menu names it"


def test_a_page_without_a_date_is_one_where_others_of_its_shape_are() -> None:
    context = PageContext(language="vi", needs_evidence=True, others_are_articles=True)

    def read(body: str) -> Extraction:
        html = f"<html lang=vi><head><title>{HEAD}</title></head><body>{body}</body></html>"
        return extract(Document(html.encode(), PLAIN), context)

    assert read(f"<h1>{HEAD}</h1><div>{text(6)}</div>").is_article
    assert not read(f"<h1>{HEAD}</h1><div>{text(1)}</div>").is_article, "too short"
    assert not read(f"<div>{text(6)}</div>").is_article, "no headline"
    assert read(f"<h1>Chủ đề</h1><div>{teasers_of(12)}</div>").reason == "listing"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_what_a_page_claims_is_read_whatever_its_encoding(encoding: str) -> None:
    for claim, is_claimed in (('<meta property="og:type" content="article">', True), ("", False)):
        html = f"<html><head>{claim}</head><body><h1>{HEAD}</h1></body></html>"
        doc = Document(html.encode(encoding), PLAIN, f"text/html; charset={encoding}")
        assert claims_article(doc) is is_claimed


@pytest.mark.parametrize("tag", ["p", "div", "td", "section"])
def test_a_text_is_one_whatever_its_paragraphs_are_set_in(tag: str) -> None:
    paragraphs = "".join(f"<{tag}>{n} {HEAD} {HEAD}.</{tag}>" for n in range(8))
    body = f"<table><tr>{paragraphs}</tr></table>" if tag == "td" else f"<div>{paragraphs}</div>"
    doc = Document(f"<html><body><h1>{HEAD}</h1>{body}</body></html>".encode(), PLAIN)
    assert form(doc) == "text"
    lists = Document(f"<html><body>{teasers_of(9)}</body></html>".encode(), PLAIN)
    assert form(lists) == "list"
