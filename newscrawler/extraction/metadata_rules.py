"""Rules of other projects for what their sites state of a page (docs/extending.md). Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from newscrawler.extraction.document import Document
from newscrawler.items import FIELDS, FieldValue

logger = logging.getLogger(__name__)

#: The origin of a value that a rule has stated begins so; the rule's class follows.
ORIGIN = "rule:"
#: A rule may state what a selector set may: the text has rules of its own.
STATED = frozenset(f.name for f in FIELDS if f.by_selector)
_CONFIDENCE = 0.9


class MetadataRule(Protocol):
    """Is pickled with each page that a parse process reads: an object with few values."""

    def read(self, doc: Document) -> Mapping[str, Any]:
        """Values by the names of fields in :data:`STATED`, as they are to be stored: times are
        aware, ``authors`` is a list. A field that the page does not state is left out."""
        ...


def stated(rules: Iterable[MetadataRule], doc: Document) -> dict[str, FieldValue]:
    """What the first rule that knows a field says of it. A rule that fails says nothing."""
    found: dict[str, FieldValue] = {}
    for rule in rules:
        name_of_rule = type(rule).__name__
        try:
            values = rule.read(doc)
        except Exception:
            logger.exception("Metadata rule failed rule=%s url=%s", name_of_rule, doc.url)
            continue
        for name, value in values.items():
            if name not in STATED:
                logger.error(
                    "Metadata rule may not state this rule=%s field=%s", name_of_rule, name
                )
            elif value and name not in found:
                found[name] = FieldValue(value, ORIGIN + name_of_rule, _CONFIDENCE)
    return found
