"""A process that stores articles and tells of them, to be killed:
``python -m tests.contract.teller STORE FILE FIRST COUNT MODE``.

STORE is a path or a URL with the index after "#"; a line of FILE is an event. MODE: "slow" tells
one event at a time and lets the store run ahead; "mute" stores and tells nothing; "rest" stores
nothing more, waits for its turn and ends when all is told; "look" ends at once when another one
delivers. Claims are shorter than they are, so that nobody waits long for a killed one's.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from newscrawler.crawl import announce
from newscrawler.crawl.announce import Dispatcher
from newscrawler.store.base import ArticleStore
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.elasticsearch.outbox import ElasticOutbox
from newscrawler.store.events import Event, outbox_of
from newscrawler.store.sqlite import LocalStore
from tests.contract.articles import article, filler


class File:
    batch = 5

    def __init__(self, path: Path, mode: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.mode = mode

    async def deliver(self, events: Sequence[Event]) -> None:
        if self.mode == "mute":
            await asyncio.Event().wait()
        for event in events:
            os.write(self.fd, f"{event.id}\n".encode())
            if self.mode == "slow":
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        os.close(self.fd)


def open_it(uri: str) -> ArticleStore:
    url, _, index = uri.partition("#")
    return ElasticStore(url, index=index) if index else LocalStore(Path(uri))


async def its_turn(dispatcher: Dispatcher) -> None:
    for _ in range(1200):
        if dispatcher.may_deliver():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("another one delivers for a minute")


async def main(uri: str, file: Path, first: int, count: int, mode: str) -> None:
    store = open_it(uri)
    outbox = outbox_of(store)
    assert outbox is not None
    announce.CLAIM_S, announce.HELD_S = 0.3, 1.5
    if isinstance(outbox, ElasticOutbox):
        outbox._claim_s = 3.0
    dispatcher = Dispatcher(outbox, {"file": File(file, mode)})
    await dispatcher.begin()
    dispatcher.start()
    for number in range(first, first + count, 4):
        batch = [article(f"k{n}", f"Bài {n}", filler(n, 40)) for n in range(number, number + 4)]
        await store.put(batch)
        if number % 8:
            batch[0].title += " (sửa)"
            await store.put(batch[:1])
        await store.mark_gone([batch[1].id])
        await dispatcher.stored([])
        print(number, flush=True)
    if mode == "rest":
        await its_turn(dispatcher)
    await dispatcher.drain(120)
    await dispatcher.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(
        main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    )
