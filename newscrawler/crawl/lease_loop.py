"""The one task of a worker that talks to the frontier. See newscrawler/scheduler.py
for its place in Scrapy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import Request

from newscrawler import metrics
from newscrawler.crawl.services import Services
from newscrawler.crawl.site_choice import with_addresses
from newscrawler.crawl.visits import InFlight
from newscrawler.crawl.waits import ARTICLES, QUEUE_GONE, RAW_PAGES, REDIS, SCANNER, STORE_GONE
from newscrawler.frontier.outlook import Outlook, outlook, resting, waiting
from newscrawler.frontier.queue import (
    Ack,
    AddResult,
    DomainPolicy,
    Fetched,
    Frontier,
    FrontierError,
    FrontierGone,
    FrontierUnavailable,
    Lease,
    Step,
)
from newscrawler.items import Kind, Link, Outcome, Visit
from newscrawler.rawstore.errors import RawStoreGone
from newscrawler.store.base import StoreGone
from newscrawler.web.outcomes import retry_after_s
from newscrawler.web.robots import RobotsRules

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: The slot of DOWNLOAD_SLOTS, without a delay of its own: the frontier's gate is the delay.
SLOT = "frontier"
LRU_HITS = metrics.labelled(metrics.LINKS_LOCAL_HIT, "lru")
BLOOM_HITS = metrics.labelled(metrics.LINKS_LOCAL_HIT, "bloom")
#: Finished pages are collected this long before one call takes them all, seconds. Longer gains
#: nothing (docs/performance.md) and keeps a domain waiting.
COLLECT_S = 0.01
#: Another worker may add something due earlier than our last answer said: ask at least this
#: often, seconds.
ASK_S = 1.0
#: How often it looks whether the engine is closing, seconds. No Redis call is made for it.
LOOK_S = 0.2
#: A second apart, so many calls one after the other end in an error that waiting does not
#: mend: the crawl stops.
MOST_ERRORS = 20
#: A crawl that goes on for ever says that it has nothing to do at most this often, seconds.
TELL_IDLE_S = 60.0
#: A crawl that has had nothing in hand for so long says what its sites wait for, and so
#: often anew, seconds.
IDLE_S = 5.0
#: That is read for so many domains at most.
IDLE_DOMAINS = 300
#: Pages in hand while the processes that read them are not ready yet.
FEW = 4
#: Redis is away: each call ends in its time-out, so the loop goes round, if slowly. What takes
#: longer than this is no wait for Redis, seconds.
REDIS_TURN_S = 120.0


@dataclass(frozen=True, slots=True)
class Progress:
    """What a heartbeat tells of it, seconds: the watch of the fleet finds by it a worker that beats
    and does nothing.

    :param turn_s: since the lease loop last went round, also in vain; 0 = it has ended, or waits
        for a Redis that is away; of one that goes round 0.1 at least
    :param held_s: since a visit ended, or something came into hand; 0 = there is nothing in hand,
        or a store or the virus scanner is waited for
    :param ended_s: since a visit last ended; -1 = none has
    :param waits_s: that a store or the virus scanner has been waited for; 0 = neither is
    """

    turn_s: float
    held_s: float
    ended_s: float
    waits_s: float


class Queue(Protocol):
    """The engine's queue (scheduler.LeaseQueue): leased requests for it, and links of
    requests that others made."""

    buffer: deque[tuple[float, Request]]  # (when leased, request)
    outbox: list[Link]


class LeaseLoop:
    """The one task of a worker that talks to the frontier: acks what is finished,
    leases what is next."""

    def __init__(
        self, crawler: Crawler, services: Services, queue: Queue, *, idle_s: float
    ) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.queue = queue
        self.frontier: Frontier = services.frontier
        self.reader = services.reader
        self.waits = services.waits
        self._services = services
        self._policies: list[DomainPolicy] = []
        self._opened = asyncio.Event()
        self.stats = crawler.stats
        self.visits = services.visits
        self.wake = asyncio.Event()
        self.buffer_size = settings.getint("FRONTIER_BUFFER")
        self.max_tries = settings.getint("FRONTIER_MAX_TRIES")
        self.buffer_s = settings.getfloat("FRONTIER_BUFFER_S")
        self.concurrency = settings.getint("CONCURRENT_REQUESTS")
        self.renew_s = settings.getfloat("FRONTIER_LEASE_S") / 3
        self.forever = settings.getbool("CRAWL_FOREVER")
        self.user_agent = settings["ROBOTSTXT_USER_AGENT"]
        self.shows_throttle = settings.getbool("AUTOTHROTTLE_DEBUG") and settings.getbool(
            "AUTOTHROTTLE_ENABLED"
        )
        self.idle_s = idle_s
        self.longest_wait_ms = settings.getfloat("CRAWL_LONGEST_WAIT_S") * 1000
        self.inflight: dict[Request, InFlight] = {}
        self.poison_candidates: deque[tuple[float, Request]] = (
            deque()
        )  # (when leased, request): they may kill this process
        self.retried_alone: Request | None = None  # the one of them that is at work
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
        self._renewed = self._turned = self._held_since = time.monotonic()
        self._ended_at = -math.inf
        self._idle_told = -math.inf
        #: What the sites of this crawl wait for, for the terminal; "" = something is at work.
        self.idle_text = ""
        self._idle_since: float | None = None

    # -- life
    async def start(self, policies: list[DomainPolicy]) -> None:
        """A Redis that cannot write now (full memory, full disk) is waited for, like later on."""
        self._policies = await with_addresses(policies, self.crawler.settings)
        try:
            await self._open()
        except FrontierUnavailable as exc:
            self.waits.failed(REDIS, str(exc))
        self._install_hook()
        self._turned = time.monotonic()
        self._task = asyncio.ensure_future(self._run())

    async def _open(self) -> None:
        await self.frontier.open()
        await self.frontier.put_domains(self._policies)
        self._opened.set()

    def _install_hook(self) -> None:
        slot: Any = self.crawler.engine._slot if self.crawler.engine else None
        original = getattr(slot, "remove_request", None)
        if original is None:
            raise RuntimeError(
                "engine._slot.remove_request is gone: this Scrapy finishes requests elsewhere, and"
                " no lease would ever be acked. Pin the Scrapy of requirements.txt"
            )

        def remove_request(request: Request) -> None:
            held = self.inflight.pop(request, None)  # by identity: copies carry no lease
            if held is not None:
                self._finish(held)
            if request is self.retried_alone:
                self.retried_alone = None
                self.wake.set()
            original(request)

        slot.remove_request = remove_request

    async def stop(self) -> None:
        """Waits for the turn that is under way."""
        self._stopping = True
        self.wake.set()
        if self._task is not None:
            await self._task
        self._give_back_buffer()
        try:
            await self._exchange(0)
        except FrontierError as exc:
            logger.warning(
                "Leases could not be given back, they run out by themselves error=%s", exc
            )
        await self.frontier.close()

    def pending(self) -> int:
        """What keeps this worker from being done: 0 only when nothing is at work or on the wire
        here, and the last complete look at the frontier found nothing to come."""
        here = (
            len(self.queue.buffer)
            + len(self.inflight)
            + len(self.acks)
            + self.sending
            + len(self.queue.outbox)
        )
        here += self.adding
        if here:
            return here
        if self.forever:
            return 1
        if self.drained_since is None or time.monotonic() - self.drained_since < self.idle_s:
            return 1
        return 0

    def progress(self) -> Progress:
        now = time.monotonic()
        engine = self.crawler.engine
        waits_s = self.waits.lasts_s(ARTICLES, RAW_PAGES, SCANNER)
        if not self.inflight or waits_s or self._stopping or engine is None or engine.paused:
            self._held_since = now
        return Progress(
            turn_s=self._turn_s(now),
            held_s=round(now - self._held_since, 1),
            ended_s=round(now - self._ended_at, 1) if self._ended_at > 0 else -1.0,
            waits_s=round(waits_s, 1),
        )

    def _turn_s(self, now: float) -> float:
        if self._task is None or self._stopping:
            return 0.0
        turn_s = now - self._turned
        if turn_s < REDIS_TURN_S and self.waits.is_failing(REDIS):
            return 0.0
        return max(0.1, round(turn_s, 1))

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

    def note_visit(self, request: Request, visit: Visit) -> None:
        """Takes the spider's word on the visit; it is acked when the request has left Scrapy."""
        held = self.inflight.get(request)
        if held is not None and held.visit is None:
            held.visit = visit
            asked_s = held.latency_s or (held.left - held.started if held.left else 0.0)
            visit.size, visit.fetch_ms = held.size, round(asked_s * 1000, 1)
            self.visits.begin(visit)

    def note_end(self, request: Request, outcome: Outcome, reason: str) -> Visit | None:
        """One of our pipelines ended the visit: the page has no article to be stored."""
        held = self.inflight.get(request)
        if held is None or held.visit is None:
            return None
        visit = held.visit
        visit.outcome, visit.reason, visit.article = outcome, reason, None
        if outcome is Outcome.REDIRECTED:
            visit.next_visit_ms = None
        return visit

    def store_failed(self, request: Request, error: BaseException | None) -> None:
        """The store took nothing: the URL goes back untried, and leasing pauses. A store that is
        gone ends the crawl."""
        held = self.inflight.pop(request, None)
        if held is not None:
            self.unfetched.append(held.lease)
            self._held_since = time.monotonic()
            self.visits.end(held.known(), Outcome.RETRY, "store")
        self.hold_until = time.monotonic() + 5.0
        if isinstance(error, (StoreGone, RawStoreGone)):
            self._stop_with(STORE_GONE, str(error))

    def _stop_with(self, reason: str, message: str) -> None:
        spider: Any = self.crawler.spider
        if spider is not None:
            spider.stop_with(reason, message)

    def fetched(
        self, request: Request, status: int, retry_after: bytes | None, size: int = 0
    ) -> None:
        held = self.inflight.get(request)
        if held is None or held.fetched:
            return
        latency_s = request.meta.get("download_latency") or (time.monotonic() - held.started)
        after_s = retry_after_s(retry_after, self.now_ms)
        held.fetched, held.latency_s, held.size = True, latency_s, size
        metrics.observe(self.stats, metrics.FETCH_TIME, latency_s)
        self.fetches.append(Fetched(held.lease, latency_s * 1000, status, after_s, size))
        self.wake.set()

    def request_of(self, url: str) -> str:
        """The id of the visit under way of a URL, or of the article that it found; "" = none."""
        for held in self.inflight.values():
            article = held.visit.article if held.visit is not None else None
            if url == held.lease.url or (article is not None and url == article.url):
                return held.lease.request_id
        return ""

    def left_downloader(self, request: Request) -> None:
        """The fetch ended without an answer for us; why, and whether the site is to
        blame, the errback says."""
        held = self.inflight.get(request)
        if held is not None and not held.fetched:
            held.left = time.monotonic()

    def _finish(self, held: InFlight) -> None:
        visit = held.visit
        is_lost = visit is not None and visit.article is not None and not visit.stored
        if is_lost and self.visits.stores_articles and held.verdict is None:
            # A pipeline or a spider middleware put something else in its place: no page must count
            # as read whose article is nowhere, and the next visit would end the same way.
            held.verdict, held.reason = Outcome.REFUSED, "not stored"
            logger.warning(
                "Article did not reach the store url=%s",
                held.lease.url,
                extra={"request_id": held.lease.request_id},  # it is in flight no more
            )
        ack = held.ack()
        if not held.fetched and held.left:
            # A refusal is ours (too large, wrong address): the site answered, and is not
            # backed off from.
            status = 200 if ack.outcome is Outcome.REFUSED else 0
            self.fetches.append(Fetched(held.lease, (held.left - held.started) * 1000, status))
        self.acks.append(ack)
        self._ended_at = self._held_since = time.monotonic()
        self._count_end(held, ack)
        self.visits.end(held.known(), ack.outcome, ack.reason)
        self.wake.set()

    def _count_end(self, held: InFlight, ack: Ack) -> None:
        self.stats.inc_value(metrics.labelled(metrics.PAGE_OUTCOME, ack.outcome))
        if ack.outcome is not Outcome.DONE:
            reason = f"{ack.outcome}({ack.reason})"
            self.stats.inc_value(metrics.labelled(metrics.PAGE_REASON, reason))
        if ack.outcome in (Outcome.RETRY, Outcome.CHALLENGE):
            self._count_retry(held, ack)

    def _count_retry(self, held: InFlight, ack: Ack) -> None:
        """As Scrapy's RetryMiddleware counts, whose place the frontier takes."""
        if held.lease.tries + 1 >= self.max_tries:
            self.stats.inc_value(metrics.RETRIES_SPENT)
            return
        self.stats.inc_value(metrics.RETRIES)
        self.stats.inc_value(metrics.labelled(metrics.RETRY_REASON, ack.reason))

    async def add(self, links: list[Link]) -> int:
        """Waits for a Redis that is away; what is not added when the crawl ends is offered
        by the next start."""
        self.adding += 1
        try:
            result = await self._add(links)
        finally:
            self.adding -= 1
            self.additions += 1
            self.drained_since = None
        self._count_links(result)
        self.wake.set()
        return result.added

    async def _add(self, links: list[Link]) -> AddResult:
        while True:
            try:
                if self._opened.is_set():
                    return await self.frontier.add(links)
            except FrontierUnavailable as exc:
                self.waits.failed(REDIS, str(exc))
            if self._stopping or self._engine_is_closing():
                return AddResult()
            await asyncio.sleep(LOOK_S)

    # -- the loop
    async def _run(self) -> None:
        pause, errors = 0.0, 0
        while not self._stopping:
            self._turned = time.monotonic()
            try:
                await self._wait(pause)
                self._turned = time.monotonic()  # the pause is none of the call's time
                with self.waits.slow(REDIS):
                    if not self._opened.is_set():
                        await self._open()
                    await self._exchange(self._room())
                self.waits.works(REDIS)
                pause, errors = 0.0, 0
            except FrontierUnavailable as exc:
                # Everything unsent is kept; the leases hold until their deadline.
                self.waits.failed(REDIS, str(exc))
                await self._restore_redis()
                pause = min(max(pause * 2, 0.5), 5.0)
            except Exception as exc:
                pause, errors = 1.0, errors + 1
                self.stats.inc_value(metrics.LEASE_LOOP_ERRORS)
                if errors == 1:
                    logger.exception("Lease loop failed, goes on")
                if errors == MOST_ERRORS:
                    message = (
                        f"{errors} calls to the frontier failed one after the other, the last with:"
                        f" {exc}"
                    )
                    self._stop_with("frontier_broken", message)

    async def _restore_redis(self) -> None:
        """The embedded server is ours: where it died it is started again; where its folder
        is gone the crawl ends."""
        try:
            await asyncio.to_thread(self._services.restore_redis)
        except FrontierGone as exc:
            self._stop_with(QUEUE_GONE, str(exc))
        except FrontierUnavailable as exc:
            self.waits.failed(REDIS, str(exc))

    async def _wait(self, pause: float) -> None:
        """Until something is finished, something is due, or a second is over."""
        due_s = ASK_S
        if self.last.wait_ms >= 0 and self._room():
            due_s = min(due_s, self.last.wait_ms / 1000)
        until = time.monotonic() + (pause or due_s)
        while not self._stopping:
            left = until - time.monotonic()
            if left <= 0 or (self.wake.is_set() and not pause):
                break
            await self._sleep(min(left, LOOK_S), is_woken=not pause)
            if self._engine_is_closing() and not self._returned:
                self._give_back_buffer()
                break
        if not self._stopping:
            await asyncio.sleep(COLLECT_S)
        self.wake.clear()

    async def _sleep(self, seconds: float, is_woken: bool) -> None:
        if not is_woken:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wake.wait(), seconds)

    def _engine_is_closing(self) -> bool:
        """There is no signal at the start of closing, and close() comes only after
        the last download."""
        engine = self.crawler.engine
        if engine is None or engine._slot is None:
            return self._was_running
        self._was_running = self._was_running or engine.running
        return engine._slot.closing is not None or (self._was_running and not engine.running)

    def _room(self) -> int:
        """How many more URLs this worker can start soon. What is fetched and not yet read is
        fetched again if this process dies: as many may be under way or wait to be read, together,
        as may be under way."""
        if self._takes_nothing():
            return 0
        engine = self.crawler.engine
        if engine is None or engine.paused:
            return 0
        most = self.concurrency if self.reader.is_ready else min(FEW, self.concurrency)
        under_way = len(engine.downloader.active) + self.reader.waiting
        self.reader.call_at(most // 2 if under_way >= most else -1, self.wake.set)
        if under_way >= most:
            return 0
        return max(
            0, min(self.buffer_size, most) - len(self.queue.buffer) - len(self.poison_candidates)
        )

    def _takes_nothing(self) -> bool:
        """The end has come, or what was fetched could not be stored or told."""
        if self._stopping or self._returned or self._engine_is_closing():
            return True
        return time.monotonic() < self.hold_until or self.waits.is_failing(
            ARTICLES, RAW_PAGES, SCANNER
        )

    def _give_back_buffer(self) -> None:
        self._returned = True
        self._take_back(math.inf)

    def _take_back(self, before: float) -> None:
        """Takes back requests that were leased before a moment and have not begun."""
        for begun in (self.queue.buffer, self.poison_candidates):
            while begun and begun[0][0] < before:
                request = begun.popleft()[1]
                self.inflight.pop(request, None)
                self.unfetched.append(request.meta["lease"])
                if request is self.retried_alone:
                    self.retried_alone = None

    async def _try_poison_candidate(self) -> None:
        """One at a time: the mark in Redis then says of one URL that it was at work when
        this process died."""
        engine = self.crawler.engine
        if (
            self.retried_alone
            or not self.poison_candidates
            or self._engine_is_closing()
            or engine is None
            or engine._slot is None
        ):
            return
        lease = self.poison_candidates[0][1].meta["lease"]
        is_ours = await self.frontier.begin_isolated_retry(lease)
        request = self.poison_candidates.popleft()[1]
        if not is_ours:
            self.inflight.pop(request, None)
            self.stats.inc_value(metrics.LEASES_LOST)
            return
        logger.warning(
            "A page that may kill workers is tried by itself url=%s crashes=%d",
            lease.url,
            lease.crashes,
        )
        self.retried_alone = request
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
                # with what was fetched: a page that the store did not take was asked of its
                # site all the same
                await self.frontier.give_back(back, fetches)
                fetches = []
                self.stats.inc_value(metrics.LEASES_RETURNED, len(back))
                back = []
            await self._renew()
            await self._services.link_notes.flush(is_last=self._stopping)
            await self._services.link_learning.flush(is_last=self._stopping)
            if await self._services.bounded.settle(acks, self.now_ms):
                self.additions += 1  # before the acks, so that a crash between repeats work only
            if not self._stopping and await self._services.bounded.look(self.now_ms):
                self.additions += 1
            additions = self.additions
            step = await self.frontier.step(k, acks, fetches)
            told = fetches
            acks, fetches = [], []
        finally:
            # What was not taken is offered again; an ack taken twice is refused by its number.
            self.acks[:0], self.fetches[:0], self.unfetched[:0], self.queue.outbox[:0] = (
                acks,
                fetches,
                back,
                outbox,
            )
            self.sending = 0
        self.stats.inc_value(metrics.FRONTIER_CALLS)
        if self.shows_throttle and told:
            await self._show_throttle(told)
        # An answer from before an addition that ended meanwhile cannot say that there
        # is nothing to do.
        await self._take(step, k if additions == self.additions and not self.adding else 0)
        await self._try_poison_candidate()

    async def _show_throttle(self, fetches: list[Fetched]) -> None:
        """AUTOTHROTTLE_DEBUG: the line that Scrapy logs for every response, with the fleet's delay.
        Costs a call each."""
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
            logger.warning(
                "Leases ran out while at work, the pages come again leases=%d", len(lost)
            )

    async def _take(self, step: Step, k: int) -> None:
        self.last, self.now_ms = step, step.now_ms
        self._count(step)
        if self.server_id not in (None, step.server_id):
            # A Redis that was killed may be a second older: what it forgot is repeated, not lost.
            logger.warning("Redis was restarted, local filters are emptied")
            self.rules.clear()
        self.server_id = step.server_id
        if step.leases:
            await self._hold(step.leases)
        if self._has_work(step):
            self.drained_since = None
        elif k and self.drained_since is None:  # only a call that asked for work says there is none
            await self._look_if_drained(step)
        await self._note_idle(step, k)
        engine = self.crawler.engine
        if engine is not None and engine._slot is not None and (step.leases or self.drained_since):
            # Without a delay: a delayed call swallows the later ones.
            engine._slot.nextcall.schedule()

    def _count(self, step: Step) -> None:
        stats, local = self.stats, self.frontier.local
        stats.set_value(metrics.FRONTIER_QUEUED, step.queued)
        stats.set_value(metrics.FRONTIER_LEASED, step.leased)
        stats.set_value(metrics.FRONTIER_WAITING, step.waiting)
        if step.rejected:
            stats.inc_value(metrics.LEASES_LOST, len(step.rejected))
        self._count_links(step.added)
        stats.set_value(LRU_HITS, local.lru_hits)
        stats.set_value(BLOOM_HITS, local.bloom_hits)

    async def _hold(self, leases: list[Lease]) -> None:
        """Requests for them, where the engine or the isolated retry takes them."""
        self.stats.inc_value(metrics.LEASES, len(leases))
        for number, lease in enumerate(leases):
            try:
                request = await self._request(lease)
            except FrontierUnavailable:  # its robots rules could not be read
                self.unfetched += leases[number:]
                raise
            self.inflight[request] = InFlight(lease)
            place = (
                self.poison_candidates
                if self.frontier.is_poison_candidate(lease)
                else self.queue.buffer
            )
            place.append((time.monotonic(), request))
        if self._engine_is_closing():
            self._give_back_buffer()

    def _has_work(self, step: Step) -> bool:
        """Something is under way, here or at another worker, or is due before a crawl gives up."""
        if step.leases or step.leased or self.acks or self.inflight:
            return True
        waits_long = step.wait_ms < 0 or step.wait_ms > self.longest_wait_ms
        return bool(step.queued) and not waits_long

    async def _look_if_drained(self, step: Step) -> None:
        additions = self.additions
        view = await outlook(self.frontier.operator, self.longest_wait_ms)
        is_old = self.adding or additions != self.additions
        if not view.is_held and not is_old:
            self.drained_since = time.monotonic()
            await self._note_what_stays(step, view)

    async def _note_idle(self, step: Step, k: int) -> None:
        """Where nothing is granted for seconds, people are told why, and of their sites only."""
        now = time.monotonic()
        if step.leases or self.inflight or self.acks or self.adding or not k:
            self._idle_since, self.idle_text = None, ""
            return
        if self._idle_since is None:
            self._idle_since = now
        if now - self._idle_since < IDLE_S:
            return
        was_told = bool(self.idle_text)
        await self._look_at_chosen()
        self._idle_since = now  # again in IDLE_S
        if self.idle_text and not was_told:
            logger.info("Waits: %s", self.idle_text)

    async def _look_at_chosen(self) -> None:
        """Notes what the sites of this crawl wait for, as text and as stats."""
        sites = self._services.sites
        chosen = [site for name in self._services.chosen if (site := sites.get(name)) is not None]
        domains = [host for site in chosen for host in site.hosts]
        if len(domains) > IDLE_DOMAINS:
            return
        view = await waiting(self.frontier.operator, domains)
        self.idle_text = view.text()
        self.stats.set_value(metrics.CHOSEN_QUEUED, view.queued)
        self.stats.set_value(metrics.CHOSEN_WAITING, view.planned)

    async def _note_what_stays(self, step: Step, view: Outlook) -> None:
        """Nothing is left to do: until when, and how many of the queued URLs rest because
        workers died of them."""
        if not step.queued and not step.waiting:
            return
        next_s = -1 if view.next_ms is None else round(view.next_ms / 1000)
        self.stats.set_value(metrics.FRONTIER_NEXT, next_s)
        await self._look_at_chosen()
        if self.forever:
            if time.monotonic() - self._idle_told > TELL_IDLE_S:
                text = "Nothing is due now, waits queued=%d waiting=%d next_in_s=%d"
                logger.info(text, step.queued, step.waiting, next_s)
                self._idle_told = time.monotonic()
            return
        if not step.queued:
            return
        rest = await resting(self.frontier.operator)
        self.stats.set_value(metrics.FRONTIER_POISON_CANDIDATES, rest.urls)
        text = (
            "Nothing is due soon, what waits stays queued urls=%d next_in_s=%d poison_candidates=%d"
        )
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
                lease.url,
                spider.parse_robots,
                errback=spider.failed,
                dont_filter=True,
                meta={"lease": lease},
            )
        cached = self.rules.get(lease.domain)
        if cached is None or cached[0] != lease.robots_version:
            entry = await self.frontier.robots(lease.domain)
            rules = (
                None
                if entry is None
                else RobotsRules.parse_answer(entry.status, entry.body, self.user_agent)
            )
            cached = self.rules[lease.domain] = (lease.robots_version, rules)
        meta = {"lease": lease, "robots": cached[1], "download_slot": SLOT}
        return Request(lease.url, spider.parse, errback=spider.failed, dont_filter=True, meta=meta)
