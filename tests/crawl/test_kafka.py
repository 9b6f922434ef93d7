"""Events on a real Kafka of one node, which is killed and comes back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from newscrawler.crawl.announce import Dispatcher
from newscrawler.crawl.kafka import KafkaSink
from newscrawler.items import Article
from newscrawler.store.sqlite import LocalStore
from tests.fixtures_kafka import Kafka

pytestmark = pytest.mark.chaos
TOPIC = "news"


def article(number: int, title: str = "") -> Article:
    name = f"{number:032x}"
    return Article(
        name, f"https://a.vn/{number}", "a.vn", title or f"Tin {number}", f"Nội {number}"
    )


async def consumed(servers: str, most: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Key, header ``event`` and value of the messages from the beginning."""
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest")
    await consumer.start()
    found = []
    try:
        async with asyncio.timeout(120):
            while len({name for _, name, _ in found}) < most:
                message = await consumer.getone()
                headers = dict(message.headers)
                found.append(
                    (message.key.decode(), headers["event"].decode(), json.loads(message.value))
                )
    finally:
        await consumer.stop()
    return found


@pytest.mark.long
async def test_a_broker_that_is_killed_loses_nothing_and_blocks_nothing(
    kafka: Kafka, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path / "articles.db")
    dispatcher = Dispatcher(store.outbox, {"kafka": KafkaSink(kafka.servers, TOPIC)})
    await dispatcher.begin()
    dispatcher.start()
    loop = asyncio.get_running_loop()
    try:
        await store.put([article(n) for n in range(50)])
        await dispatcher.drain(60)
        await loop.run_in_executor(None, kafka.kill)
        for n in range(50, 100, 10):  # returns while nobody takes the events
            await store.put([article(k) for k in range(n, n + 10)])
            await store.put([article(n, f"Tin {n}, sửa")])
        await dispatcher.drain(5)
        await loop.run_in_executor(None, kafka.start)
        messages = await consumed(kafka.servers, 105)
    finally:
        await dispatcher.close()
        await store.close()
    due = {f"{n:032x}.1" for n in range(100)} | {f"{n:032x}.2" for n in range(50, 100, 10)}
    assert {name for _, name, _ in messages} == due
    for key, name, value in messages:
        assert (value["id"], value["event"]) == (key, name)
    for n in range(50, 100, 10):
        mine = [name for key, name, _ in messages if key == f"{n:032x}"]
        assert mine.index(f"{n:032x}.1") < mine.index(f"{n:032x}.2")
