"""WebSub (W3C Recommendation, 2018): feeds whose hub tells us of new entries at once.

Three parts, which meet in Redis. A worker that reads a feed which names a hub notes it
(:meth:`Subscriptions.note`). `scrapy serve` asks the hub for a subscription and renews it
(newscrawler.crawl.hub_requests), answers the hub's questions and takes what it sends
(newscrawler.api.websub_routes). A worker reads what was sent as it reads a fetched feed
(:meth:`Subscriptions.pop`, newscrawler.extensions.PushedFeeds): what the entries lead to is
admitted, queued and fetched as any link. Feeds are visited as before, so that a hub which is silent
costs nothing but time.

    {fleet}:hub:feeds           hash  address of a feed -> Subscription as JSON
    {fleet}:hub:tokens          hash  token of a callback's address -> address of the feed
    {fleet}:hub:pushed          list  JSON of a site, the feed's address and when it came (real
                                      seconds), a line end, the body
    {fleet}:hub:had:<digest>    text  a body that came lately
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from redis.asyncio import Redis

from newscrawler.frontier.errors import translated

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

FEEDS = "{fleet}:hub:feeds"
TOKENS = "{fleet}:hub:tokens"
PUSHED = "{fleet}:hub:pushed"
_HAD = "{fleet}:hub:had:"

#: Subscriptions of a fleet; bodies that wait for a worker; and seconds that a body is remembered.
MOST_FEEDS, MOST_PUSHED, HAD_S = 5_000, 100, 86_400
#: A worker notes the hub of a feed again after so many seconds: others may have ended it meanwhile.
TOLD_S = 3_600.0
#: A worker that does not crawl the site leaves what came to others for so many seconds.
BACK_S = 60.0
#: Seconds of a subscription that are believed at most.
LONGEST_LEASE_S = 30 * 86_400
#: A subscription is renewed when this share of it is over.
RENEWED_AT = 0.8
#: Seconds within which a hub has to come back with its question, and after which one that said no,
#: or was away, is asked again: doubling four times each, a day at most.
ANSWER_S, AGAIN_S, LONGEST_AGAIN_S = 600.0, 60.0, 86_400.0
#: A body is remembered only when it waits for a worker: otherwise the hub, which was told that it
#: failed, would send it again in vain. KEYS: digest, list; ARGV: packed body, most that wait, for
#: how many seconds the digest is kept.
_TAKE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 'known' end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[2]) then return 'full' end
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], 1, 'EX', ARGV[3])
return 'taken'
"""
_METHODS = {
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
}


@dataclass(slots=True)
class Subscription:
    """``state``: wanted, asked (the hub has to come back), active, denied, failed, leaving (to be
    ended). Times are real ones, seconds."""

    feed: str
    site: str
    hub: str
    topic: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    secret: str = field(default_factory=lambda: secrets.token_hex(24))
    state: str = "wanted"
    asked_s: float = 0.0
    lease_s: float = 0.0
    expires_s: float = 0.0
    next_s: float = 0.0
    tries: int = 0
    pushes: int = 0
    pushed_s: float = 0.0
    reason: str = ""
    callback: str = ""  # the public address to which its hub sends; "" = by a version of before
    asked_callback: str = ""  # the one that was asked for last

    def has_moved(self, callback: str) -> bool:
        """Whether its hub sends to another address than this one."""
        return self.state == "active" and bool(self.callback) and self.callback != callback

    def is_active(self, now_s: float) -> bool:
        return self.state == "active" and now_s < self.expires_s

    def is_due(self, now_s: float, callback: str) -> bool:
        """Whether the hub is to be asked now. ``callback``: the public address of today."""
        if now_s < self.next_s:
            return False
        if self.has_moved(callback):
            return True
        if self.state == "active":
            return now_s >= self.expires_s - self.lease_s * (1 - RENEWED_AT)
        return self.state != "asked" or now_s >= self.asked_s + ANSWER_S

    def is_meant(self, hub: str, topic: str) -> bool:
        """One that is being ended is none: it is begun anew."""
        return (self.hub, self.topic) == (hub, topic) and self.state != "leaving"

    def has_asked(self, now_s: float) -> bool:
        """Whether the hub may come back with its question."""
        return bool(self.asked_s) and now_s < self.asked_s + max(ANSWER_S, LONGEST_AGAIN_S)

    def renewing(self, now_s: float) -> None:
        """A hub that takes each renewal and confirms none is asked less and less often; when the
        lease is over it is asked as for a new one."""
        self.tries += 1
        wait_s = min(LONGEST_AGAIN_S, ANSWER_S * 4.0 ** (self.tries - 1))
        self.next_s = min(now_s + wait_s, max(self.expires_s, now_s + ANSWER_S))

    def failed(self, now_s: float, reason: str, *, is_counted: bool = False) -> None:
        """What is active stays so until its lease is over. ``is_counted``: the try is in ``tries``
        already."""
        self.tries += not is_counted
        self.next_s = now_s + min(LONGEST_AGAIN_S, AGAIN_S * 4.0 ** (self.tries - 1))
        self.reason = reason[:200]
        if self.state not in ("leaving", "active") or now_s >= self.expires_s:
            self.state = "leaving" if self.state == "leaving" else "failed"


