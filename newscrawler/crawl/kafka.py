"""Events to a topic of Kafka: an extra (requirements-kafka.txt).

The key of a message is the article's id, so that the events of an article are in one partition in
their order; the value is JSON (Event.plain); headers are ``event`` and ``type``. The producer is
idempotent and waits for all replicas.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from newscrawler.store.events import Event, EventsRefused
from newscrawler.utils import optional

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer
    from scrapy.settings import BaseSettings

#: Seconds that a broker may take, and a message wait in the producer.
_REQUEST_MS = 20_000


class KafkaSink:
    """See store.events.EventSink. ``options`` are AIOKafkaProducer's."""

    batch = 500

    def __init__(self, servers: str, topic: str, options: dict[str, Any] | None = None) -> None:
        if install := optional.missing("kafka"):
            raise ValueError(f"EVENT_KAFKA_SERVERS is set and aiokafka is missing: {install}")
        self._servers = [one.strip() for one in servers.split(",") if one.strip()]
        self._topic = topic
        self._options = options or {}
        self._producer: AIOKafkaProducer | None = None

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        options = dict(settings.getdict("EVENT_KAFKA_OPTIONS"))
        if password := os.environ.get(settings["EVENT_KAFKA_PASSWORD_ENV"]):
            options["sasl_plain_password"] = password
        if str(options.get("security_protocol", "")).endswith("SSL"):
            options.setdefault("ssl_context", ssl.create_default_context())
        return cls(settings["EVENT_KAFKA_SERVERS"], settings["EVENT_KAFKA_TOPIC"], options)

    async def deliver(self, events: Sequence[Event]) -> None:
        """:raises EventsRefused: these are too large for the server; it has all the others"""
        from aiokafka.errors import MessageSizeTooLargeError

        producer = await self._started()
        refused: dict[str, str] = {}
        sent = []
        try:
            for event in events:
                try:
                    sent.append(await self._send(producer, event))
                except MessageSizeTooLargeError as exc:
                    refused[event.id] = str(exc)
            for event, acknowledged in zip(
                [e for e in events if e.id not in refused], sent, strict=True
            ):
                try:
                    await acknowledged
                except MessageSizeTooLargeError as exc:
                    refused[event.id] = str(exc)
        except BaseException:
            # What it still holds would be sent behind what is offered again.
            self._producer = None
            for one in sent:
                one.cancel()
            await _stopped(producer)
            raise
        if refused:
            raise EventsRefused(refused)

    async def _send(self, producer: AIOKafkaProducer, event: Event) -> asyncio.Future[Any]:
        value = json.dumps(event.plain(), ensure_ascii=False).encode()
        headers = [("event", event.id.encode()), ("type", event.type.encode())]
        acknowledged: asyncio.Future[Any] = await producer.send(
            self._topic, value, key=event.article.id.encode(), headers=headers
        )
        return acknowledged

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            from aiokafka import AIOKafkaProducer

            producer = AIOKafkaProducer(
                bootstrap_servers=self._servers,
                client_id="newscrawler",
                enable_idempotence=True,
                request_timeout_ms=_REQUEST_MS,
                **self._options,
            )
            try:
                await producer.start()
            except BaseException:
                await _stopped(producer)
                raise
            self._producer = producer
        return self._producer

    async def close(self) -> None:
        if self._producer is not None:
            await _stopped(self._producer)
            self._producer = None


async def _stopped(producer: AIOKafkaProducer) -> None:
    """Lets go of its connections, whether the broker answers or not."""
    try:
        async with asyncio.timeout(5):
            await producer.stop()
    except Exception:
        return
