"""Asks hubs (WebSub) for subscriptions, renews and ends them: what `scrapy serve` does for them
beside its page. newscrawler.crawl.websub has the whole of it.

A hub is no site: what is asked of it is one small form, a second apart at least, less and less
often when it fails, through the guard of addresses, over https.

    {fleet}:hub:look            text  which server of the fleet asks hubs now
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin, urlsplit

from newscrawler.crawl import opening, site_choice
from newscrawler.crawl.websub import ANSWER_S, Subscription, Subscriptions, public_url
from newscrawler.fetch import address_guard
from newscrawler.fetch.client import Answer, FetchError, FetchRules, HttpClient
from newscrawler.frontier import connect
from newscrawler.frontier.errors import translated
from newscrawler.frontier.types import FrontierUnavailable
from newscrawler.web import urls

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

_LOOK = "{fleet}:hub:look"
#: Seconds of a subscription that are asked for; the hub decides.
LEASE_S = 7 * 86_400
#: Tries to end a subscription; then its callback is gone, which ends it as well.
LEAVE_TRIES = 3
#: Seconds between two looks, between two requests to one hub, and of a lock on looking.
LOOK_S, HUB_DELAY_S, LOCK_S = 10.0, 1.0, 120
#: Redirects of a hub that are followed (WebSub 5.1: 307 and 308).
_MOST_HOPS = 2


class Subscriber:
    """Asks hubs, beside the page.

    :param callback: the public address, to which the token is added
    :param wanted: ids of the sites that are crawled; asked in a thread, once a look, as it reads
        files
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        client: HttpClient,
        callback: str,
        wanted: Callable[[], Container[str]],
        headers: Mapping[str, str],
    ) -> None:
        self._subs = subscriptions
        self._client = client
        self._callback = callback
        self._wanted = wanted
        self._headers = [*headers.items(), ("Content-Type", "application/x-www-form-urlencoded")]
        self._name = secrets.token_hex(8)
        self._asked: dict[str, float] = {}  # hub -> monotonic seconds

    async def run(self, end: asyncio.Event) -> None:
        while not end.is_set():
            try:
                await self.look()
            except FrontierUnavailable as exc:
                logger.warning("Hubs are asked later error=%s", exc)
            except Exception:  # a site file in the midst of an edit, a row of another version
                logger.exception("Hubs could not be asked, goes on")
            try:
                async with asyncio.timeout(LOOK_S):
                    await end.wait()
            except TimeoutError:
                continue

    async def look(self) -> int:
        """Asks each hub of which something is due; how many were asked. One server of the fleet
        does it at a time."""
        if not await self._has_turn():
            return 0
        asked, rows = 0, await self._subs.all()
        wanted = await asyncio.to_thread(self._wanted) if rows else ()
        for row in rows:
            is_over = row.state != "leaving" and row.site not in wanted
            is_due = is_over or row.is_due(self._subs.clock(), self._callback)
            if not is_due or not await self._has_turn():
                continue
            # The hubs before it may have taken minutes: a worker or a hub may have changed it.
            sub = await self._subs.current(row)
            if sub is None:
                continue
            if is_over:
                sub.state, sub.next_s, sub.tries = "leaving", 0.0, 0
                sub.reason = "the site is crawled no more"
                await self._subs.save(sub)
            if sub.is_due(self._subs.clock(), self._callback):
                await self._ask(sub)
                asked += 1
        return asked

    async def _has_turn(self) -> bool:
        client = self._subs.client
        with translated():
            if await client.set(_LOOK, self._name, nx=True, ex=LOCK_S):
                return True
            is_mine = bool(await client.get(_LOOK) == self._name.encode())
            if is_mine:
                await client.expire(_LOOK, LOCK_S)
            return is_mine

    async def _ask(self, sub: Subscription) -> None:
        now_s = self._subs.clock()
        if sub.state == "leaving" and (sub.tries >= LEAVE_TRIES or not sub.asked_s):
            await self._subs.remove(sub)
            return
        if sub.state == "asked":
            sub.failed(now_s, "the hub did not come back")
            await self._subs.save(sub)
            return
        # Before the hub is asked, as it may come back before it has answered.
        sub.asked_s, sub.asked_callback, sub.next_s = now_s, self._callback, now_s + ANSWER_S
        is_renewal = sub.is_active(now_s)
        if is_renewal:
            sub.renewing(now_s)
        elif sub.state == "leaving":
            sub.tries += 1
        else:
            sub.state = "asked"
        await self._subs.save(sub)
        try:
            answer = await self._posted(sub)
            reason = "" if 200 <= answer.status < 300 else _reason(answer)
        except FetchError as exc:
            reason = f"{exc.reason}: {urls.domain_of(sub.hub) or sub.hub[:100]}"
        if reason:
            known = await self._subs.of_token(sub.token)
            if known is not None:
                known.failed(self._subs.clock(), reason, is_counted=is_renewal)
                await self._subs.save(known)
        logger.info(
            "Hub asked hub=%s feed=%s mode=%s reason=%s",
            sub.hub, sub.feed, _mode(sub), reason or "-",
        )  # fmt: skip

    async def _posted(self, sub: Subscription) -> Answer:
        """:raises FetchError: no whole answer, or an address that is none"""
        try:
            return await self._posted_to(sub.hub, sub)
        except ValueError as exc:  # of urlsplit or urljoin: a publisher and a hub write these
            raise FetchError(sub.hub, f"no address: {exc}", "address") from exc

    async def _posted_to(self, url: str, sub: Subscription) -> Answer:
        form = {
            "hub.callback": f"{self._callback}/websub/{sub.token}",
            "hub.mode": _mode(sub),
            "hub.topic": sub.topic,
        }
        if sub.state != "leaving":
            form |= {"hub.lease_seconds": str(LEASE_S), "hub.secret": sub.secret}
        body = urlencode(form).encode()
        for _ in range(_MOST_HOPS + 1):
            _check_hub(url)
            await self._pause(url)
            answer = await self._client.fetch(url, self._headers, method="POST", body=body)
            target = answer.header("location")
            if answer.status not in (307, 308) or not target:
                break
            url = urljoin(url, target)
        return answer

    async def _pause(self, url: str) -> None:
        host = urlsplit(url).netloc
        wait_s = self._asked.get(host, 0.0) + HUB_DELAY_S - time.monotonic()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        self._asked[host] = time.monotonic()


