"""A real Redis of our own and article pages of the simulated web's templates,
for the selector tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from newscrawler.frontier import redis_server
from tests.newsweb.render import Frame, article_page
from tests.newsweb.templates import TEMPLATES
from tests.newsweb.world import SimClock, Story, WebSite, World


@pytest.fixture(scope="session")
def selector_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("selector-redis")
    yield redis_server.ensure(folder)
    redis_server.stop(folder)


@pytest.fixture
async def selector_redis(selector_redis_url: str) -> AsyncIterator[Any]:
    client = redis.asyncio.Redis.from_url(selector_redis_url)
    await client.flushall()
    yield client
    await client.aclose()


@dataclass
class MadePage:
    """One stored page; the fields of rawstore.RawPage, and the truth beside it."""

    url: str
    body: bytes
    headers: list[tuple[bytes, bytes]]
    fetched: datetime
    story: Story


def made_site(key: str, seed: int = 7) -> WebSite:
    world = World(seed, SimClock())
    template = TEMPLATES[key]
    return world.add_site(WebSite(world, key, key, template, "http", key, template.sections()))


def made_pages(
    key: str, count: int, seed: int = 7, markup_at: float | None = None
) -> list[MadePage]:
    """``count`` articles of one template, an hour apart. ``markup_at``: the
    site was redesigned then."""
    site = made_site(key, seed)
    site.relayout_at = markup_at
    now = site.world.clock.now()
    stories = [site.world.new_story(site, now - 3600.0 * (i + 1)) for i in range(count + 6)]
    frame = Frame(site)
    pages = []
    for index, story in enumerate(stories[:count]):
        side = [s for s in stories if s is not story][index % 5 : index % 5 + 8]
        text = article_page(story, story.first, frame, now, side)
        pages.append(
            MadePage(
                story.url,
                text.encode(),
                [(b"Content-Type", b"text/html; charset=utf-8")],
                datetime.fromtimestamp(now, UTC),
                story,
            )
        )
    return pages
