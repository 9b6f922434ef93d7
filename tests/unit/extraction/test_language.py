"""The language of a stored article: stated and borne out by the text, or the text's own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from newscrawler.extraction import language
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, article_values, extract
from newscrawler.extraction.selectors import SelectorSet

#: Title and a paragraph each.
TEXTS = {
    "vi": (
        "Thành phố thông qua phương án xây cầu mới qua sông",
        "Hội đồng thành phố hôm thứ sáu đã thông qua phương án xây dựng cây cầu mới qua sông. Công trình sẽ khởi công vào"
        " mùa xuân năm sau và dự kiến hoàn thành trong hai năm, theo thông tin của văn phòng.",
    ),
    "zh": (
        "市议会批准新建跨河大桥方案",
        "市议会星期五批准了新建跨河大桥的方案。工程将于明年春天开工，预计两年后完工，费用由城市和国家共同承担。"
        "居民多年来一直要求在这里建一座桥，因为最近的桥在十公里以外。",
    ),
    "ja": (
        "市議会が川を渡る新しい橋を承認した",
        "市議会は金曜日に川を渡る新しい橋の建設を承認した。工事は来年の春に始まり、二年後に完成する予定だという。"
        "住民は長年にわたり、この場所に橋を架けるように求めてきた。",
    ),
    "th": (
        "สภาเมืองอนุมัติสะพานใหม่ข้ามแม่น้ำ",
        "สภาเมืองได้อนุมัติการก่อสร้างสะพานใหม่ข้ามแม่น้ำเมื่อวันศุกร์ที่ผ่านมา โดยจะเริ่มงานในฤดูใบไม้ผลิปีหน้า",
    ),
    "ar": (
        "المجلس يوافق على الجسر الجديد فوق النهر",
        "وافق مجلس المدينة يوم الجمعة على بناء جسر جديد فوق النهر، وسيبدأ العمل في ربيع العام المقبل وينتهي بعد عامين.",
    ),
    "ru": (
        "Городской совет одобрил новый мост через реку",
        "Городской совет в пятницу одобрил строительство нового моста через реку. Работы начнутся весной следующего года"
        " и продлятся два года, сообщили в администрации.",
    ),
    "de": (
        "Stadtrat beschließt neue Brücke über den Fluss",
        "Der Stadtrat hat am Freitag den Bau einer neuen Brücke über den Fluss beschlossen. Die Arbeiten beginnen im"
        " Frühjahr und dauern zwei Jahre, wie die Verwaltung mitteilte.",
    ),
    "fr": (
        "Le conseil municipal approuve le nouveau pont",
        "Le conseil municipal a approuvé vendredi la construction d'un nouveau pont sur le fleuve. Les travaux commenceront"
        " au printemps et dureront deux ans, selon les services de la ville.",
    ),
    "es": (
        "El ayuntamiento aprueba el nuevo puente",
        "El ayuntamiento aprobó el viernes la construcción de un nuevo puente sobre el río. Las obras empezarán en la"
        " primavera del próximo año y durarán dos años, según los responsables.",
    ),
    "pt": (
        "A câmara aprova a nova ponte sobre o rio",
        "A câmara municipal aprovou na sexta-feira a construção de uma nova ponte sobre o rio. As obras começam na"
        " primavera do próximo ano e vão durar dois anos, segundo os responsáveis.",
    ),
    "en": (
        "Council approves the new bridge over the river",
        "The city council on Friday approved the construction of a new bridge over the river. Work will begin in the"
        " spring of next year and is expected to take two years, the administration said.",
    ),
}  # fmt: skip
UNMARKED = (
    "Thanh pho thong qua phuong an xay cau moi qua song",
    "Hoi dong thanh pho hom thu sau da thong qua phuong an xay dung cay cau moi qua song. Cong trinh se khoi cong vao"
    " mua xuan nam sau va du kien hoan thanh trong hai nam, theo thong tin cua van phong.",
)
SET = SelectorSet.from_dict(
    {"domain": "example.org", "state": "active", "variants": [{"template": "article", "fields": {
        "title": [{"css": "h1.t"}], "content": {"root": ["div.b"]},
    }}]}
)  # fmt: skip
BY = [pytest.param(SET, id="set"), pytest.param(None, id="generic")]


def read(
    texts: tuple[str, str],
    *,
    attribute: str = "",
    head: str = "",
    site: str | None = None,
    selectors: SelectorSet | None = SET,
) -> Extraction:
    title, text = texts
    paragraphs = "".join(f"<p>{text}</p><p>{text} {n}</p>" for n in range(3))
    page = (
        f"<html{attribute}><head><meta charset=utf-8><title>{title}</title>{head}</head><body><h1 class=t>{title}</h1>"
        f"<div class=b>{paragraphs}</div></body></html>"
    )
    doc = Document(page.encode(), "https://example.org/a/cau-123.html")
    return extract(doc, PageContext(language=site, url_is_article=True), selectors)


@pytest.mark.parametrize("selectors", BY)
@pytest.mark.parametrize("code", TEXTS)
def test_a_page_that_states_nothing_gets_the_language_of_its_text(
    code: str, selectors: SelectorSet | None
) -> None:
    found = read(TEXTS[code], selectors=selectors)
    assert found.is_article
    assert (found.language.value, found.language.origin) == (code, "text")
    stored = article_values(found)
    assert stored["language"] == code
    assert stored["origins"]["language"] == "text"
    assert stored["confidence"]["language"] > 0.9


@pytest.mark.parametrize("stated", ["en", "de", "vi"])
@pytest.mark.parametrize("code", TEXTS)
def test_a_template_s_language_does_not_stand_over_a_text_of_another(
    code: str, stated: str
) -> None:
    found = read(TEXTS[code], attribute=f" lang={stated}")
    assert found.language.value == code
    assert found.language.origin == ("html" if code == stated else "text")


@pytest.mark.parametrize("selectors", BY)
def test_vietnamese_without_diacritics_under_an_english_template(
    selectors: SelectorSet | None,
) -> None:
    found = read(UNMARKED, attribute=" lang=en-US", selectors=selectors)
    assert (found.language.value, found.language.origin) == ("vi", "text")


def test_a_site_s_language_that_the_text_contradicts_is_not_taken() -> None:
    assert read(TEXTS["en"], site="vi").language.value == "en"
    found = read(TEXTS["vi"], site="vi").language
    assert (found.value, found.origin, found.confidence) == ("vi", "site", 0.8)


@pytest.mark.parametrize("code", TEXTS)
def test_what_the_text_bears_out_never_asks_the_model(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    identify = language.identify
    monkeypatch.setattr(language, "identify", lambda text: asked.append(text) or identify(text))
    found = read(TEXTS[code], attribute=f" lang={code}-XX").language
    assert (found.value, found.origin, found.confidence, asked) == (code, "html", 0.8, [])
    assert read(TEXTS[code]).language.value == code
    assert [len(text) <= language.MODEL_CHARS for text in asked] == [True]


@pytest.mark.parametrize(
    ("attribute", "head", "site", "origin"),
    [
        (" lang=vi", "", "en", "html"),
        ("", '<meta property="og:locale" content="vi_VN">', "en", "html"),
        (
            "",
            '<script type="application/ld+json">{"@type": "NewsArticle", "headline": "' + TEXTS["vi"][0]
            + '", "inLanguage": "vi-VN"}</script>',
            "en",
            "json-ld",
        ),
        ("", "", "vi", "site"),
        (" lang=vn", "", None, "html"),  # a country where a language is asked for
    ],
)  # fmt: skip
def test_where_a_language_is_stated(
    attribute: str, head: str, site: str | None, origin: str
) -> None:
    found = read(TEXTS["vi"], attribute=attribute, head=head, site=site).language
    assert (found.value, found.origin) == ("vi", origin)


def test_a_short_text_stays_with_what_is_stated_and_is_less_sure() -> None:
    said = language.FieldValue("vi", "site", 0.8)
    found = language.find("New York Times", "Breaking news today", said)
    assert (found.value, found.origin, found.confidence) == ("vi", "site", 0.5)
    alone = language.find("The council approves it", None, language.FieldValue(None))
    assert (alone.value, alone.origin) == ("en", "text")
    assert 0 < alone.confidence < 0.9


@pytest.mark.parametrize("text", ["", "12 345 – 678", None])
def test_no_letters_decide_nothing(text: str | None) -> None:
    assert language.find("", text, language.FieldValue(None)).value is None
    assert language.find("", text, language.FieldValue("vi", "site", 0.8)).value == "vi"


def test_what_is_no_language_leaves_the_statement_half_as_sure() -> None:
    code = ".st0{fill:#003865;} .st1{fill:#FFFFFF;} .st2{stroke:#003865;} " * 9
    said = language.FieldValue("de", "html", 0.8)
    assert language.find("", code, said) == language.FieldValue("de", "html", 0.5)


def test_languages_alike_do_not_contradict_each_other() -> None:
    text = "Byrådet godkjente fredag byggingen av en ny bro over elven, og arbeidet begynner til våren."
    assert language.identify(text * 3)[0] == "no"
    for stated in ("nb", "nn", "no"):
        said = language.FieldValue(stated, "html", 0.8)
        assert language.find("", text * 3, said) == said


def test_the_model_is_not_loaded_before_a_page_needs_it() -> None:
    code = (
        "import sys; from newscrawler.extraction import language as l;"
        "from newscrawler.items import FieldValue as F;"
        f"l.find('', {TEXTS['vi'][1]!r}, F('vi', 'html', 0.8)); print('py3langid' in sys.modules);"
        f"l.find('', {TEXTS['vi'][1]!r}, F('en', 'html', 0.8)); print('py3langid' in sys.modules, l._model() is l._model())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True", "True"]
