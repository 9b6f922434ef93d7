"""The program's settings for somebody who has no Scrapy project around: defaults, environment, and
what they hand in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.settings import Settings


def project_settings(changes: Mapping[str, Any] | None = None) -> Settings:
    """As `scrapy crawl news -s NAME=value ...` has them.

    :param changes: settings by their names in ``newscrawler/settings.py``
    """
    settings = Settings()
    settings.setmodule("newscrawler.settings", priority="project")
    settings.setdict(dict(changes or {}), priority="cmdline")
    return settings
