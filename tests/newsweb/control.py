"""The control address: truth, hits, clock, and what an editor would do.
Loopback, a port of its own."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from tests.newsweb.bench import BenchApp
from tests.newsweb.dates import iso
from tests.newsweb.wire import Hits
from tests.newsweb.world import Story, WebSite, World


class Control:
    """Handlers over a world (or a benchmark, which has truth, hits and stats only)."""

    def __init__(
        self,
        hits: Hits,
        world: World | None = None,
        bench: BenchApp | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        self.hits, self.world, self.bench, self.about = hits, world, bench, about or {}
        self.stopping = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes(
            [
                web.get("/", self.get_about),
                web.get("/_truth", self.get_truth),
                web.get("/_hits", self.get_hits),
                web.get("/_stats", self.get_stats),
                web.get("/_clock", self.get_clock),
                web.post("/_clock", self.set_clock),
                web.post("/_publish", self.publish),
                web.post("/_edit", self.edit),
                web.post("/_layout", self.relayout),
                web.post("/_redirect", self.redirect),
                web.post("/_stop", self.stop),
            ]
        )
        return app

    def truth_lines(self) -> Iterator[str]:
        rows = (
            self.world.truth()
            if self.world
            else bench_truth(self.bench)
            if self.bench
            else iter(())
        )
        for row in rows:
            yield json.dumps(row, ensure_ascii=False)

    async def get_about(self, _request: web.Request) -> web.Response:
        return web.json_response(self.about)

    async def get_truth(self, _request: web.Request) -> web.Response:
        return web.Response(
            text="".join(line + "\n" for line in self.truth_lines()),
            content_type="application/x-ndjson",
        )

    async def get_hits(self, request: web.Request) -> web.Response:
        rows = self.hits.rows[int(request.query.get("from", "0")) :]
        return web.Response(
            text="".join(Hits.line(r) + "\n" for r in rows), content_type="application/x-ndjson"
        )

    async def get_stats(self, _request: web.Request) -> web.Response:
        rows = self.hits.rows
        return web.json_response(
            {
                "hits": len(rows),
                "bytes": sum(r[5] for r in rows),
                "by_status": {str(k): v for k, v in sorted(Counter(r[4] for r in rows).items())},
                "by_host": dict(Counter(r[1] for r in rows).most_common()),
                "stories": sum(len(s.stories) for s in self.world.sites) if self.world else 0,
                "now": self.world.clock.now() if self.world else 0,
            }
        )

    def _clock(self) -> web.Response:
        if self.world is None:
            raise web.HTTPNotFound(text="this layout has no clock")
        clock = self.world.clock
        return web.json_response(
            {
                "factor": clock.factor,
                "offset_s": clock.offset_s,
                "offset_ms": round(clock.offset_s * 1000),
                "now": clock.now(),
                "now_iso": iso(clock.now()),
            }
        )

    async def get_clock(self, _request: web.Request) -> web.Response:
        return self._clock()

    async def set_clock(self, request: web.Request) -> web.Response:
        """``factor`` and, if wanted, ``now`` (simulated seconds), ``advance_s`` or ``offset_s``."""
        if self.world is not None:
            clock, body = self.world.clock, await request.json()
            if "offset_s" in body:
                clock.factor, clock.offset_s = (
                    float(body.get("factor", clock.factor)),
                    float(body["offset_s"]),
                )
            else:
                now = (
                    float(body["now"])
                    if "now" in body
                    else clock.now() + float(body.get("advance_s", 0.0))
                )
                clock.set(float(body.get("factor", clock.factor)), now)
        return self._clock()

    def _site(self, name: str | None) -> WebSite:
        assert self.world is not None
        for site in self.world.sites:
            if name in (None, site.id, site.key, site.host):
                return site
        raise web.HTTPNotFound(text=f"no site {name!r}")

    def _story(self, body: dict[str, Any]) -> Story:
        assert self.world is not None
        url = str(body.get("url", ""))
        for site in self.world.sites:
            for story in site.stories:
                if story.url == url:
                    return story
        raise web.HTTPNotFound(text=f"no story at {url!r}")

    async def publish(self, request: web.Request) -> web.Response:
        """``site`` (id, template key or host; the first by default), ``count``, ``special``,
        ``channels``; answers with the new stories."""
        if self.world is None:
            raise web.HTTPNotFound(text="this layout has no stories")
        body = await _body(request)
        site = self._site(body.get("site"))
        channels = tuple(body.get("channels") or ("list", "feed", "sitemap"))
        made = [
            self.world.new_story(
                site,
                self.world.clock.now(),
                special=str(body.get("special", "")),
                channels=channels,
            )
            for _ in range(int(body.get("count", 1)))
        ]
        return web.json_response([s.truth() for s in made])

    async def edit(self, request: web.Request) -> web.Response:
        """``url`` and ``kind`` (digit | title | paragraph): the story changes now."""
        if self.world is None:
            raise web.HTTPNotFound(text="this layout has no stories")
        body = await _body(request)
        story = self._story(body)
        story.edits.append((self.world.clock.now(), str(body.get("kind", "digit"))))
        story.edits.sort()
        return web.json_response(story.truth())

    async def relayout(self, request: web.Request) -> web.Response:
        """``site`` and, if wanted, ``at`` (simulated seconds; now by default, null = the
        old layout comes back)."""
        if self.world is None:
            raise web.HTTPNotFound(text="this layout has no stories")
        body = await _body(request)
        site = self._site(body.get("site"))
        at = body.get("at", self.world.clock.now())
        site.relayout_at = None if at is None else float(at)
        return web.json_response(site.truth())

    async def redirect(self, request: web.Request) -> web.Response:
        """``site``, ``path``, ``to``: the path sends for ever to another one, from now on."""
        if self.world is None:
            raise web.HTTPNotFound(text="this layout has no stories")
        body = await _body(request)
        site = self._site(body.get("site"))
        site.redirects[str(body["path"])] = str(body["to"])
        return web.json_response(site.truth())

    async def stop(self, _request: web.Request) -> web.Response:
        self.stopping.set()
        return web.json_response({"stopping": True})


async def _body(request: web.Request) -> dict[str, Any]:
    data = await request.json() if request.can_read_body else {}
    if not isinstance(data, dict):
        raise web.HTTPBadRequest(text="a JSON object is expected")
    return data


def bench_truth(app: BenchApp) -> Iterator[dict[str, Any]]:
    for host in app.hosts:
        yield {
            "type": "site",
            "site": host,
            "host": host,
            "hosts": [host],
            "delay_s": 0.0,
            "robots": "404",
            "disallow": [],
            "challenge": False,
        }
    for host in app.hosts:
        for number in range(1, app.pages):
            author, paragraphs = app.content(host, number)
            yield {
                "type": "article",
                "url": f"http://{host}{app.paths[host][number]}",
                "site": host,
                "host": host,
                "id": str(100_000 + number),
                "title": app.titles[host][number],
                "content": "\n\n".join(paragraphs),
                "authors": [author],
                "published": iso(app.published(number)),
                "precision": "minute",
                "first_visible": 0.0,
                "edits": [],
                "should_be_found": True,
                "why_not": None,
                "optional": False,
                "special": None,
                "cluster": None,
                "twins": [],
            }
