"""Events by webhook, to a real HTTP server: signed, offered again, and kept when they are refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scrapy.settings import Settings

from newscrawler.crawl import opening
from newscrawler.crawl.announce import Dispatcher
from newscrawler.crawl.signature import SIGNATURE_HEADER, sign
from newscrawler.crawl.webhook import Post, ReceiverAway, WebhookSink
from newscrawler.items import Article
from newscrawler.store.events import Event, EventsRefused
from newscrawler.store.sqlite import LocalStore
from tests.fixtures_redis import until
from tests.fixtures_webhook import Receiver

SECRET = "s3cret"


def event(number: int) -> Event:
    article = Article(
        id=f"{number:032x}", url=f"https://a.vn/{number}", site="a.vn", title=f"Tin {number}", content="x"
    )  # fmt: skip
    return Event("new", 1, datetime(2026, 8, 1, tzinfo=UTC), article)


def titles(body: bytes) -> list[str]:
    return [one["title"] for one in json.loads(body)["events"]]


Made = Callable[..., WebhookSink]


@pytest.fixture
async def made(webhook: Receiver) -> AsyncIterator[Made]:
    sinks: list[WebhookSink] = []

    def make(tries: int = 3, secret: str = SECRET) -> WebhookSink:
        sinks.append(WebhookSink(Post(webhook.url, secret, 30), 50, tries))
        return sinks[-1]

    yield make
    for sink in sinks:
        await sink.close()


async def test_events_are_posted_together_and_signed(webhook: Receiver, made: Made) -> None:
    await made().deliver([event(1), event(2)])
    (body,) = webhook.bodies
    first, _ = json.loads(body)["events"]
    assert titles(body) == ["Tin 1", "Tin 2"]
    assert (first["event"], first["type"]) == (f"{event(1).article.id}.1", "article.new")
    assert webhook.headers[0][SIGNATURE_HEADER] == sign(body, SECRET)


async def test_the_one_that_is_refused_is_found_and_the_others_are_taken(
    webhook: Receiver, made: Made
) -> None:
    webhook.status = lambda body: 422 if "Tin 2" in titles(body) else 200
    with pytest.raises(EventsRefused) as refused:
        await made().deliver([event(1), event(2), event(3)])
    assert refused.value.reasons == {event(2).id: "422"}
    assert [titles(b) for b in webhook.bodies] == [
        ["Tin 1", "Tin 2", "Tin 3"], ["Tin 1"], ["Tin 2"], ["Tin 3"],
    ]  # fmt: skip


async def test_what_fails_again_and_again_is_a_refusal_and_nothing_is_told_twice(
    webhook: Receiver, made: Made
) -> None:
    webhook.status = lambda body: 500 if "Tin 2" in titles(body) else 200
    sink = made(tries=3)
    batch = [event(1), event(2), event(3)]
    for _ in range(2):
        with pytest.raises(ReceiverAway, match=r"127\.0\.0\.1 answers 500"):
            await sink.deliver(batch)
    with pytest.raises(EventsRefused) as refused:
        await sink.deliver(batch)
    assert list(refused.value.reasons) == [event(2).id]
    singles = [titles(body)[0] for body in webhook.bodies if len(titles(body)) == 1]
    assert singles == ["Tin 1", "Tin 2", "Tin 2", "Tin 2", "Tin 3"]


@pytest.mark.parametrize("status", [302, 401, 404, 429, 503])
async def test_who_is_not_ready_is_asked_again(webhook: Receiver, made: Made, status: int) -> None:
    webhook.status = lambda body: status
    sink = made(tries=1)
    for _ in range(3):
        with pytest.raises(ReceiverAway, match=str(status)):
            await sink.deliver([event(1), event(2)])
    webhook.status = lambda body: 200
    await sink.deliver([event(1), event(2)])
    assert titles(webhook.bodies[-1]) == ["Tin 1", "Tin 2"]


async def test_no_message_shows_the_address(tmp_path: Path) -> None:
    sink = WebhookSink(Post("http://name:word@127.0.0.1:1/secret-path?key=abc", SECRET, 30), 50, 3)
    with pytest.raises(ReceiverAway) as away:
        await sink.deliver([event(1)])
    await sink.close()
    assert "127.0.0.1 cannot be reached" in str(away.value)
    assert not any(word in str(away.value) for word in ("secret", "word", "abc", SECRET))


@pytest.mark.parametrize("url", ["ftp://a.vn/x", "hooks.example", "http://", "http://a b/"])
def test_an_address_that_is_none_is_said_before_the_crawl(url: str) -> None:
    with pytest.raises(ValueError, match="EVENT_WEBHOOK_URL: must be an") as said:
        opening.event_sinks_by_settings(Settings({"EVENT_WEBHOOK_URL": url}, priority="project"))
    assert url not in str(said.value)


async def test_a_receiver_that_is_away_loses_nothing_and_blocks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newscrawler.crawl.announce.BACKOFF_S", 0.02)
    monkeypatch.setattr("newscrawler.crawl.announce.BACKOFF_MOST_S", 0.1)
    receiver = Receiver(is_away=True)
    sink = WebhookSink(Post(receiver.url, "", 30), 50, 3)
    store = LocalStore(tmp_path / "articles.db")
    dispatcher = Dispatcher(store.outbox, {"webhook": sink})
    await dispatcher.begin()
    dispatcher.start()
    try:
        stored = [event(n).article for n in range(120)]
        for n in range(0, 120, 40):  # returns although nobody takes the events
            await store.put(stored[n : n + 40])
        await dispatcher.drain(60)
        receiver.come()

        def got() -> list[str]:
            return [title for body in list(receiver.bodies) for title in titles(body)]

        await until(lambda: len(got()) >= 120, "all are told", 60)
        await dispatcher.drain(60)
        assert got() == [article.title for article in stored]
    finally:
        await dispatcher.close()
        await store.close()
        receiver.stop()
