"""One at a time of those that take stored things out: prune, rekey, take-down.

On a machine a lock on a file of DATA_DIR. Stores that machines share (an object store, an
Elasticsearch) have a lock each in the fleet's Redis, where REDIS_URL names one: it runs out
unless it is renewed, and who holds it asks before each file that it changes (:meth:`Held.still`),
so that a process which was stopped for a while does not go on beside the one that took over.

    {fleet}:keeping:<store>         text  "<token> <name>" of the process at work; expires
    {fleet}:keeping:<store>:token   the last token; it only grows
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisClusterException, RedisError

from newscrawler.crawl import opening
from newscrawler.fleet import scripts
from newscrawler.fleet.registry import TAG
from newscrawler.frontier import connect_blocking
from newscrawler.rawstore import RawStoreUnavailable

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

Say = Callable[[str], None]
#: Ms that a lock lasts without renewal, and seconds between two renewals.
LASTS_MS, RENEW_S = 60_000, 10.0
_AT_WORK = "another `scrapy store prune`, `store rekey` or `takedown` is at work"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One at a time on a machine.

    :raises RawStoreUnavailable: another one is at it
    """
    with (folder / "prune.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RawStoreUnavailable(f"{_AT_WORK} here") from None
        yield


@contextmanager
def alone_in_fleet(settings: BaseSettings, say: Say) -> Iterator[Held]:
    """One at a time on this machine, and on each store that other machines may work on as well.
    Where Redis does not answer that is said, and the lock is the machine's. Blocking.

    :raises RawStoreUnavailable: another one is at it
    """
    with alone(opening.data_dir(settings)):
        held = Held(None, [], "")
        try:  # the client of a cluster asks it at once
            held = Held(_client(settings), _shared_stores(settings), _own_name())
            held.take()
        except (RedisError, RedisClusterException) as exc:
            held.give_up()  # those that it has already
            say(f"only this machine is locked, as Redis does not answer: {exc}")
            held = Held(None, [], "")
        try:
            yield held
        finally:
            held.give_up()


def _own_name() -> str:
    """No two have the same, also in one process."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def _client(settings: BaseSettings) -> Any:
    """None: this machine is the fleet."""
    url = str(settings.get("REDIS_URL") or "")
    return connect_blocking(url, socket_connect_timeout=5, socket_timeout=5) if url else None


def _shared_stores(settings: BaseSettings) -> list[str]:
    """Keys of the locks, in the order in which all take them. A folder is of one machine."""
    articles = str(settings.get("ARTICLE_STORE") or "")
    stores = [str(settings.get("RAW_STORE") or ""), articles]
    if "://" in articles:
        stores[1] += f" {settings.get('ARTICLE_INDEX')}"
    names = [store.rstrip("/") for store in stores if "://" in store]
    digests = [hashlib.blake2b(one.encode(), digest_size=8).hexdigest() for one in names]
    return sorted(f"{TAG}:keeping:{one}" for one in digests)


class Held:
    """Locks of shared stores. ``client`` None: there are none."""

    def __init__(self, client: Any, names: list[str], who: str) -> None:
        self._client, self._names, self._who = client, names if client is not None else [], who
        self._tokens: dict[str, str] = {}  # name -> "<token> <name>"
        self._lost = ""
        self._renewed = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="keeping", daemon=True)

    def take(self) -> None:
        """:raises RawStoreUnavailable: another one has one of them"""
        for name in self._names:
            answer = self._ask(name, "", LASTS_MS)
            if answer.partition(" ")[2] != self._who:
                self.give_up()
                other = answer.partition(" ")[2] or "nobody"
                raise RawStoreUnavailable(f"{_AT_WORK} on the same store: {other}")
            self._tokens[name] = answer
        self._renewed = time.monotonic()
        if self._names:
            self._thread.start()

    def still(self) -> None:
        """Asked before each change that cannot be repeated by two at once.

        :raises RawStoreUnavailable: the lock ran out, or another one has it
        """
        for name, token in self._tokens.items():
            try:
                if self._ask(name, token, LASTS_MS, is_renewal=True) != token:
                    self._lost = "another one is at work on the same store"
            except (RedisError, RedisClusterException) as exc:
                if time.monotonic() - self._renewed > LASTS_MS / 1000 / 2:
                    self._lost = f"Redis does not answer: {exc}"
            if self._lost:
                raise RawStoreUnavailable(f"the lock of the store was lost: {self._lost}")

    def give_up(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        for name, token in self._tokens.items():
            try:
                self._ask(name, token, 0)
            except (RedisError, RedisClusterException):
                pass  # it runs out
        self._tokens.clear()
        if self._client is not None:
            self._client.close()

    def _renew(self) -> None:
        while not self._end.wait(RENEW_S):
            try:
                for name, token in list(self._tokens.items()):
                    if self._ask(name, token, LASTS_MS, is_renewal=True) != token:
                        self._lost = "another one is at work on the same store"
                self._renewed = time.monotonic()
            except (RedisError, RedisClusterException):
                continue  # still() says so when it lasts

    def _ask(self, name: str, token: str, lasts_ms: int, *, is_renewal: bool = False) -> str:
        """ "<token> <name>" of the process that has it now."""
        who = "" if is_renewal else self._who
        script = self._client.register_script(scripts.source("lead"))
        answer = script(keys=[name, f"{name}:token"], args=[token, who, lasts_ms])
        return answer.decode() if isinstance(answer, bytes) else str(answer)
