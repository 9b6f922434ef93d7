"""An article as bytes and back, what counts as a change, and the times that order
articles. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import orjson
from isal import isal_zlib

from newscrawler.items import FIELDS, VERSIONED, Article
from newscrawler.store.fold import nfc

_KEPT = tuple(f.name for f in FIELDS if f.stored)
_TIMES = tuple(f.name for f in FIELDS if f.type == "time")
#: Key of the query language -> the lists that it looks in.
_BY_KEY: dict[str, list[str]] = {}
for _field in FIELDS:
    if _field.key and _field.type == "texts":
        _BY_KEY.setdefault(_field.key, []).append(_field.name)
_FIRST_MS, _LAST_MS = 0, 7_258_118_400_000  # 1970 .. 2200


def cleaned(article: Article) -> Article:
    """The same article in the form that is stored: NFC (offsets of highlights
    need it), aware times."""
    values = {name: to(getattr(article, name)) for name, to in _CLEANED}
    values |= {"title": values["title"] or "", "content": values["content"] or ""}
    return replace(article, **values)


def refusal(article: Article) -> str:
    """Why no store can take the article; "" when it can."""
    if not article.id or not article.url or not article.site:
        return "no id, url or site"
    if not article.title.strip() and not article.content.strip():
        return "neither title nor content"
    return ""


def digest(article: Article) -> bytes:
    """16 bytes over the fields whose change makes a new version (``items.VERSIONED``): title,
    content, published, authors. A field more among them would give every stored article another
    digest, and with it another version.

    The others come along with the next change.
    """
    values = (getattr(article, name) for name in VERSIONED)
    comparable = [ms(value) if isinstance(value, datetime) else value for value in values]
    return blake2b(orjson.dumps(comparable), digest_size=16).digest()


def to_dict(article: Article) -> dict[str, Any]:
    """Plain values for JSON; without what is empty and what the store sets itself."""
    # Not asdict: it copies deeply and costs as much as the compression.
    return {k: v for k in _KEPT if (v := getattr(article, k)) not in (None, [], {}, "")}


def from_dict(plain: dict[str, Any], *, version: int, cluster: str | None, gone: bool) -> Article:
    known = {k: plain[k] for k in _KEPT if k in plain}
    for name in _TIMES:
        if known.get(name):
            known[name] = datetime.fromisoformat(known[name])
    known = {"title": "", "content": "", **known}
    return Article(**known, version=version, cluster=cluster, gone=gone)


def plain(article: Article) -> str:
    """JSON: what other programs can read as well."""
    return orjson.dumps(to_dict(article)).decode()


def packed(data: str) -> bytes:
    """``plain`` in less than half the bytes, for what is seldom read."""
    return isal_zlib.compress(data.encode(), 1)  # a quarter of zlib's price, the same format


def plain_of(data: str | bytes) -> str:
    """Back from ``packed``; ``plain`` is returned as it is."""
    return data if isinstance(data, str) else zlib.decompress(data).decode()


def unpack(data: str | bytes, *, version: int, cluster: str | None, gone: bool) -> Article:
    """From ``plain``, also as UTF-8, or ``packed``."""
    if isinstance(data, bytes) and not data.startswith(b"{"):
        data = zlib.decompress(data)
    fields = orjson.loads(data)
    return from_dict(fields, version=version, cluster=cluster, gone=gone)


def values_of(article: Article, key: str) -> list[str]:
    """The values of the fields that the query language knows by this key."""
    return [value for name in _BY_KEY[key] for value in getattr(article, name)]


def ms(when: datetime | None) -> int | None:
    return None if when is None else int(when.timestamp() * 1000)


def order_ms(article: Article, now_ms: int) -> int:
    """The time an article is sorted and filtered by: published, else when it was
    seen. 1970 to 2200."""
    at = ms(article.published or article.discovered or article.fetched)
    return min(max(now_ms if at is None else at, _FIRST_MS), _LAST_MS)


def _aware(when: datetime | None) -> datetime | None:
    return when.replace(tzinfo=UTC) if when is not None and when.tzinfo is None else when


def _text(text: str | None) -> str | None:
    return nfc(text) if text else text


def _texts(texts: list[str]) -> list[str]:
    return [nfc(text) for text in texts]


_BY_TYPE: dict[str, Callable[[Any], Any]] = {"text": _text, "texts": _texts, "time": _aware}
_CLEANED = tuple((f.name, _BY_TYPE[f.type]) for f in FIELDS if f.type in _BY_TYPE)
