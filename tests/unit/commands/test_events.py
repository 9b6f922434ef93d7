"""`scrapy events`, as an operator would use it after a receiver refused something."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

from newscrawler.crawl.announce import Dispatcher
from newscrawler.crawl.webhook import Post, WebhookSink
from newscrawler.items import Article
from newscrawler.store.sqlite import LocalStore
from tests import warm
from tests.fixtures_webhook import Receiver


async def stored_with_a_dead_letter(folder: Path, url: str) -> None:
    store = LocalStore(folder / "articles.db")
    dispatcher = Dispatcher(store.outbox, {"webhook": WebhookSink(Post(url, "", 30), 50, 1)})
    await dispatcher.begin()
    dispatcher.start()
    for n in range(3):
        await store.put([Article(f"{n}" * 32, f"https://a.vn/{n}", "a.vn", f"Tin {n}", f"Nội {n}")])
    await dispatcher.drain(60)
    await dispatcher.close()
    await store.put([Article("9" * 32, "https://a.vn/9", "a.vn", "Tin 9", "Nội dung 9")])
    await store.close()


def test_dead_letters_are_listed_resent_and_dropped(tmp_path: Path, webhook: Receiver) -> None:
    webhook.status = lambda body: 400 if b"Tin 1" in body or b"Tin 2" in body else 200
    asyncio.run(stored_with_a_dead_letter(tmp_path, webhook.url))

    def events(*args: str, code: int = 0) -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, "DATA_DIR": str(tmp_path), "EVENT_WEBHOOK_URL": webhook.url}
        done = warm.run(["events", *args], env=env, timeout=120)
        assert done.returncode == code, done.stderr.decode()
        return done

    assert json.loads(events("--json").stdout) == {"sink": "webhook", "waiting": 1, "dead": 2}
    rows = [json.loads(line) for line in events("dead", "--json").stdout.splitlines()]
    one, two = f"{'1' * 32}.1", f"{'2' * 32}.1"
    assert [(r["event"], r["sink"], r["reason"]) for r in rows] == [
        (one, "webhook", "400"), (two, "webhook", "400"),
    ]  # fmt: skip
    still = events("resend", code=1)
    assert b"0 dead letters were taken, 2 are left" in still.stderr

    webhook.status = lambda body: 400 if b"Tin 2" in body else 200
    assert b"1 dead letters were taken, 0 are left" in events("resend", one).stderr
    assert [e["title"] for e in json.loads(webhook.bodies[-1])["events"]] == ["Tin 1"]
    assert b"no dead letter nothing" in events("drop", "nothing", code=2).stderr
    assert b"name events" in events("drop", code=2).stderr
    assert b"1 dead letters dropped" in events("drop", two).stderr
    assert b"no dead letters" in events("dead").stderr
    for done in (still, events("dead")):
        assert webhook.url.encode() not in done.stdout + done.stderr