class Pushed(NamedTuple):
    """A body that a hub has sent. ``came_s``: real seconds."""

    site: str
    feed: str
    body: bytes
    came_s: float


class Subscriptions:
    """:param client: its answers are bytes. Every coroutine may raise FrontierUnavailable."""

    def __init__(self, client: Redis, clock: Callable[[], float] = time.time) -> None:
        self.client: Any = client
        self.clock = clock
        self._told: dict[str, tuple[str, str, float]] = {}  # feed -> hub, topic, real seconds

    # ------------------------------------------------------------------ workers
    async def note(self, site: str, feed: str, hub: str, topic: str) -> None:
        """A feed was read; ``hub`` "" = it names none."""
        *told, told_s = self._told.get(feed, ("", "", 0.0))
        if told == [hub, topic] and self.clock() < told_s + TOLD_S:
            return
        with translated():
            known = await self._get(feed)
            if hub and (known is None or not known.is_meant(hub, topic)):
                await self._begin(known, Subscription(feed, site, hub, topic))
            elif not hub and known is not None and known.state != "leaving":
                known.state, known.next_s, known.tries = "leaving", 0.0, 0
                known.reason = "the feed names no hub any more"
                await self._put(known)
        if len(self._told) > MOST_FEEDS:
            self._told.clear()
        self._told[feed] = (hub, topic, self.clock())

    async def _begin(self, known: Subscription | None, new: Subscription) -> None:
        if known is None and await self.client.hlen(FEEDS) >= MOST_FEEDS:
            return
        pipe = self.client.pipeline(transaction=True)
        if known is not None:  # at another hub: what the old one sends is gone
            pipe.hdel(TOKENS, known.token)
            pipe.hset(FEEDS, new.feed, _packed(new))
        else:
            pipe.hsetnx(FEEDS, new.feed, _packed(new))
        await pipe.execute()
        stored = await self._get(new.feed)
        if stored is not None:  # another worker may have been sooner
            await self.client.hset(TOKENS, stored.token, new.feed)

    async def pop(self) -> Pushed | None:
        """None: there is none."""
        with translated():
            packed = await self.client.lpop(PUSHED)
        if packed is None:
            return None
        head, _, body = packed.partition(b"\n")
        site, feed, *came_s = json.loads(head)
        return Pushed(site, feed, body, came_s[0] if came_s else 0.0)

    async def give_back(self, pushed: Pushed) -> bool:
        """By a worker that does not crawl the site: another may, with ``-a sites=`` or ``urls=``.
        False: nobody has taken it for too long."""
        if self.clock() >= pushed.came_s + BACK_S:
            return False
        with translated():
            await self.client.rpush(PUSHED, _packed_push(pushed))
        return True

    # ------------------------------------------------------------------ the callback
    async def of_token(self, token: str) -> Subscription | None:
        with translated():
            feed = await self.client.hget(TOKENS, token)
            found = None if feed is None else await self._get(feed.decode())
        return found if found is not None and found.token == token else None

    async def verified(self, sub: Subscription, mode: str, topic: str, lease_s: float) -> bool:
        """The hub asks whether we have asked for this (WebSub 5.3)."""
        now_s = self.clock()
        if topic != sub.topic or not sub.has_asked(now_s):
            return False
        if mode == "unsubscribe":
            if sub.state == "leaving":
                await self.remove(sub)
            return sub.state == "leaving"
        if mode != "subscribe" or sub.state == "leaving" or lease_s <= 0:
            return False
        sub.lease_s = min(lease_s, LONGEST_LEASE_S)
        sub.state, sub.expires_s = "active", now_s + sub.lease_s
        sub.tries, sub.next_s, sub.reason = 0, 0.0, ""
        sub.callback = sub.asked_callback
        with translated():
            await self._put(sub)
        return True

    async def too_large(self, sub: Subscription, most: int) -> None:
        """The hub has sent more bytes than are taken: said with the subscription."""
        with translated():
            now = await self._get(sub.feed)
            if now is not None and now.token == sub.token:
                now.reason = f"a push had more than {most:,} bytes: the feed is visited only"
                await self._put(now)

    async def denied(self, sub: Subscription, reason: str) -> None:
        """One that is being ended is over with it: its callback is gone, which ends it as well."""
        if sub.state == "leaving":
            await self.remove(sub)
            return
        sub.state, sub.next_s = "denied", self.clock() + LONGEST_AGAIN_S
        sub.reason = reason[:200]
        with translated():
            await self._put(sub)

    async def push(self, sub: Subscription, body: bytes) -> str:
        """Takes a body whose signature is right: "taken", "known" (it came before) or "full"."""
        digest = hashlib.sha256(sub.token.encode() + body).hexdigest()
        with translated():
            packed = _packed_push(Pushed(sub.site, sub.feed, body, self.clock()))
            keys = (_HAD + digest, PUSHED)
            became = await self.client.eval(_TAKE, 2, *keys, packed, MOST_PUSHED, HAD_S)
            if became != b"taken":
                return str(became.decode())
            now = await self._get(sub.feed)  # it may have been renewed meanwhile
            if now is not None:
                now.pushes, now.pushed_s = now.pushes + 1, self.clock()
                await self._put(now)
        return "taken"

    # ------------------------------------------------------------------ all
    async def all(self) -> list[Subscription]:
        with translated():
            rows = await self.client.hgetall(FEEDS)
        return sorted(map(_read, rows.values()), key=lambda sub: (sub.site, sub.feed))

    async def current(self, sub: Subscription) -> Subscription | None:
        """As it stands now; None: it is gone, another one, or in another state than ``sub``."""
        with translated():
            now = await self._get(sub.feed)
        is_same = now is not None and (now.token, now.state) == (sub.token, sub.state)
        return now if is_same else None

    async def save(self, sub: Subscription) -> None:
        with translated():
            await self._put(sub)

    async def remove(self, sub: Subscription) -> None:
        with translated():
            await self.client.hdel(FEEDS, sub.feed)
            await self.client.hdel(TOKENS, sub.token)

    async def _get(self, feed: str) -> Subscription | None:
        row = await self.client.hget(FEEDS, feed)
        return None if row is None else _read(row)

    async def _put(self, sub: Subscription) -> None:
        await self.client.hset(FEEDS, sub.feed, _packed(sub))


