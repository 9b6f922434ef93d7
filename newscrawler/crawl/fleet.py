"""Joins the fleet's parts to settings: nodes, ledger, frontier and the watch over them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from newscrawler.crawl import opening, services, site_choice
from newscrawler.fleet.judgement import Patience
from newscrawler.fleet.ledger import Ledger
from newscrawler.fleet.nodes import Node, targets
from newscrawler.fleet.registry import Registry
from newscrawler.fleet.scaling import Demand
from newscrawler.fleet.watch import ROUND_S, Look, Watch, WatchLimits
from newscrawler.frontier import connect
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.frontier.state_text import open_from
from newscrawler.utils.numbers import is_digits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redis.asyncio import Redis
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

#: A domain counts as due when it may be fetched within so long, ms by the frontier's clock: the
#: longest of the usual delays.
SOON_MS = 60_000
#: What stays unsaid until it changes is said again after so long, seconds.
REPEAT_S = 300.0


def need_redis(settings: BaseSettings) -> str:
    """:raises opening.StartRefused: REDIS_URL is not set"""
    url = str(settings.get("REDIS_URL") or "")
    if not url:
        raise opening.StartRefused(
            "REDIS_URL is not set: a fleet shares one Redis (REDIS_URL=redis://host:6379/0); the"
            " embedded one is for one machine"
        )
    return url


def limits_of(settings: BaseSettings) -> WatchLimits:
    return WatchLimits(
        start_s=settings.getfloat("FLEET_START_S"),
        drain_s=settings.getfloat("FLEET_DRAIN_S"),
        stuck=Patience(settings.getfloat("FLEET_STUCK_TURN_S"), settings.getfloat("FLEET_STUCK_S")),
        worker_memory_bytes=settings.getint("FLEET_WORKER_MEMORY_BYTES"),
        need_bytes=settings.getint("FLEET_WORKER_NEED_BYTES"),
    )


def nodes_of_config() -> dict[str, Node]:
    """:raises newscrawler.fleet.nodes.TargetError: scrapy.cfg names none, or one wrongly"""
    return {name: Node(target) for name, target in targets().items()}


def name_of_this() -> str:
    """Of this process among all that may lead: no two have one name, also after a restart."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


class FrontierSide:
    """What the watch needs of the frontier."""

    def __init__(self, client: Redis, settings: BaseSettings) -> None:
        self._frontier = Frontier(client, _config(settings), "fleet-watch")

    async def free(self, workers: Collection[str]) -> int:
        return await self._frontier.free_dead(lambda worker: worker in workers)

    async def demand(self) -> Demand:
        """Reads every domain; for each quarter of a minute, not for each call."""
        operator = self._frontier.operator
        now = await operator.now_ms()
        queued, due, rate = 0, 0, 0.0
        async for state in operator.states():
            is_open = state.enabled and not state.paused and open_from(state) <= now + SOON_MS
            if not state.queued or not is_open:
                continue
            queued += state.queued
            due += 1
            rate += 1000 / max(state.delay, 1)
        return Demand(queued, due, rate)


def _config(settings: BaseSettings) -> FrontierConfig:
    try:
        is_loopback = site_choice.all_loopback(site_choice.load_sites(settings), settings)
    except ValueError:  # a fault of sites.json is the workers' to tell
        is_loopback = False
    return opening.frontier_config(settings, loopback_only=is_loopback)


@asynccontextmanager
async def open_watch(settings: BaseSettings, nodes: Mapping[str, Node]) -> AsyncIterator[Watch]:
    """A watch over ``nodes``; its lead is given up at the end.

    :raises opening.StartRefused: REDIS_URL is not set
    """
    client: Any = connect(need_redis(settings), single=False)
    side = FrontierSide(client, settings)
    watch = Watch(
        Ledger(client, name_of_this()),
        Registry(client),
        nodes,
        side.free,
        side.demand,
        limits_of(settings),
    )
    try:
        yield watch
    finally:
        await watch.close()
        await client.aclose()


class Teller:
    """Says what a watch sees, each thing once: what changed, and after a while again."""

    def __init__(
        self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._told: dict[str, float] = {}
        self._role = ""

    def look(self, look: Look, name: str) -> None:
        leader = look.state.leader
        if leader != self._role:
            self._role = leader
            self._tell("leads" if leader == name else f"stands by: {leader or 'nobody'} leads")
        if not look.leads:
            return
        now = self._clock()
        for message in look.messages:
            # figures in a message change each round: it is the same one
            key = "".join(char for char in message if not is_digits(char))
            if now - self._told.get(key, float("-inf")) >= REPEAT_S:
                self._told[key] = now
                self._tell(message)


async def watch_for_ever(watch: Watch, tell: Callable[[str], None], end: asyncio.Event) -> None:
    """Rounds until ``end``. A Redis that is away is waited for; a fault of one round is logged and
    the next one tries again."""
    teller = Teller(tell)
    is_away = False
    while not end.is_set():
        try:
            teller.look(await watch.round(), watch.ledger.name)
            if is_away:
                tell("Redis answers again")
            is_away = False
        except Exception as exc:
            if not services.is_redis_away(exc):
                logger.exception("A round of the watch failed, goes on")
                tell(f"a round failed, goes on: {type(exc).__name__}: {exc}")
            elif not is_away:
                is_away = True
                tell(f"waits for Redis: {exc}")
        try:
            async with asyncio.timeout(ROUND_S):
                await end.wait()
        except TimeoutError:
            pass


def watch_of_server(settings: BaseSettings) -> Callable[[asyncio.Event], Awaitable[None]] | None:
    """What `scrapy serve` runs beside the page when FLEET_WATCH says so, until the event; None: it
    does not.

    :raises opening.StartRefused: REDIS_URL is not set
    :raises newscrawler.fleet.nodes.TargetError: scrapy.cfg names no node, or one wrongly
    """
    if not settings.getbool("FLEET_WATCH"):
        return None
    need_redis(settings)
    nodes = nodes_of_config()

    async def run(end: asyncio.Event) -> None:
        async with open_watch(settings, nodes) as watch:
            await watch_for_ever(watch, lambda text: logger.warning("Fleet watch: %s", text), end)

    return run
