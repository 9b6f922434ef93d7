"""The pages in two languages and three looks: no text of theirs outside the catalogue, choices that
are remembered, dates and numbers as a reader writes them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter

import httpx
import pytest

from newscrawler.api import data, language, text
from newscrawler.fleet.rows import UNREACHABLE
from newscrawler.items import FIELDS
from newscrawler.store.days import FORMS
from newscrawler.store.labels import FACETED
from tests.fixtures_browser import article_id

API = Path(language.__file__).parent
TEMPLATES = sorted((API / "templates").glob("*.html"))
PAGE = {"Accept": "text/html"}
VIETNAMESE = PAGE | {"Accept-Language": "vi-VN,vi;q=0.9,en;q=0.5"}
#: What both languages write alike: names of this program, of forms of files, of keys.
ALIKE = {"newscrawler", "API", "CPU", "CSV", "JSON", "JSON Feed", "RSS", "Atom"}
_ONE = r"""\b(?:t|say)\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')"""
_MANY = r"""\b(?:tn|count)\(\s*[^"']+?,\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)\""""


@pytest.fixture
def client(search_page: str) -> httpx.Client:
    with httpx.Client(base_url=search_page, headers=PAGE) as http:
        yield http


def used() -> set[str]:
    """Every text that the pages ask the catalogue for."""
    found = {field.label for field in (*FIELDS, *FACETED) if field.label}
    for path in (*TEMPLATES, *API.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        found |= {one or other for one, other in re.findall(_ONE, source)}
        found |= {many for _, many in re.findall(_MANY, source)}
    return {one.replace('\\"', '"') for one in found}


def test_no_text_is_missing_in_either_language() -> None:
    asked = used()
    assert len(asked) > 150
    assert sorted(asked - set(language.catalogue())) == []
    assert [english for english, vietnamese in language.catalogue().items() if not vietnamese] == []


def test_no_text_of_the_catalogue_is_left_over() -> None:
    """Those that other parts make are known by what makes them."""
    sources = "".join(
        path.read_text(encoding="utf-8")
        for part in ("api", "store", "fleet")
        for path in (API.parent / part).rglob("*.py")
    )
    sources = re.sub(r'"\s*\n\s*f?"', "", sources)  # texts over several lines
    alone = []
    for english in set(language.catalogue()) - used():
        parts = [part.strip(" ;:,") for part in re.split(r"\{\w+\}", english)]
        if not all(part in sources for part in parts):
            alone.append(english)
    assert alone == []


def test_both_languages_have_the_same_values() -> None:
    for english, vietnamese in language.catalogue().items():
        names = [
            {name for _, name, _, _ in Formatter().parse(one) if name}
            for one in (english, vietnamese)
        ]
        assert names[0] == names[1], english


class Texts(HTMLParser):
    """What a reader of a template sees or hears, its expressions taken out."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[str] = []
        source = re.sub(r"\{#.*?#\}|\{%.*?%\}", " ", source, flags=re.DOTALL)
        self.feed(re.sub(r"\{\{.*?\}\}", " ", source, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        seen = ("aria-label", "placeholder", "title", "alt", "data-name")
        self.found += [value or "" for name, value in attrs if name in seen]

    def handle_data(self, data: str) -> None:
        self.found.append(data)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_text_of_its_own(path: Path) -> None:
    found = [" ".join(one.split()).strip(" –·×←→↗…“”,.:()%") for one in
             Texts(path.read_text(encoding="utf-8")).found]  # fmt: skip
    assert [one for one in found if re.search(r"[^\W\d_]{2}", one) and one not in ALIKE] == []


def test_states_of_sites_and_notes_of_queries_are_known(client: httpx.Client) -> None:
    token = language._look.set(language.Look("vi"))
    try:
        for said in (*UNREACHABLE.values(), "crawling", "waiting for its next visit"):
            assert language.said(said) != said, said
        note = f"after:mai: not a day; write {FORMS}; it is read as words"
        assert language.said(note) == (
            "after:mai: không phải ngày; hãy viết 31/8/2026, 31-8-2026, 2026-08-31, 8/2026 hoặc 2026;"
            " được hiểu là từ"
        )
        assert language.said("OR is read as a word: it has nothing to work on") == (
            "OR được hiểu là từ: không có gì để nó tác động"
        )
    finally:
        language._look.reset(token)
    assert data.QUIET_S == 86_400  # "nothing new for a day"
    html = client.get("/", params={"q": "xăng OR"}, headers=VIETNAMESE).text
    assert "OR được hiểu là từ" in html and "is read as a word" not in html
    refused = client.get("/", params={"after": "<b>mai</b>"}, headers=VIETNAMESE).text
    assert "không phải ngày" in refused and "&lt;b&gt;mai" in refused


@pytest.mark.parametrize(
    "header, chosen",
    [("vi-VN,vi;q=0.9", "vi"), ("en,vi;q=0.8", "en"), ("fr,vi;q=0.3,en;q=0.2", "vi"), ("de", "en"),
     ("", "en"), ("vi;q=x,en;q=0.1", "en"), ("*;q=1", "en"), ("," * 9000, "en")],
)  # fmt: skip
def test_the_language_is_the_browsers_until_it_is_chosen(header: str, chosen: str) -> None:
    assert language.preferred(header) == chosen


def test_a_choice_is_remembered_and_leads_back(client: httpx.Client) -> None:
    form = {"language": "vi", "theme": "dark", "next": "/?q=x%C4%83ng&sort=date"}
    answer = client.post("/look", data=form)
    assert answer.status_code == 303 and answer.headers["location"] == form["next"]
    page = client.get("/?q=x%C4%83ng")
    assert '<html lang="vi" data-theme="dark">' in page.text and "Phù hợp nhất" in page.text
    assert {"Cookie", "Accept-Language"} <= set(re.split(r",\s*", page.headers["vary"]))
    client.post("/look", data={"language": "xx", "theme": "pink"})
    assert '<html lang="vi" data-theme="dark">' in client.get("/sites").text
    client.post("/look", data={"language": "en"})
    assert '<html lang="en" data-theme="dark">' in client.get("/sites").text


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example/", "/\\evil.example"])
def test_a_choice_leads_nowhere_else(client: httpx.Client, target: str) -> None:
    answer = client.post("/look", data={"theme": "dark", "next": target})
    assert answer.headers["location"] == "/"


def test_a_choice_from_another_site_is_refused(client: httpx.Client) -> None:
    answer = client.post("/look", data={"theme": "dark"}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403 and "set-cookie" not in answer.headers


def test_what_a_form_leads_back_to_is_escaped(client: httpx.Client) -> None:
    html = client.get('/?q="><svg onload=alert(1)>').text
    assert "<svg onload" not in html


@pytest.mark.parametrize(
    "path", ["/", "/?q=x%C4%83ng", "/sites", "/frontier", "/docs", "/trends", "/attention?q=tin",
             "/article/" + article_id("edited"), "/nowhere", "/?q=%22zzzz%22"],
)  # fmt: skip
def test_every_page_is_there_in_vietnamese(client: httpx.Client, path: str) -> None:
    html = client.get(path, headers=VIETNAMESE).text
    assert '<html lang="vi"' in html and "Đến nội dung" in html
    shown = re.sub(
        r"<code>.*?</code>|<section class=\"route\" lang=\"en\">.*?</section>",
        " ",
        html,
        flags=re.S,
    )
    for english in ("Search", "Nothing found", "Latest", "Published", "Remove", "Newest", "Share"):
        assert not re.search(rf">\s*{english}\b", shown), english


def test_days_and_numbers_are_written_as_their_readers_do() -> None:
    day = date(2026, 11, 21)
    now = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
    assert language.day_text(day, weekday=True) == "Sat 21 Nov 2026"
    assert (text.span_text(906), text.seconds_text(12.4)) == ("15.1 min", "12 s")
    assert language.thousands(1234567) == "1,234,567" and language.thousands(None) == "–"
    token = language._look.set(language.Look("vi"))
    try:
        assert language.day_text(day, weekday=True) == "Th 7 21/11/2026"
        assert language.thousands(1234.5) == "1.234,5"
        assert language.percent(0.985) == "98,5 %"
        assert [text.span_text(s) for s in (None, 0, 906, 7_560)] == [
            "",
            "0 giây",
            "15,1 phút",
            "2,1 giờ",
        ]
        assert (text.seconds_text(4.5), text.size_text(1_500)) == ("4,5 giây", "1,5 kB")
        assert text.ago(now - timedelta(days=1), now) == "1 ngày trước"
        assert text.moment(now, text.zone_of("+07:00")) == "21/11/2026, 12:00 (+07:00)"
        assert language.count(1, "{n} article", "{n} articles") == "1 bài báo"
        assert language.say("Page {n}", n="<b>") == "Trang &lt;b&gt;"
    finally:
        language._look.reset(token)
    assert language.count(1, "{n} article", "{n} articles") == "1 article"
