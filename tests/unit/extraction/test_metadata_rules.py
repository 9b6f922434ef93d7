"""Rules of other projects: what they state stands behind a selector set and before all else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from newscrawler.extraction import metadata_rules
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, PageContext, extract
from newscrawler.extraction.selectors import SelectorSet

TEXT = "".join(
    f"<p>Đoàn công tác số {i} đã kiểm tra tiến độ thi công tuyến đường.</p>" for i in range(9)
)
PAGE = (
    "<html lang=vi><head><title>Tên trang</title><meta property=og:type content=article>"
    '<meta property="article:section" content="Thời sự">'
    '<meta property="article:published_time" content="2026-03-04T10:00:00+07:00"></head>'
    f"<body><h1>Tên trang</h1><div class=box>Trong hộp</div><div class=body>{TEXT}</div></body></html>"
).encode()
WHEN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


class States:
    def __init__(self, **values: Any) -> None:
        self.values = values

    def read(self, doc: Document) -> Mapping[str, Any]:
        return self.values


class Fails:
    def read(self, doc: Document) -> Mapping[str, Any]:
        raise RuntimeError("a fault of this rule")


def read(*rules: metadata_rules.MetadataRule, title_css: str = "") -> Extraction:
    selectors = None
    if title_css:
        fields = {
            "title": [{"css": title_css}],
            "content": {"root": ["div.body"], "exclude": []},
        }
        selectors = SelectorSet.from_dict(
            {
                "domain": "a.example",
                "version": 1,
                "state": "active",
                "variants": [{"template": "article", "fields": fields}],
                "provenance": {"made_by": "person"},
            }
        )
    context = PageContext(language="vi", url_is_article=True, rules=rules)
    return extract(Document(PAGE, "https://a.example/a-1.html"), context, selectors)


def test_a_rule_comes_before_the_pages_metadata_and_its_headline() -> None:
    found = read(States(section="Đời sống", title="Của luật", published=WHEN, authors=["Thu Hà"]))
    values = {name: getattr(found, name) for name in ("section", "title", "published", "authors")}
    assert {name: f.value for name, f in values.items()} == {
        "section": "Đời sống",
        "title": "Của luật",
        "published": WHEN,
        "authors": ["Thu Hà"],
    }
    assert {f.origin for f in values.values()} == {"rule:States"}
    assert found.is_article and "Đoàn công tác số 8" in found.content.value


def test_a_selector_set_comes_before_a_rule() -> None:
    found = read(States(title="Của luật", section="Đời sống"), title_css="div.box")
    assert (found.title.value, found.section.value) == ("Trong hộp", "Đời sống")


def test_the_first_rule_that_knows_a_field_decides() -> None:
    found = read(States(section=""), States(section="Một"), States(section="Hai", title="Của luật"))
    assert (found.section.value, found.title.value) == ("Một", "Của luật")


def test_a_rule_that_fails_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found = read(Fails(), States(title="Của luật"))
    assert (found.title.value, found.section.value) == ("Của luật", "Thời sự")
    assert "rule=Fails url=https://a.example/a-1.html" in caplog.text


@pytest.mark.parametrize("name", ["content", "keywords", "is_article", "nothing"])
def test_other_fields_are_not_a_rules(name: str, caplog: pytest.LogCaptureFixture) -> None:
    before = read()
    found = read(States(**{name: "x"}))
    assert getattr(found, name, None) == getattr(before, name, None)
    assert f"field={name}" in caplog.text