def _mode(sub: Subscription) -> str:
    return "unsubscribe" if sub.state == "leaving" else "subscribe"


def _check_hub(url: str) -> None:
    """The secret goes over TLS alone (WebSub 5.1), but on this machine.

    :raises FetchError: not such an address
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_here = address_guard.is_literal(host) and address_guard.refusal(host) == "loopback"
    if parts.scheme == "https" or (parts.scheme == "http" and is_here):
        return
    raise FetchError(url, "a hub is asked over https only", "scheme")


def _reason(answer: Answer) -> str:
    text = " ".join(answer.body[:120].decode("utf-8", "replace").split())
    return f"{answer.status} {text}".strip()


def beside(settings: BaseSettings) -> Callable[[asyncio.Event], Any] | None:
    """What `scrapy serve` runs beside its page; None: PUBLIC_URL is not set.

    :raises ValueError: a setting is wrong
    """
    callback = public_url(settings)
    if not callback:
        return None
    rules = FetchRules.from_settings(settings)

    async def run(end: asyncio.Event) -> None:
        client, http = connect(opening.redis_url(settings), single=False), HttpClient(rules)

        def wanted() -> set[str]:
            return {site.id for site in site_choice.all_sites(settings).enabled()}

        headers = {"User-Agent": str(settings["USER_AGENT"]), "Accept": "*/*"}
        try:
            subscriptions = Subscriptions(client)
            await Subscriber(subscriptions, http, callback, wanted, headers).run(end)
        finally:
            await http.close()
            await client.aclose()

    return run
