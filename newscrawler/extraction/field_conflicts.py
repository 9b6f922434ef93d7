"""Fields that another good source on the page contradicts: what was found stays, but it is less
sure, and it is counted. Pure."""

from __future__ import annotations

from datetime import timedelta

from newscrawler.extraction import published, title
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

# A headline that shares fewer words with JSON-LD's or og:title is another one: of stored pages
# with such a conflict of titles 26 % are wrong, of the others 4 % (docs/extraction.md,
# calibration).
_SAME_HEADLINE = 0.8
# How far two places may be apart: zones, and a change of the same day.
_SAME_TIME, _SAME_DAY = timedelta(hours=36), timedelta(hours=48)


def title_conflicts(doc: Document, value: str, site_name: str | None = None) -> bool:
    """JSON-LD or og:title call the page something else."""
    said = title.statements(doc, title.site_names(doc, site_name))
    return any(
        title.agreement(value, v) < _SAME_HEADLINE
        for v, origin, _ in said
        if origin in ("json-ld", "og")
    )


def date_conflicts(doc: Document, context: PageContext, found: FieldValue, day_only: bool) -> bool:
    """Another machine place, the address or the first time element has another day."""
    limit = _SAME_DAY if day_only else _SAME_TIME
    return any(
        abs(stamp.when.value - found.value) > (limit if stamp.when.has_time else _SAME_DAY)
        for stamp in published.good_sources(doc, context)
    )
