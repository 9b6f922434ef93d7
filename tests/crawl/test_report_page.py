"""The report of a day in a real Chromium, on a wide and a narrow screen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from newscrawler.api.day_report import html
from tests.crawl.small import Queue
from tests.unit.crawl.test_day_report import make_day

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    queue = Queue(folder / "queue")
    try:
        report = asyncio.run(make_day(queue.url, folder))
    finally:
        queue.close()
    file = folder / "report.html"
    file.write_text(html(report), encoding="utf-8")
    return file


def test_the_page_fits_its_window_and_loads_nothing(report_file: Path, chromium: Any) -> None:
    for width, scheme in ((1200, "light"), (390, "light"), (1200, "dark"), (390, "dark")):
        page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        asked: list[str] = []
        page.on("request", lambda request, seen=asked: seen.append(request.url))
        page.goto(report_file.as_uri())
        assert asked == [report_file.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, scheme)
        bars = page.evaluate(
            "[...document.querySelectorAll('figure rect')]"
            ".filter(bar => bar.getBoundingClientRect().height > 1).length"
        )
        assert bars > 20, "bars are seen"
        page.screenshot(path=report_file.with_name(f"{width}-{scheme}.png"), full_page=True)
        page.close()
