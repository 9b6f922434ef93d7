"""What is known of a page beside its bytes, from the site that it is on."""

from __future__ import annotations

from typing import Any

from newscrawler.discovery.sites import Site
from newscrawler.extraction.context import PageContext


def context_of(site: Site | None, **facts: Any) -> PageContext:
    """:param site: None: no configured site has the page's host
    :param facts: other attributes of the context"""
    if site is None:
        return PageContext(**facts)
    return PageContext(site_name=site.name, language=site.language, zone=site.zone, **facts)
