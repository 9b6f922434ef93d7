"""What goes from process to process arrives as it was."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

from newscrawler.crawl.parse_process import Html, Task
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.extract import Extraction
from newscrawler.items import Article, FieldValue, Kind
from newscrawler.store.base import PutResult

MOMENT = datetime(2026, 7, 1, 8, 30, tzinfo=UTC)


def test_a_copy_is_equal_and_its_own() -> None:
    extraction = Extraction(
        title=FieldValue("Mưa lớn ở Huế", "og", 0.9),
        published=FieldValue(MOMENT, "time"),
        disagreements=["title"],
    )
    for thing in (
        extraction,
        Html(frozenset({"noarchive"}), "https://a.vn/", ["1.html"], 2, extraction),
        Task(
            b"<p>",
            "https://a.vn/1",
            Kind.ARTICLE,
            context=PageContext(fetched=MOMENT, hint={"title": "x"}),
        ),
        Article(
            "00" * 16,
            "https://a.vn/1",
            "a.vn",
            "Tên",
            "Nội dung",
            authors=["An"],
            origins={"title": "og"},
        ),
        PutResult("00" * 16, "duplicate", 2, "11" * 16),
    ):
        copy = pickle.loads(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL))
        assert copy == thing and type(copy) is type(thing)
    copy = pickle.loads(pickle.dumps(extraction))
    copy.disagreements.append("content")
    assert extraction.disagreements == ["title"]
