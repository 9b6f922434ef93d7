"""Saved queries over a real Redis, a real store, a real HTTP and a real SMTP server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from newscrawler.crawl.announce import Dispatcher
from newscrawler.crawl.digests import Channels, FollowSink, MailServer
from newscrawler.crawl.saved_queries import SavedQueries, SavedQuery, matches
from newscrawler.crawl.signature import SIGNATURE_HEADER, sign
from newscrawler.items import Article
from newscrawler.store.events import Event, Kind
from newscrawler.store.sqlite import LocalStore
from tests.fixtures_mail import Mailbox
from tests.fixtures_redis import until
from tests.fixtures_webhook import Receiver

AT = datetime(2026, 8, 1, tzinfo=UTC)


def article(number: int, title: str, content: str = "Một đoạn.", **fields: Any) -> Article:
    return Article(f"{number:032x}", f"https://a.vn/{number}", "a.vn", title, content, **fields)


def event(number: int, title: str, kind: Kind = "new", content: str = "Một đoạn.") -> Event:
    return Event(kind, 1, AT, article(number, title, content))


def sink_of(r: Any, port: int = 1) -> FollowSink:
    return FollowSink(
        SavedQueries(r), Channels(MailServer("127.0.0.1", port, "news@a.vn"), "s3cret")
    )


async def test_a_query_finds_what_has_all_of_it() -> None:
    queries = [
        SavedQuery("gold", "giá vàng -bạc"),
        SavedQuery("plain", "gia vang"),
        SavedQuery("phrase", '"vàng miếng"'),
        SavedQuery("title", "title:bão"),
        SavedQuery("site", "vàng", sites=("b.vn",)),
        SavedQuery("late", "vàng", since_ms=round(AT.timestamp() * 1000) + 1),
    ]
    events = [
        event(1, "Giá vàng tăng"), event(2, "Giá vàng, giá bạc giảm"), event(3, "Giá xăng"),
        event(4, "Bão số 5", content="Giá vàng miếng"), event(5, "Giá vàng", "gone"),
        event(6, "Lũ lụt", content="sau cơn bão"), event(7, "Giá vàngg"),
    ]  # fmt: skip
    found = await matches(queries, events)
    titles = {name: sorted(e.article.title for e in mine) for name, mine in found.items()}
    assert titles == {
        "gold": ["Bão số 5", "Giá vàng tăng"],
        "plain": ["Bão số 5", "Giá vàng tăng", "Giá vàng, giá bạc giảm"],
        "phrase": ["Bão số 5"],
        "title": ["Bão số 5"],
        "site": [],
        "late": [],
    }


async def test_more_than_a_page_is_found() -> None:
    events = [event(n, f"Vàng lần {n}", content=f"w{n} " * 20) for n in range(230)]
    found = await matches([SavedQuery("gold", "vàng")], events)
    assert len({e.article.id for e in found["gold"]}) == 230


async def test_a_query_that_cannot_be_asked_stops_no_other() -> None:
    failed: list[str] = []
    queries = [SavedQuery("bad", "vàng " + "x" * 2000), SavedQuery("gold", "vàng")]
    found = await matches(
        queries, [event(1, "Vàng")], lambda name, why: failed.append(f"{name}: {why}")
    )
    assert len(found["gold"]) == 1
    assert len(failed) == 1 and failed[0].startswith("bad: ")


async def test_one_digest_an_interval_by_webhook_and_mail(
    r: Any, webhook: Receiver, mailbox: Mailbox
) -> None:
    saved = SavedQueries(r)
    await saved.add(SavedQuery("gold", "vàng", webhook.url, ("desk@a.vn",), every_s=3600))
    sink = sink_of(r, mailbox.port)
    await sink.deliver([event(1, "Vàng một"), event(2, "Bạc"), event(3, "Vàng hai")])
    await sink.deliver([event(1, "Vàng một"), event(1, "Vàng một, sửa", "updated")])
    await sink.tick()
    await sink.deliver([event(4, "Vàng ba")])
    await sink.tick()
    (alert,), (mail,) = webhook.alerts, mailbox.mails
    assert sorted(one["title"] for one in alert["articles"]) == ["Vàng hai", "Vàng một"]
    assert (alert["query"], alert["text"]) == ("gold", "vàng")
    assert webhook.headers[0][SIGNATURE_HEADER] == sign(webhook.bodies[0], "s3cret")
    assert (mail["To"], mail["Subject"]) == ("desk@a.vn", "gold: 2 new")
    assert mail["Message-ID"] == f"<{alert['digest']}@newscrawler>"
    assert "Vàng một\nhttps://a.vn/1" in mail.get_content().replace("\r\n", "\n")
    assert await saved.waiting("gold") == 1, "it waits for the next hour"


async def test_nothing_is_lost_or_told_twice_over_a_restart(
    r: Any, webhook: Receiver, mailbox: Mailbox
) -> None:
    """The webhook takes its digest, the mail server does not, and the process ends."""
    await SavedQueries(r).add(SavedQuery("gold", "vàng", webhook.url, ("desk@a.vn",), every_s=1))
    mailbox.refuses = True
    sink = sink_of(r, mailbox.port)
    await sink.deliver([event(1, "Vàng một")])
    await sink.tick()
    assert (len(webhook.alerts), mailbox.mails) == (1, [])

    mailbox.refuses = False
    sink = sink_of(r, mailbox.port)
    await sink.deliver([event(1, "Vàng một"), event(2, "Vàng hai")])  # the first is told again
    await sink.tick()
    assert [m["Message-ID"] for m in mailbox.mails] == [
        f"<{webhook.alerts[0]['digest']}@newscrawler>"
    ]
    assert "Vàng hai" not in mailbox.mails[0].get_content(), "a digest stays as it was begun"

    async def both() -> bool:
        await sink.tick()
        return len(mailbox.mails) == 2

    await until(both, "the next one follows", 60)
    told = [[one["title"] for one in alert["articles"]] for alert in webhook.alerts]
    assert told == [["Vàng một"], ["Vàng hai"]]
    assert await SavedQueries(r).waiting("gold") == 0


async def test_a_receiver_that_is_away_is_asked_again(
    r: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("newscrawler.crawl.digests._AGAIN_S", 0.01)
    receiver = Receiver(is_away=True)
    try:
        url = receiver.url + "/secret-path"
        await SavedQueries(r).add(SavedQuery("gold", "vàng", url, every_s=1))
        sink = sink_of(r)
        await sink.deliver([event(1, "Vàng một")])
        await sink.tick()
        assert "Alert waits query=gold channel=webhook error=127.0.0.1 cannot" in caplog.text
        assert "secret-path" not in caplog.text
        receiver.come()

        async def told() -> bool:
            await sink.tick()
            return bool(receiver.alerts)

        await until(told, "the alert is sent", 60)
    finally:
        receiver.stop()


async def test_what_a_site_wrote_forges_no_mail(r: Any, mailbox: Mailbox) -> None:
    await SavedQueries(r).add(SavedQuery("gold", "vàng", mail=("desk@a.vn",), every_s=1))
    sink = sink_of(r, mailbox.port)
    await sink.deliver([event(1, "Vàng\r\nBcc: all@a.vn\r\n\r\n.\r\nx")])
    await sink.tick()
    (mail,) = mailbox.mails
    assert mail["Bcc"] is None
    assert "Vàng Bcc: all@a.vn . x" in mail.get_content()


async def test_articles_are_matched_as_they_are_stored(
    r: Any, webhook: Receiver, tmp_path: Path
) -> None:
    """The whole way: store, outbox, dispatcher, saved query, webhook."""
    store = LocalStore(tmp_path / "articles.db")
    sink = sink_of(r)
    dispatcher = Dispatcher(store.outbox, {"follow": sink})
    await SavedQueries(r).add(SavedQuery("gold", "vàng", webhook.url, every_s=1))
    await dispatcher.begin()
    dispatcher.start()
    try:
        await store.put([article(1, "Vàng lên"), article(2, "Bạc xuống")])
        await dispatcher.drain(60)
        await until(lambda: webhook.alerts, "it is told", 60)
    finally:
        await dispatcher.close()
        await store.close()
    assert [one["title"] for one in webhook.alerts[0]["articles"]] == ["Vàng lên"]


async def test_a_removed_query_leaves_nothing(r: Any) -> None:
    saved = SavedQueries(r)
    await saved.add(SavedQuery("gold", "vàng", "http://127.0.0.1:1/"))
    await sink_of(r).deliver([event(1, "Vàng")])
    assert await saved.waiting("gold") == 1
    assert await saved.remove("gold")
    assert not await saved.remove("gold")
    assert await r.keys("*newscrawler:follow*") == []
