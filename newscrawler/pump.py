"""The one task of a worker that talks to the frontier. See newscrawler/scheduler.py for its place in Scrapy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy import Request

from newscrawler import metrics
from newscrawler.frontier.queue import (
    Ack,
    AddResult,
    Fetched,
    Frontier,
    FrontierError,
    FrontierUnavailable,
    Lease,
    Step,
)
from newscrawler.frontier.suspects import resting
from newscrawler.inflight import InFlight
from newscrawler.items import Kind, Link, Outcome, Page
from newscrawler.web.outcomes import retry_after_s
from newscrawler.web.robots import RobotsRules
from newscrawler.wiring import Services, with_addresses

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from newscrawler.scheduler import LeaseQueue

logger = logging.getLogger(__name__)

#: The slot of DOWNLOAD_SLOTS, without a delay of its own: the frontier's gate is the delay.
SLOT = "frontier"
LRU_HITS = metrics.labelled(metrics.LINKS_LOCAL_HIT, "lru")
BLOOM_HITS = metrics.labelled(metrics.LINKS_LOCAL_HIT, "bloom")
#: Finished pages are collected this long before one call takes them all, seconds. Longer gains
#: nothing (docs/performance.md) and keeps a domain waiting.
COLLECT_S = 0.01
#: Another worker may add something due earlier than our last answer said: ask at least this often, seconds.
ASK_S = 1.0
#: How often the pump looks whether the engine is closing, seconds. No Redis call is made for it.
LOOK_S = 0.2
#: A second apart, so many calls one after the other end in an error that waiting does not mend: the crawl stops.
MOST_ERRORS = 20
#: Pages in hand while the processes that read them are not ready yet.
FEW = 4


class Pump:
    """The one task of a worker that talks to the frontier: acks what is finished, leases what is next."""

    def __init__(self, crawler: Crawler, services: Services, queue: LeaseQueue, *, idle_s: float) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.queue = queue
        self.frontier: Frontier = services.frontier
        self.reader = services.reader
        self.stats = crawler.stats
        self.wake = asyncio.Event()
        self.buffer_size = settings.getint("FRONTIER_BUFFER")
        self.buffer_s = settings.getfloat("FRONTIER_BUFFER_S")
        self.concurrency = settings.getint("CONCURRENT_REQUESTS")
        self.renew_s = settings.getfloat("FRONTIER_LEASE_S") / 3
        self.forever = settings.getbool("CRAWL_FOREVER")
        self.user_agent = settings["ROBOTSTXT_USER_AGENT"]
        self.shows_throttle = settings.getbool("AUTOTHROTTLE_DEBUG") and settings.getbool("AUTOTHROTTLE_ENABLED")
        self.idle_s = idle_s
        self.longest_wait_ms = settings.getfloat("CRAWL_LONGEST_WAIT_S") * 1000
        self.inflight: dict[Request, InFlight] = {}
        self.suspects: deque[tuple[float, Request]] = deque()  # (when leased, request): they may kill this process
        self.on_trial: Request | None = None  # the one of them that is at work
        self.acks: list[Ack] = []
        self.fetches: list[Fetched] = []
        self.unfetched: list[Lease] = []  # to give back
        self.sending = 0
        self.adding = 0
        self.additions = 0
        self.drained_since: float | None = None
        self.now_ms = int(time.time() * 1000)
        self.server_id: str | None = None
        self.rules: dict[str, tuple[Any, RobotsRules | None]] = {}  # domain -> (version, rules)
        self.hold_until = 0.0  # a store is away: no new leases before
        self.last = Step([], 0, 0, 0, 0, 0, 0, [], "")
        self._stopping = False
        self._was_running = False
        self._returned = False
        self._task: asyncio.Task[None] | None = None
        self._renewed = time.monotonic()

    # -- life
    async def start(self, policies: list[Any]) -> None:
        await self.frontier.open()
        await self.frontier.put_domains(await with_addresses(policies, self.crawler.settings))
        self._install_hook()
        self._task = asyncio.ensure_future(self._run())

    def _install_hook(self) -> None:
        slot = self.crawler.engine._slot if self.crawler.engine else None
        original = getattr(slot, "remove_request", None)
        if original is None:
            raise RuntimeError(
                "engine._slot.remove_request is gone: this Scrapy finishes requests elsewhere, and no lease "
                "would ever be acked. Pin the Scrapy of requirements.txt"
            )

        def remove_request(request: Request) -> None:
            held = self.inflight.pop(request, None)  # by identity: copies carry no lease
            if held is not None:
                self._finish(held)
            if request is self.on_trial:
                self.on_trial = None
                self.wake.set()
            original(request)

        slot.remove_request = remove_request  # type: ignore[union-attr, method-assign]

    async def stop(self) -> None:
        self._stopping = True
        self.wake.set()
        if self._task is not None:
            await self._task
        self._give_back_buffer()
        try:
            await self._exchange(0)
        except FrontierError as exc:
            logger.warning("Leases could not be given back, they run out by themselves error=%s", exc)
        await self.frontier.close()

    def pending(self) -> int:
        """What keeps this worker from being done: 0 only when nothing is at work or on the wire here,
        and the last complete look at the frontier found nothing to come."""
        here = len(self.queue.buffer) + len(self.inflight) + len(self.acks) + self.sending + len(self.queue.outbox)
        here += self.adding
        if here:
            return here
        if self.forever:
            return 1
        if self.drained_since is None or time.monotonic() - self.drained_since < self.idle_s:
            return 1
        return 0

    # -- notes from the Scheduler's signals
    def note(self, request: Request, outcome: Outcome, reason: str) -> None:
        held = self.inflight.get(request)
        if held is not None:
            held.verdict, held.reason = outcome, reason

    def note_lease(self, lease: Lease, outcome: Outcome, reason: str) -> None:
        """For a copy of a leased request, which carries the lease but is not the one in flight."""
        for held in self.inflight.values():
            if held.lease is lease:
                held.verdict, held.reason = outcome, reason

    def note_page(self, request: Request, page: Page) -> None:
        held = self.inflight.get(request)
        if held is not None and held.page is None:
            held.page = page

    def store_failed(self, request: Request, message: str) -> None:
        """The store took nothing: the URL goes back untried, and leasing pauses."""
        held = self.inflight.pop(request, None)
        if held is not None:
            self.unfetched.append(held.lease)
        first = self.hold_until < time.monotonic()
        self.hold_until = time.monotonic() + 5.0
        if first:
            logger.error("Store does not take articles, crawl is held error=%s", message)
        spider = self.crawler.spider
        if spider is not None and getattr(spider, "store_is_local", False):
            spider.stop_with("store_unavailable", message)  # type: ignore[attr-defined]

    def fetched(self, request: Request, status: int, retry_after: bytes | None, size: int = 0) -> None:
        held = self.inflight.get(request)
        if held is None or held.fetched:
            return
        held.fetched = True
        latency_s = request.meta.get("download_latency") or (time.monotonic() - held.started)
        after_s = retry_after_s(retry_after, self.now_ms)
        self.fetches.append(Fetched(held.lease, latency_s * 1000, status, after_s, size))
        self.wake.set()

    def left_downloader(self, request: Request) -> None:
        """The fetch ended without an answer for us; why, and whether the site is to blame, the errback says."""
        held = self.inflight.get(request)
        if held is not None and not held.fetched:
            held.left = time.monotonic()

    def _finish(self, held: InFlight) -> None:
        ack = held.ack()
        if not held.fetched and held.left:
            # A refusal is ours (too large, wrong address): the site answered, and is not backed off from.
            status = 200 if ack.outcome is Outcome.REFUSED else 0
            self.fetches.append(Fetched(held.lease, (held.left - held.started) * 1000, status))
        self.acks.append(ack)
        self.stats.inc_value(metrics.labelled(metrics.PAGE_OUTCOME, ack.outcome))
        if ack.outcome is not Outcome.DONE:
            self.stats.inc_value(metrics.labelled(metrics.PAGE_REASON, f"{ack.outcome}({ack.reason})"))
        self.wake.set()

    async def add(self, links: list[Link]) -> int:
        self.adding += 1
        try:
            result = await self.frontier.add(links)
        finally:
            self.adding -= 1
            self.additions += 1
            self.drained_since = None
        self._count_links(result)
        self.wake.set()
        return result.added

    # -- the loop
    async def _run(self) -> None:
        pause, errors = 0.0, 0
        while not self._stopping:
            try:
                await self._wait(pause)
                await self._exchange(self._room())
                pause, errors = 0.0, 0
            except FrontierUnavailable as exc:
                # Everything unsent is kept; the leases hold until their deadline.
                if not pause:
                    logger.error("Redis does not answer, waiting error=%s", exc)
                pause = min(max(pause * 2, 0.5), 5.0)
            except Exception as exc:
                pause, errors = 1.0, errors + 1
                self.stats.inc_value(metrics.PUMP_ERRORS)
                if errors == 1:
                    logger.exception("Pump failed, goes on")
                if errors == MOST_ERRORS and self.crawler.spider is not None:
                    message = f"{errors} calls to the frontier failed one after the other, the last with: {exc}"
                    self.crawler.spider.stop_with("frontier_broken", message)  # type: ignore[attr-defined]

    async def _wait(self, pause: float) -> None:
        """Until something is finished, something is due, or a second is over."""
        due_s = self.last.wait_ms / 1000 if self.last.wait_ms >= 0 and self._room() else ASK_S
        until = time.monotonic() + (pause or min(due_s, ASK_S))
        while not self._stopping:
            left = until - time.monotonic()
            if left <= 0 or (self.wake.is_set() and not pause):
                break
            look_s = min(left, LOOK_S)
            with contextlib.suppress(TimeoutError):
                await (asyncio.sleep(look_s) if pause else asyncio.wait_for(self.wake.wait(), look_s))
            if self._engine_is_closing() and not self._returned:
                self._give_back_buffer()
                break
        if not self._stopping:
            await asyncio.sleep(COLLECT_S)
        self.wake.clear()

    def _engine_is_closing(self) -> bool:
        """There is no signal at the start of closing, and close() comes only after the last download."""
        engine = self.crawler.engine
        if engine is None or engine._slot is None:
            return self._was_running
        self._was_running = self._was_running or engine.running
        return engine._slot.closing is not None or (self._was_running and not engine.running)

    def _room(self) -> int:
        """How many more URLs this worker can start soon. What is fetched and not yet read is fetched again if this
        process dies: as many may be under way or wait to be read, together, as may be under way."""
        if self._stopping or self._returned or time.monotonic() < self.hold_until or self._engine_is_closing():
            return 0
        engine = self.crawler.engine
        if engine is None or engine.paused:
            return 0
        most = self.concurrency if self.reader.is_ready else min(FEW, self.concurrency)
        under_way = len(engine.downloader.active) + self.reader.waiting
        self.reader.call_at(most // 2 if under_way >= most else -1, self.wake.set)
        if under_way >= most:
            return 0
        return max(0, min(self.buffer_size, most) - len(self.queue.buffer) - len(self.suspects))

    def _give_back_buffer(self) -> None:
        self._returned = True
        self._take_back(math.inf)

    def _take_back(self, before: float) -> None:
        """What was leased before a moment and has not begun."""
        for waiting in (self.queue.buffer, self.suspects):
            while waiting and waiting[0][0] < before:
                request = waiting.popleft()[1]
                self.inflight.pop(request, None)
                self.unfetched.append(request.meta["lease"])
                if request is self.on_trial:
                    self.on_trial = None

    async def _try_suspect(self) -> None:
        """One at a time: the mark in Redis then says of one URL that it was at work when this process died."""
        engine = self.crawler.engine
        if self.on_trial or not self.suspects or self._engine_is_closing() or engine is None or engine._slot is None:
            return
        lease = self.suspects[0][1].meta["lease"]
        is_ours = await self.frontier.begin_trial(lease)
        request = self.suspects.popleft()[1]
        if not is_ours:
            self.inflight.pop(request, None)
            self.stats.inc_value(metrics.LEASES_LOST)
            return
        logger.warning("A page that may kill workers is tried by itself url=%s crashes=%d", lease.url, lease.crashes)
        self.on_trial = request
        self.queue.buffer.append((time.monotonic(), request))
        engine._slot.nextcall.schedule()

    async def _exchange(self, k: int) -> None:
        self._take_back(time.monotonic() - self.buffer_s)  # another worker could fetch it
        acks, fetches, back, outbox = self.acks, self.fetches, self.unfetched, self.queue.outbox
        self.acks, self.fetches, self.unfetched, self.queue.outbox = [], [], [], []
        self.sending = len(acks) + len(back) + len(outbox)
        try:
            if outbox:
                await self.frontier.add(outbox)
                outbox = []
            if back:
                # with what was fetched: a page that the store did not take was asked of its site all the same
                await self.frontier.give_back(back, fetches)
                fetches = []
                self.stats.inc_value(metrics.LEASES_RETURNED, len(back))
                back = []
            await self._renew()
            additions = self.additions
            step = await self.frontier.step(k, acks, fetches)
            told = fetches
            acks, fetches = [], []
        finally:  # whatever was not taken is offered again; an ack taken twice is refused by its number
            self.acks[:0], self.fetches[:0], self.unfetched[:0], self.queue.outbox[:0] = acks, fetches, back, outbox
            self.sending = 0
        self.stats.inc_value(metrics.FRONTIER_CALLS)
        if self.shows_throttle and told:
            await self._show_throttle(told)
        # An answer from before an addition that ended meanwhile cannot say that there is nothing to do.
        await self._take(step, k if additions == self.additions and not self.adding else 0)
        await self._try_suspect()

    async def _show_throttle(self, fetches: list[Fetched]) -> None:
        """AUTOTHROTTLE_DEBUG: the line that Scrapy logs for every response, with the fleet's delay. Costs a call each."""
        for end in fetches:
            state = await self.frontier.operator.state(end.lease.domain)
            if state is not None:
                text = "Throttle domain=%s delay_ms=%d latency_ms=%d size=%d"
                logger.info(text, end.lease.domain, state.delay, end.latency_ms, end.size)

    async def _renew(self) -> None:
        now = time.monotonic()
        if now - self._renewed < self.renew_s:
            return
        self._renewed = now
        leases = [h.lease for h in self.inflight.values() if now - h.started > self.renew_s / 2]
        lost = await self.frontier.renew(leases) if leases else []
        if lost:
            self.stats.inc_value(metrics.LEASES_LOST, len(lost))
            logger.warning("Leases ran out while at work, the pages come again leases=%d", len(lost))

    async def _take(self, step: Step, k: int) -> None:
        self.last, self.now_ms = step, step.now_ms
        self.stats.set_value(metrics.FRONTIER_QUEUED, step.queued)
        self.stats.set_value(metrics.FRONTIER_LEASED, step.leased)
        if step.rejected:
            self.stats.inc_value(metrics.LEASES_LOST, len(step.rejected))
        self._count_links(step.added)
        self.stats.set_value(LRU_HITS, self.frontier.local.lru_hits)
        self.stats.set_value(BLOOM_HITS, self.frontier.local.bloom_hits)
        if self.server_id not in (None, step.server_id):
            # A Redis that was killed may be a second older: what it forgot is repeated, not lost.
            logger.warning("Redis was restarted, local filters are emptied")
            self.rules.clear()
        self.server_id = step.server_id
        if step.leases:
            self.stats.inc_value(metrics.LEASES, len(step.leases))
            for number, lease in enumerate(step.leases):
                try:
                    request = await self._request(lease)
                except FrontierUnavailable:  # its robots rules could not be read
                    self.unfetched += step.leases[number:]
                    raise
                self.inflight[request] = InFlight(lease)
                waiting = self.suspects if self.frontier.is_suspect(lease) else self.queue.buffer
                waiting.append((time.monotonic(), request))
            if self._engine_is_closing():
                self._give_back_buffer()
        waits_long = step.wait_ms < 0 or step.wait_ms > self.longest_wait_ms
        if step.leases or step.leased or self.acks or self.inflight or (step.queued and not waits_long):
            self.drained_since = None
        elif k and self.drained_since is None:  # only a call that asked for work can say there is none
            self.drained_since = time.monotonic()
            if step.queued and not self.forever:
                await self._note_what_stays(step)
        engine = self.crawler.engine
        if engine is not None and engine._slot is not None and (step.leases or self.drained_since):
            engine._slot.nextcall.schedule()  # without a delay: a delayed call swallows the later ones

    async def _note_what_stays(self, step: Step) -> None:
        """The crawl ends though URLs are queued: until when, and how many of them rest because workers died of them."""
        rest, next_s = await resting(self.frontier.operator), round(step.wait_ms / 1000)
        self.stats.set_value(metrics.FRONTIER_NEXT, next_s)
        self.stats.set_value(metrics.FRONTIER_SUSPECTS, rest.urls)
        text = "Nothing is due soon, what waits stays queued urls=%d next_in_s=%d suspects=%d"
        logger.info(text, step.queued, next_s, rest.urls)

    def _count_links(self, offered: AddResult) -> None:
        if offered.added:
            self.stats.inc_value(metrics.LINKS_ADDED, offered.added)
        if offered.seen:
            self.stats.inc_value(metrics.LINKS_SEEN, offered.seen)
        for reason, count in offered.refused.items():
            self.stats.inc_value(metrics.labelled(metrics.LINKS_REFUSED, reason), count)

    async def _request(self, lease: Lease) -> Request:
        spider: Any = self.crawler.spider
        if lease.kind == Kind.ROBOTS:
            return Request(
                lease.url, spider.parse_robots, errback=spider.failed, dont_filter=True, meta={"lease": lease}
            )
        cached = self.rules.get(lease.domain)
        if cached is None or cached[0] != lease.robots_version:
            entry = await self.frontier.robots(lease.domain)
            rules = None if entry is None else RobotsRules.parse_answer(entry.status, entry.body, self.user_agent)
            cached = self.rules[lease.domain] = (lease.robots_version, rules)
        meta = {"lease": lease, "robots": cached[1], "download_slot": SLOT}
        return Request(lease.url, spider.parse, errback=spider.failed, dont_filter=True, meta=meta)