def _packed(sub: Subscription) -> str:
    return json.dumps(asdict(sub))


def _packed_push(pushed: Pushed) -> bytes:
    head = json.dumps([pushed.site, pushed.feed, pushed.came_s]).encode()
    return head + b"\n" + pushed.body


def _read(row: bytes) -> Subscription:
    """What a later version has more is left out."""
    known = {one.name for one in fields(Subscription)}
    return Subscription(**{name: value for name, value in json.loads(row).items() if name in known})


def is_signed(body: bytes, secret: str, header: str) -> bool:
    """``header``: X-Hub-Signature, ``method=hex`` (WebSub 7.1)."""
    method, _, told = header.strip().partition("=")
    digest = _METHODS.get(method.lower())
    if digest is None:
        return False
    right = hmac.new(secret.encode(), body, digest).hexdigest()
    return hmac.compare_digest(right.encode(), told.strip().lower().encode())


# ---------------------------------------------------------------- the public address
def public_url(settings: BaseSettings) -> str:
    """PUBLIC_URL without a slash at its end; "" = there is none, and nobody is asked to push.

    :raises ValueError: it is none
    """
    url = str(settings.get("PUBLIC_URL") or "").strip().rstrip("/")
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"PUBLIC_URL is {url!r}; it must be like https://news.example.org")
    return url
