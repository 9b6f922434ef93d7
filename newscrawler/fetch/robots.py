"""From the first answer of a robots.txt to its rules: the redirects between are followed here, for
the crawl and for commands that fetch one page. Knows neither Scrapy nor the frontier: how to ask
and how to wait are handed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from newscrawler.web import urls
from newscrawler.web.outcomes import retry_after_s
from newscrawler.web.robots import RobotsRules

if TYPE_CHECKING:
    from newscrawler.fetch.client import Answer

#: RFC 9309 2.3.1.2: at least five consecutive redirects are followed, also to other hosts.
MAX_HOPS = 5


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """What a site's robots.txt says.

    :ivar status: of the last answer; 404 where that was still a redirect
    :ivar body: empty unless ``status`` is 2xx
    :ivar hops: redirects that were followed
    """

    status: int
    body: bytes
    rules: RobotsRules
    retry_after_s: float | None
    hops: int


async def read_robots(
    first: Answer,
    ask: Callable[[str], Awaitable[Answer]],
    pause: Callable[[], Awaitable[None]],
    *,
    user_agent: str,
    now_ms: int,
) -> RobotsFile:
    """Follows the redirects of ``first``.

    :param ask: fetches one URL without following anything; what it raises is passed on
    :param pause: waits for the delay of the domain; called before every request that is made here,
        as the gate counts the first answer only
    :param now_ms: the clock against which a ``Retry-After`` with a date is read
    """
    answer, hops = first, 0
    while hops < MAX_HOPS and (target := _target(answer)) is not None:
        await pause()
        answer = await ask(target)
        hops += 1
    # still a redirect after five: as if there were none
    status = 404 if 300 <= answer.status < 400 else answer.status
    body = answer.body if 200 <= status < 300 else b""
    return RobotsFile(
        status,
        body,
        RobotsRules.parse_answer(status, body, user_agent),
        retry_after_s(answer.header("retry-after"), now_ms),
        hops,
    )


def _target(answer: Answer) -> str | None:
    location = answer.header("location") if 300 <= answer.status < 400 else None
    return urls.join(urls.Base(answer.url), location) if location else None
