"""Selector set files: what is valid, and errors that name file, field and reason. No Redis."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from newscrawler.extraction.safe_css import SelectorError
from newscrawler.extraction.selectors import SelectorSet

#: A set nests seven deep; what is written back must be readable by any JSON reader.
MOST_DEPTH = 30
MADE_BY = ("rule", "llm", "person")


class SetError(ValueError):
    """A set that is not loaded. ``where`` is the file, or the domain of a set that
    came from elsewhere."""

    def __init__(self, where: str, field: str, reason: str) -> None:
        super().__init__(f"{where}: {field}: {reason}")
        self.where = where
        self.field = field
        self.reason = reason


def parse(doc: Any, where: str) -> SelectorSet:
    """:raises SetError: with the first fault"""
    try:
        parsed = SelectorSet.from_dict(doc)
    except SelectorError as exc:
        raise SetError(where, exc.field, exc.reason) from exc
    made_by = parsed.provenance.get("made_by")
    if made_by not in MADE_BY:
        raise SetError(
            where, "provenance.made_by", f"must be one of {', '.join(MADE_BY)}; is {made_by!r}"
        )
    return parsed


def from_json(text: str, where: str, field: str) -> Any:
    """:raises SetError: not JSON, or nested beyond what can be read"""
    try:
        doc = json.loads(text, parse_constant=_no_constant)
        # Half a surrogate pair ("\\ud800") is JSON, but no text that can be stored.
        json.dumps(doc, ensure_ascii=False).encode()
    except RecursionError:
        raise SetError(where, field, "brackets are nested too deeply") from None
    except ValueError as exc:
        raise SetError(where, field, f"not JSON: {exc}") from exc
    if _depth_exceeds(doc, MOST_DEPTH):
        raise SetError(where, field, f"nested more than {MOST_DEPTH} deep")
    return doc


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _depth_exceeds(doc: Any, most: int) -> bool:
    level = [doc]
    for _ in range(most + 1):
        children = [list(x.values()) if isinstance(x, dict) else x for x in level]
        level = [y for x in children if isinstance(x, list) for y in x]
        if not level:
            return False
    return True


def read(text: str, where: str) -> dict[str, Any]:
    """The document of a file's text, checked. :raises SetError:"""
    doc = from_json(text, where, "(the whole file)")
    parse(doc, where)
    expected = Path(where).stem
    if doc["domain"] != expected:
        raise SetError(
            where, "domain", f"is {doc['domain']!r}, but the file's name says {expected!r}"
        )
    return dict(doc)


def read_folder(folder: Path | Traversable) -> Iterator[tuple[str, dict[str, Any] | SetError]]:
    """``(file name, document or error)`` of every ``*.json``, by name. An absent
    folder has none."""
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if not entry.name.endswith(".json") or not entry.is_file():
            continue
        try:
            yield entry.name, read(entry.read_text(encoding="utf-8"), entry.name)
        except SetError as exc:
            yield entry.name, exc
        except (OSError, UnicodeDecodeError) as exc:
            yield entry.name, SetError(entry.name, "(the whole file)", str(exc))


def content_digest(doc: dict[str, Any]) -> str:
    """Equal for two documents that select alike and come from the same hand: version and
    state do not count."""
    body = {k: v for k, v in doc.items() if k not in ("version", "state")}
    return hashlib.sha256(
        json.dumps(body, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()[:32]
