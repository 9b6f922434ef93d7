"""Where a reader of many pages stands: how the query was settled, and the place in it, as text.

The plan goes along: on the next page as many words are found as on the first, where the ladder
might settle otherwise by then. Nothing here is secret or trusted: a cursor that somebody makes up
is one more way to ask.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import orjson

from newscrawler.store import query_language
from newscrawler.store.base import QueryError
from newscrawler.store.query_language import Plan

#: Characters of a cursor, and bytes of what is inside.
MOST, _INSIDE = 8_000, 200_000
_NOT_OURS = "cursor: not one of this search; begin again without it"
_TYPES: dict[str, Any] = {
    name: kind
    for name, kind in vars(query_language).items()
    if isinstance(kind, type) and is_dataclass(kind) and name != "Query"
}


def written(store: str, plan: Plan, place: list[Any], total: int) -> str:
    """``store`` names the kind of store that reads it."""
    plain = orjson.dumps([store, _plain(plan), place, total])
    return base64.urlsafe_b64encode(zlib.compress(plain)).decode().rstrip("=")


def read(store: str, text: str) -> tuple[Plan, list[Any], int]:
    """Raises QueryError."""
    try:
        if len(text) > MOST:
            raise ValueError
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        inflater = zlib.decompressobj()
        plain = inflater.decompress(packed, _INSIDE)
        of, plan, place, total = orjson.loads(plain)
        made = _made(plan)
        if of != store or not isinstance(made, Plan):
            raise ValueError
        return made, list(place), int(total)
    except (ValueError, TypeError, KeyError, binascii.Error, zlib.error, RecursionError) as exc:
        raise QueryError(_NOT_OURS) from exc


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        values = {f.name: getattr(value, f.name) for f in fields(value)}
        return {"": type(value).__name__, **{k: _plain(v) for k, v in values.items()}}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return {"at": value.isoformat()} if isinstance(value, datetime) else value


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_made(one) for one in value)
    if not isinstance(value, dict):
        return value
    if "at" in value:
        return datetime.fromisoformat(value["at"])
    kind = _TYPES[value[""]]
    return kind(**{name: _made(one) for name, one in value.items() if name})
