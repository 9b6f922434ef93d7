"""Feeds whose hub tells of new entries: asked for by the server, told to its callback, over a real
Redis and a real hub (tests/websub_hub.py)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import redis.asyncio

from newscrawler.api.access import Access
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import bind, start_in_thread
from newscrawler.commands.serve import _together
from newscrawler.crawl import hub_requests, websub
from newscrawler.crawl.hub_requests import Subscriber, beside
from newscrawler.crawl.waits import Waits
from newscrawler.crawl.websub import Subscription, Subscriptions, is_signed
from newscrawler.discovery.feeds import header_links, parse_feed
from newscrawler.discovery.sitefile import SitesError
from newscrawler.discovery.sites import Sites
from newscrawler.extensions import PushedFeeds
from newscrawler.fetch.address_guard import parse_networks
from newscrawler.fetch.client import FetchRules, HttpClient
from newscrawler.fleet.registry import Registry
from newscrawler.frontier.types import FrontierError
from newscrawler.store import open_store
from tests.fixtures_redis import until
from tests.patience import Deadline
from tests.unit.api.test_schema import crawl_settings
from tests.websub_hub import Hub

SECRET = "0123456789abcdef" * 2
FEED = "http://127.0.9.61/rss"
BODY = b"<rss><channel><item><link>http://127.0.9.61/bai-1.html</link></item></channel></rss>"


@dataclass
class Server:
    """A server of the page with the callback, and its part that asks hubs, which the test calls."""

    redis_url: str
    hub: Hub
    public: str = ""
    now: float = 0.0
    wanted: set[str] = field(default_factory=lambda: {"bao.vn"})
    reads: int = 0  # of the sites' files
    read_in: set[bool] = field(default_factory=set)  # whether that was in the main thread

    def ask(self, work: Callable[[Subscriptions], Any]) -> Any:
        async def run() -> Any:
            async with redis.asyncio.Redis.from_url(self.redis_url) as client:
                return await work(Subscriptions(client, lambda: time.time() + self.now))

        return asyncio.run(run())

    def wanted_now(self) -> set[str]:
        self.reads += 1
        self.read_in.add(threading.current_thread() is threading.main_thread())
        return self.wanted

    def note(self, hub: str | None = None, feed: str = FEED) -> None:
        self.ask(lambda subs: subs.note("bao.vn", feed, self.hub.url if hub is None else hub, feed))

    def look(self, allowed: str = "127.0.0.0/8") -> int:
        async def run(subs: Subscriptions) -> int:
            client = HttpClient(FetchRules(allowed=parse_networks(allowed)))
            await subs.client.delete("{fleet}:hub:look")
            try:
                return await Subscriber(subs, client, self.public, self.wanted_now, {}).look()
            finally:
                await client.close()

        return int(self.ask(run))

    def one(self, feed: str = FEED) -> Subscription | None:
        return next((sub for sub in self.ask(lambda subs: subs.all()) if sub.feed == feed), None)

    def waits_of_failures(self, times: int, state: str) -> list[float]:
        """Seconds after each of so many requests that the hub answers with 503."""
        waits = []
        for _ in range(times):
            assert self.look() == 1
            sub = self.one()
            assert sub is not None and sub.state == state and sub.reason.startswith("503")
            waits.append(sub.next_s - time.time() - self.now)
            assert self.look() == 0
            self.now += waits[-1] + 1
        return waits

    def until(self, state: str) -> Subscription:
        deadline = Deadline(15)
        while (sub := self.one()) is None or sub.state != state:
            assert not deadline.is_over(), sub
            time.sleep(0.05)
        return sub

    def subscribed(self) -> Subscription:
        self.note()
        assert self.look() == 1
        sub = self.until("active")
        while not self.hub.subscribers:
            time.sleep(0.02)
        return sub

    def queued(self) -> list[tuple[str, str, bytes]]:
        async def run(subs: Subscriptions) -> list[Any]:
            found = []
            while (one := await subs.pop()) is not None:
                found.append(one[:3])
            return found

        return list(self.ask(run))

    def send(self, body: bytes = BODY, **more: Any) -> int:
        return self.hub.send(next(iter(self.hub.subscribers.values())), body, **more)


@pytest.fixture
def server(filled_folder: Path, selector_redis_url: str, tmp_path: Path) -> Iterator[Server]:
    made = Server(selector_redis_url, Hub())
    asyncio.run(_emptied(selector_redis_url))
    made.public = f"http://127.0.0.1:{free_port()}"
    settings = crawl_settings(tmp_path, selector_redis_url)
    settings.set("PUBLIC_URL", made.public, "cmdline")
    client = redis.asyncio.Redis.from_url(selector_redis_url)
    deps = Deps(
        store=open_store("", filled_folder), access=Access(SECRET), settings=settings,
        registry=Registry(client),
    )  # fmt: skip
    running = start_in_thread(create_app(deps), port=int(made.public.rpartition(":")[2]))
    yield made
    running.stop()
    made.hub.stop()


def free_port() -> int:
    sock = bind("127.0.0.1", 0)
    port = int(sock.getsockname()[1])
    sock.close()
    return port


async def _emptied(url: str) -> None:
    async with redis.asyncio.Redis.from_url(url) as client:
        await client.flushall()


def test_a_feed_that_names_a_hub_is_subscribed_to_and_what_is_sent_waits_for_a_worker(
    server: Server,
) -> None:
    sub = server.subscribed()
    (form,) = server.hub.requests
    assert form["hub.topic"] == FEED and len(form["hub.secret"]) >= 40
    assert sub.expires_s - time.time() == pytest.approx(server.hub.lease_s, abs=20)
    assert server.send() == 202
    assert server.queued() == [("bao.vn", FEED, BODY)]
    known = server.one()
    assert known is not None and known.pushes == 1
    assert server.look() == 0, "nothing is due"


@pytest.mark.parametrize("secret", ["wrong", ""], ids=["wrong", "none"])
def test_a_wrong_signature_is_answered_and_dropped(server: Server, secret: str) -> None:
    server.subscribed()
    assert server.send(secret=secret) == 202
    assert server.queued() == []
    assert server.send() == 202 and len(server.queued()) == 1


def test_the_same_body_again_is_dropped(server: Server) -> None:
    server.subscribed()
    assert [server.send() for _ in range(5)] == [202] * 5
    assert len(server.queued()) == 1


def test_a_huge_body_is_refused_and_a_flood_is_slowed(server: Server) -> None:
    server.subscribed()
    assert server.send(b"x" * 1_200_000) in (413, 0)  # 0: the connection was closed first
    sub = server.one()
    assert sub is not None and sub.reason.startswith("a push had more than 1,000,000 bytes")
    answers = [server.send(BODY + b" " * number) for number in range(120)]
    # a second lets one more through, and a busy machine takes many for these
    assert answers.count(429) >= 5
    assert len(server.queued()) == answers.count(202) < 120


def test_what_waits_is_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websub, "MOST_PUSHED", 3)
    server.subscribed()
    assert [server.send(BODY + b" " * n) for n in range(5)] == [202, 202, 202, 503, 503]
    assert len(server.queued()) == 3
    assert server.send(BODY + b" " * 4) == 202, "the hub sends it again, and it is taken then"


def test_a_lease_that_ran_out_takes_nothing_and_is_asked_for_again(server: Server) -> None:
    sub = server.subscribed()
    sub.expires_s = time.time() - 1
    server.ask(lambda subs: subs.save(sub))
    assert server.send() == 410 and server.queued() == []
    assert server.look() == 1
    server.until("active")
    assert server.send() == 202 and len(server.queued()) == 1


def test_a_lease_is_renewed_before_it_is_over(server: Server) -> None:
    server.subscribed()
    server.now = 0.7 * server.hub.lease_s
    assert server.look() == 0
    server.now = 0.85 * server.hub.lease_s
    assert server.look() == 1
    assert [form["hub.mode"] for form in server.hub.requests] == ["subscribe"] * 2
    assert server.one().state == "active", "pushes are taken meanwhile"  # type: ignore[union-attr]


def test_a_hub_that_is_away_is_asked_less_and_less(server: Server) -> None:
    server.hub.status = 503
    server.note()
    waits = server.waits_of_failures(4, "failed")
    assert waits == pytest.approx([60, 240, 960, 3840], abs=15)
    server.hub.status = 202
    server.look()
    server.until("active")


def test_a_hub_that_does_not_come_back_is_asked_again_later(server: Server) -> None:
    server.hub.is_silent = True
    server.note()
    assert server.look() == 1 and server.one().state == "asked"  # type: ignore[union-attr]
    assert server.look() == 0
    server.now = websub.ANSWER_S + 1
    server.look()
    sub = server.one()
    assert sub is not None and (sub.state, sub.reason) == ("failed", "the hub did not come back")


def test_a_hub_that_says_no_is_believed_for_a_day(server: Server) -> None:
    server.hub.denies = True
    server.note()
    server.look()
    assert server.until("denied").reason == "not for you"
    server.now = 23 * 3600
    assert server.look() == 0
    server.now = 25 * 3600
    assert server.look() == 1


def test_a_hub_that_denies_an_end_is_asked_no_more(server: Server) -> None:
    server.subscribed()
    server.hub.denies = True
    server.note("")
    assert server.look() == 1
    deadline = Deadline(120)
    while ("denied", 200) not in server.hub.answers:
        assert not deadline.is_over(), server.hub.answers
        time.sleep(0.02)
    assert server.one() is None, "its callback is gone, which ends it as well"
    server.wanted.clear()
    assert server.look() == 0
    assert [form["hub.mode"] for form in server.hub.requests] == ["subscribe", "unsubscribe"]


def test_a_renewal_that_is_never_confirmed_is_asked_less_and_less(server: Server) -> None:
    server.hub.lease_s = 7 * 86_400
    end_s = server.subscribed().expires_s
    server.hub.is_silent = True
    server.now = 0.81 * server.hub.lease_s
    waits: list[float] = []
    while time.time() + server.now < end_s:
        assert server.look() == 1 and len(waits) < 9
        sub = server.one()
        assert sub is not None
        waits.append(sub.next_s - time.time() - server.now)
        server.now += waits[-1] + 1
    assert waits[:4] == pytest.approx([600, 2_400, 9_600, 38_400], abs=60)
    assert len(waits) == 5, "once each 10 minutes it were 191"
    sub = server.one()
    assert sub is not None and sub.state == "active", "pushes are taken until the lease is over"
    assert sub.next_s <= end_s, "then it is asked for anew"
    server.hub.is_silent = False
    assert server.look() == 1
    deadline = Deadline(120)
    while (sub := server.one()) is None or sub.expires_s <= end_s:
        assert not deadline.is_over(), sub
        time.sleep(0.02)
    assert (sub.state, sub.tries) == ("active", 0)


def test_a_hub_that_refuses_a_renewal_is_asked_as_one_that_is_away(server: Server) -> None:
    server.hub.lease_s = 7 * 86_400
    server.subscribed()
    server.hub.status = 503
    server.now = 0.9 * server.hub.lease_s
    waits = server.waits_of_failures(3, "active")
    assert waits == pytest.approx([60, 240, 960], abs=15)


def test_hubs_are_told_of_another_public_address(server: Server) -> None:
    """The same server is reached by another host."""
    server.hub.lease_s = 7 * 86_400
    before = server.subscribed()
    assert before.callback == server.public and server.look() == 0
    server.public = server.public.replace("127.0.0.1", "localhost")
    assert server.look() == 1
    deadline = Deadline(120)
    while (sub := server.one()) is None or sub.callback != server.public:
        assert not deadline.is_over(), sub
        time.sleep(0.02)
    assert (sub.state, sub.token) == ("active", before.token)
    assert server.hub.requests[-1]["hub.callback"].startswith(f"{server.public}/websub/")
    assert server.look() == 0, "once"


def test_a_row_of_before_is_renewed_when_it_is_due(server: Server) -> None:
    server.hub.lease_s = 7 * 86_400
    sub = server.subscribed()
    sub.callback = sub.asked_callback = ""
    server.ask(lambda subs: subs.save(sub))
    assert server.look() == 0


def test_nobody_else_can_subscribe_us(server: Server) -> None:
    server.note()
    sub = server.one()
    assert sub is not None
    callback = f"{server.public}/websub/{sub.token}"
    assert server.hub.ask(callback, "subscribe", FEED, "x")[0] == 404, "we have not asked yet"
    server.look()
    server.until("active")
    assert server.hub.ask(callback, "subscribe", FEED + "/khac", "x")[0] == 404
    assert server.hub.ask(callback, "unsubscribe", FEED, "x")[0] == 404
    another = callback[:-1] + ("A" if callback[-1] == "_" else "_")
    assert server.hub.ask(another, "subscribe", FEED, "x")[0] == 410
    assert server.one().state == "active"  # type: ignore[union-attr]


@pytest.mark.parametrize("why", ["no hub", "site"])
def test_what_is_wanted_no_more_is_unsubscribed(server: Server, why: str) -> None:
    server.subscribed()
    if why == "site":
        server.wanted.clear()
    else:
        server.note("")
    assert server.look() == 1
    deadline = Deadline(15)
    while server.one() is not None or server.hub.subscribers:
        assert not deadline.is_over(), server.one()
        time.sleep(0.05)
    assert server.hub.requests[-1]["hub.mode"] == "unsubscribe"


def test_a_subscription_that_is_being_ended_begins_anew_when_its_hub_is_named_again(
    server: Server,
) -> None:
    before = server.subscribed()
    now_s = [time.time()]

    async def one_worker(subs: Subscriptions) -> None:
        subs.clock = lambda: now_s[0]
        await subs.note("bao.vn", FEED, server.hub.url, FEED)
        await Subscriptions(subs.client).note("bao.vn", FEED, "", FEED)  # another worker
        now_s[0] += websub.TOLD_S + 1
        await subs.note("bao.vn", FEED, server.hub.url, FEED)

    server.ask(one_worker)
    now = server.one()
    assert now is not None and now.state == "wanted" and now.token != before.token


def test_the_sites_are_read_once_a_look_and_not_by_the_event_loop(server: Server) -> None:
    assert server.look() == 0 and server.reads == 0, "there are no subscriptions"
    for number in range(5):
        server.note(feed=f"{FEED}/{number}")
        sub = server.one(f"{FEED}/{number}")
        assert sub is not None
        sub.next_s = time.time() + 900
        server.ask(partial(Subscriptions.save, sub=sub))
    server.look()
    assert server.reads == 1 and server.read_in == {False}


@pytest.mark.parametrize("wrong", ["https://[hub.vn/", "https://hub.vn:99999999/"])
def test_an_address_that_is_none_keeps_no_other_hub_from_being_asked(
    server: Server, wrong: str
) -> None:
    server.note(wrong, FEED + "/0")
    server.note()
    assert server.look() == 2
    server.until("active")
    sub = server.one(FEED + "/0")
    assert sub is not None and sub.state == "failed" and sub.reason


async def test_a_site_file_in_the_midst_of_an_edit_ends_no_asking(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, end = [], asyncio.Event()

    async def look(self: Subscriber) -> int:
        looks.append(1)
        if len(looks) == 2:
            end.set()
            return 0
        raise SitesError("sites.json", "", "", "cannot be read")

    monkeypatch.setattr(Subscriber, "look", look)
    monkeypatch.setattr(hub_requests, "LOOK_S", 0.01)
    nothing: Any = None
    subscriber = Subscriber(nothing, nothing, "https://a.vn", set, {})
    await asyncio.wait_for(subscriber.run(end), 10)
    assert len(looks) == 2 and "cannot be read" in caplog.text


async def test_a_work_beside_the_page_that_fails_is_told_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(end: asyncio.Event) -> None:
        raise RuntimeError("no disk")

    async def lasts(end: asyncio.Event) -> None:
        await end.wait()

    run, end = _together(fails, None, lasts), asyncio.Event()
    assert run is not None
    running = asyncio.ensure_future(run(end))
    await until(lambda: "no disk" in caplog.text, "the failure is told")
    assert not running.done()
    end.set()
    await running


def test_a_push_that_redis_did_not_take_may_come_again(server: Server) -> None:
    sub = server.subscribed()

    async def fails(subs: Subscriptions) -> None:
        await subs.client.set(websub.PUSHED, "no list")
        with pytest.raises(FrontierError):
            await subs.push(sub, BODY)
        await subs.client.delete(websub.PUSHED)
        assert await subs.push(sub, BODY) == "taken"
        assert await subs.push(sub, BODY) == "known"

    server.ask(fails)
    assert len(server.queued()) == 1


def test_what_changed_while_other_hubs_were_asked_is_not_written_over(server: Server) -> None:
    server.note()
    sub = server.one()
    assert sub is not None

    async def run(subs: Subscriptions) -> Any:
        rows = await subs.all()
        await subs.note("bao.vn", FEED, "https://moi.vn/hub", FEED)  # while a look is under way
        subs.all = lambda: asyncio.sleep(0, rows)  # type: ignore[method-assign]
        return await Subscriber(subs, nothing, server.public, server.wanted_now, {}).look()

    nothing: Any = None
    assert server.ask(run) == 0
    now = server.one()
    assert now is not None and now.token != sub.token
    assert (now.hub, now.state) == ("https://moi.vn/hub", "wanted")


def test_a_push_for_another_workers_site_is_left_to_that_worker(server: Server) -> None:
    server.subscribed()
    assert server.send() == 202

    async def other(subs: Subscriptions) -> None:
        """A worker that does not know the site."""
        scheduler: Any = None
        services = SimpleNamespace(websub=subs, sites=Sites([]), waits=Waits())
        engine = SimpleNamespace(scheduler=scheduler)
        self: Any = PushedFeeds.__new__(PushedFeeds)
        self.services, self.crawler = services, SimpleNamespace(engine=engine, spider=Reader())
        await self.look()

    server.ask(other)
    assert server.queued() == [("bao.vn", FEED, BODY)]
    assert server.send(BODY + b" ") == 202
    server.now = websub.BACK_S + 1
    server.ask(other)
    assert server.queued() == [], "nobody has taken it"


class Reader:
    """Of a worker that crawls other sites."""

    async def read_pushed(self, *_: Any) -> None:
        return None


def test_another_hub_gets_another_address_and_secret(server: Server) -> None:
    before = server.subscribed()
    server.note(server.hub.url + "?2")
    now = server.one()
    assert now is not None and now.state == "wanted"
    assert now.token != before.token and now.secret != before.secret
    assert server.send() == 410, "the old address is gone"


@pytest.mark.parametrize(
    ("hub", "allowed", "reason"),
    [
        ("http://169.254.169.254/hub", "127.0.0.0/8", "scheme"),
        ("https://10.0.0.1/hub", "127.0.0.0/8", "ssrf"),
        ("https://127.0.0.1/hub", "", "ssrf"),
        ("http://hub.example.org/", "127.0.0.0/8", "scheme"),
    ],
)
def test_a_hub_is_no_way_to_the_inside(server: Server, hub: str, allowed: str, reason: str) -> None:
    server.note(hub)
    server.look(allowed)
    sub = server.one()
    assert sub is not None and sub.state == "failed" and sub.reason.startswith(reason)


def test_without_a_public_address_there_is_no_callback(
    filled_folder: Path, selector_redis_url: str, tmp_path: Path
) -> None:
    settings = crawl_settings(tmp_path, selector_redis_url)
    deps = Deps(store=open_store("", filled_folder), settings=settings)
    running = start_in_thread(create_app(deps))
    try:
        assert httpx.get(f"{running.url}/websub/{'a' * 32}").status_code == 404
    finally:
        running.stop()
    assert beside(settings) is None
    for wrong in ("news.example.org", "ftp://a.b", "https://a.b/?x=1"):
        settings.set("PUBLIC_URL", wrong, "cmdline")
        with pytest.raises(ValueError, match="PUBLIC_URL"):
            websub.public_url(settings)


def test_where_a_feed_names_its_hub() -> None:
    rss = b"""<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>t</title>
      <atom:link rel="hub" href="https://hub.vn/"/><atom:link rel="self" href="/rss"/>
      <item><link>https://bao.vn/a-1.html</link></item></channel></rss>"""
    feed = parse_feed(rss, "https://bao.vn/x")
    assert (feed.hub, feed.topic) == ("https://hub.vn/", "https://bao.vn/rss")
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="https://h/"/>
      <entry><link href="https://bao.vn/a"/><link rel="hub" href="https://wrong/"/></entry></feed>"""
    assert parse_feed(atom, "https://bao.vn/x").hub == "https://h/"
    listed = (
        b'{"version": "https://jsonfeed.org/version/1.1", "feed_url": "https://bao.vn/f.json",'
        b' "hubs": [{"type": "rssCloud", "url": "https://no/"}, {"type": "WebSub", "url": "https://h/"}],'
        b' "items": []}'
    )
    feed = parse_feed(listed, "https://bao.vn/x")
    assert (feed.hub, feed.topic) == ("https://h/", "https://bao.vn/f.json")
    links = header_links(
        ['<https://h/>; rel="hub", </f>; rel=self; title="a,b"', "<https://2/>; rel=hub", "<<<;"],
        "https://bao.vn/x",
    )
    assert links == {"hub": "https://h/", "self": "https://bao.vn/f"}


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures_of_the_standard(method: str) -> None:
    right = hmac.new(b"geheim", BODY, getattr(hashlib, method)).hexdigest()
    assert is_signed(BODY, "geheim", f"{method}={right}")
    assert not is_signed(BODY + b" ", "geheim", f"{method}={right}")
    assert not is_signed(BODY, "geheim", f"{method}={right[:-1]}")
    assert not is_signed(BODY, "geheim", right) and not is_signed(BODY, "geheim", "md5=" + right)
