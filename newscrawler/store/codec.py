"""An article as bytes and back, what counts as a change, and the times that order articles. Pure."""

from __future__ import annotations

import zlib
from dataclasses import fields, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import orjson
from isal import isal_zlib

from newscrawler.items import Article
from newscrawler.store.fold import nfc

#: Set by the store, so not part of what is stored of an article.
_STORES_OWN = ("version", "cluster", "gone")
_KEPT = tuple(f.name for f in fields(Article) if f.name not in _STORES_OWN)
_TIMES = ("published", "modified", "discovered", "fetched")
_FIRST_MS, _LAST_MS = 0, 7_258_118_400_000  # 1970 .. 2200


def cleaned(article: Article) -> Article:
    """The same article in the form that is stored: NFC (offsets of highlights need it), aware times."""
    times = {name: _aware(getattr(article, name)) for name in _TIMES}
    return replace(
        article,
        title=nfc(article.title or ""),
        content=nfc(article.content or ""),
        summary=nfc(article.summary) if article.summary else article.summary,
        section=nfc(article.section) if article.section else article.section,
        authors=[nfc(a) for a in article.authors],
        credits=[nfc(a) for a in article.credits],
        **times,  # type: ignore[arg-type]
    )


def refusal(article: Article) -> str:
    """Why no store can take the article; "" when it can."""
    if not article.id or not article.url or not article.site:
        return "no id, url or site"
    if not article.title.strip() and not article.content.strip():
        return "neither title nor content"
    return ""


def digest(article: Article) -> bytes:
    """16 bytes over the fields whose change makes a new version: title, content, published, authors.

    Not the credits: who re-labels an agency has not changed the article, and articles stored before there were
    credits keep their digest. They come along with the next change, as summary and section do.
    """
    values = (article.title, article.content, ms(article.published), article.authors)
    return blake2b(orjson.dumps(values), digest_size=16).digest()


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


def pack(article: Article) -> bytes:
    return isal_zlib.compress(orjson.dumps(to_dict(article)), 1)  # a quarter of zlib's price, the same format


def unpack(data: bytes, *, version: int, cluster: str | None, gone: bool) -> Article:
    return from_dict(orjson.loads(zlib.decompress(data)), version=version, cluster=cluster, gone=gone)


def ms(when: datetime | None) -> int | None:
    return None if when is None else int(when.timestamp() * 1000)


def order_ms(article: Article, now_ms: int) -> int:
    """The time an article is sorted and filtered by: published, else when it was seen. 1970 to 2200."""
    at = ms(article.published or article.discovered or article.fetched)
    return min(max(now_ms if at is None else at, _FIRST_MS), _LAST_MS)


def _aware(when: datetime | None) -> datetime | None:
    return when.replace(tzinfo=UTC) if when is not None and when.tzinfo is None else when
