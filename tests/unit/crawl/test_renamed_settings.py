"""Settings under their old names (newscrawler.crawl.renamed_settings)."""

from __future__ import annotations

import logging

import pytest
from scrapy.settings import Settings

from newscrawler import settings as defaults
from newscrawler.crawl import renamed_settings
from newscrawler.crawl.model_extraction import limits_of

NEW, OLD = "LLM_EXTRACTION_PAGES_PER_DAY", "LLM_DIRECT_PER_DAY"


def settings(**said: object) -> Settings:
    """As a crawl has them; ``cmdline_X`` is said on the command line, ``X`` in a settings
    module."""
    made = Settings()
    made.setmodule("newscrawler.settings", priority="project")
    for name, value in said.items():
        is_typed = name.startswith("cmdline_")
        made.set(name.removeprefix("cmdline_"), value, "cmdline" if is_typed else "project")
    return made


@pytest.mark.parametrize(
    ("said", "pages"),
    [
        ({}, 50),
        ({OLD: 7}, 7),
        ({f"cmdline_{OLD}": "7"}, 7),
        ({NEW: 9}, 9),
        ({NEW: 9, OLD: 7}, 9),
        ({NEW: 9, f"cmdline_{OLD}": "7"}, 7),
        ({f"cmdline_{NEW}": "50", OLD: 7}, 50),
        ({OLD: 0}, 0),
    ],
)
def test_the_old_name_of_a_setting_is_read(
    said: dict[str, object], pages: int, caplog: pytest.LogCaptureFixture
) -> None:
    made = settings(**said)
    assert limits_of(made).pages_per_day == pages
    assert limits_of(made).pages_per_domain_per_day == 2
    with caplog.at_level(logging.WARNING):
        renamed_settings.announce(made)
    is_old = any(OLD in name for name in said)
    assert [OLD in r.getMessage() and NEW in r.getMessage() for r in caplog.records] == [
        True
    ] * is_old


def test_an_old_name_with_a_wrong_value_is_named() -> None:
    with pytest.raises(ValueError, match=OLD):
        limits_of(settings(**{OLD: "many"}))


def test_no_old_name_is_a_setting_of_today() -> None:
    assert renamed_settings.OLD_NAMES
    for new, old in renamed_settings.OLD_NAMES.items():
        assert hasattr(defaults, new) and not hasattr(defaults, old)
