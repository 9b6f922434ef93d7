"""`scrapy backup` and `scrapy restore`: made while a crawl runs, put back on an empty machine."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import redis

from newscrawler.crawl import backup
from newscrawler.crawl.parse_queue import ParseQueue
from newscrawler.crawl.reparse import Choice
from newscrawler.discovery import overlay
from newscrawler.frontier import connect, snapshot
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.taken import URL, Entry
from newscrawler.items import Kind
from newscrawler.selectorsets.store import SelectorStore
from tests.crawl.harness import until
from tests.crawl.small import QUIET, complaints, crawler, page_hits, sql, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.fixtures_redis import RedisServers, binary_of
from tests.fixtures_s3 import BUCKET, S3Server
from tests.redis.helpers import check, frontier, links

pytestmark = pytest.mark.slow


def test_a_backup_of_a_running_crawl_goes_on_elsewhere(
    tmp_path: Path, newsweb: StartNewsweb
) -> None:
    """Nothing is lost, and what was done before the backup is not done again."""
    web = newsweb("ip", sites=2, articles=14, **{**QUIET, "delay": 0.15})
    first = crawler(tmp_path / "first", web, DOWNLOAD_DELAY=0.15)
    (tmp_path / "first").mkdir()
    running = first.start("crawl", "news")
    until(lambda: running.text().count("Visit ended") > 20, "20 pages")
    done = first.run("backup", str(tmp_path / "copy"))
    assert done.returncode == 0, done.stderr
    before = page_hits(web)
    running.kill()
    embedded.stop(first.data)
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0
    manifest = json.loads((tmp_path / "copy/manifest.json").read_text())
    assert f"{manifest['counts']['articles']:,} articles" in done.stdout
    assert manifest["counts"]["articles"] > 0

    (tmp_path / "second").mkdir()
    second = crawler(tmp_path / "second", web, DOWNLOAD_DELAY=0.15)
    back = second.run("restore", str(tmp_path / "copy"))
    assert back.returncode == 0, back.stderr
    known = {a.id: a.version for a in stored(second.data)}
    assert len(known) == manifest["counts"]["articles"]
    crawl = second.run("crawl", "news")
    assert crawl.returncode == 0, crawl.stderr[-2000:]
    articles = stored(second.data)
    assert complaints(web, articles) == []
    again = {a.id: a.version for a in articles if a.id in known}
    assert again == known, "an article of before became a new version"
    fetched = page_hits(web)
    of_known = [a.url for a in articles if a.id in known and fetched[a.url] > before[a.url]]
    assert len(of_known) <= 8, "what is done again is what was in hand at the backup"
    assert "Bão" not in second.run("search", "không-có-từ-này").stdout
    title = articles[0].title
    assert title in second.run("search", title).stdout, "the index was not made again"


@pytest.mark.long
def test_what_is_wrong_with_a_backup_is_said_and_nothing_changes(
    tmp_path: Path, newsweb: StartNewsweb, s3_server: S3Server
) -> None:
    web = newsweb("ip", sites=2, articles=5, **QUIET)
    (tmp_path / "a").mkdir()
    one = crawler(tmp_path / "a", web)
    early = one.run("backup", str(tmp_path / "early"))
    assert early.returncode == 2 and "no articles yet" in early.stderr
    assert one.run("crawl", "news").returncode == 0
    assert not_ours(one.data) == [], "keys of ours that no backup would hold"
    (one.data / "tokens.json").write_text("{}")
    asyncio.run(decide_and_queue(one.data))
    kept = of_people_and_queues(one.data)
    copy = tmp_path / "copy"
    assert one.run("backup", str(copy), "--raw").returncode == 0
    assert (copy / "files/tokens.json").is_file() and list((copy / "warc").rglob("*.warc.gz"))
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".newscrawler")] == []
    for target, said in ((copy, "is there already"), (tmp_path / "no/where", "there is no folder")):
        refused = one.run("backup", str(target))
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr

    over = one.run("restore", str(copy))
    assert over.returncode == 2 and "--replace" in over.stderr
    ids = {a.id for a in stored(one.data)}
    sql(one.data / "articles.db", "DELETE FROM article")
    lose(one.data, kept[1])
    again = one.run("restore", str(copy), "--replace")
    assert again.returncode == 0, again.stderr
    assert {a.id for a in stored(one.data)} == ids
    assert of_people_and_queues(one.data) == kept
    assert one.run("store", "check", "--no-raw").returncode == 0

    for spoil, said in (
        (lambda bad: (bad / "redis-0.rdb").write_bytes(b"REDIS0099"), "was changed or cut off"),
        (lambda bad: (bad / "articles.db").unlink(), "is missing"),
        (lambda bad: (bad / "manifest.json").write_text("{"), "cannot be read"),
        (lambda bad: (bad / "manifest.json").unlink(), "is no backup"),
        (outside, "is not in it"),
    ):
        bad = tmp_path / "bad"
        shutil.copytree(copy, bad)
        spoil(bad)
        refused = one.run("restore", str(bad), "--replace")
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr
        looked = one.run("restore", str(bad), "--check")
        assert looked.returncode == 1 and said in looked.stderr, looked.stderr
        shutil.rmtree(bad)
    assert {a.id for a in stored(one.data)} == ids
    whole = one.run("restore", str(copy), "--check")
    assert whole.returncode == 0 and "is whole" in whole.stdout

    one.env |= s3_server.env
    place = f"s3://{BUCKET}/backups/one"
    sent = one.run("backup", place)
    assert sent.returncode == 0, sent.stderr
    refused = one.run("backup", place)
    assert refused.returncode == 2 and "is there already" in refused.stderr
    (tmp_path / "b").mkdir()
    other = crawler(tmp_path / "b", web)
    other.env |= s3_server.env
    got = other.run("restore", place)
    assert got.returncode == 0, got.stderr
    assert {a.id for a in stored(other.data)} == ids


async def decide_and_queue(data: Path) -> None:
    """A site switched off and a seed added; a set that a person approved after another; stored
    pages that wait to be read again."""
    state = overlay.OverlayState(enabled={"x.vn": False})
    state.add_seed("x.vn", "https://x.vn/tin.rss", Kind.FEED)
    overlay.write(data, state)
    client: Any = connect(embedded.ensure(data), single=False)
    try:
        sets = SelectorStore(client, data)
        for root in ("div.old", "div.new"):
            fields = {"title": [{"css": "h1"}], "content": {"root": [root]}}
            made = {"variants": [{"template": "article", "fields": fields}]}
            await sets.add_version(
                "x.vn",
                {**made, "state": "candidate", "provenance": {"made_by": "person"}},
                who="me",
            )
        await sets.approve("x.vn")
        await ParseQueue(client).fill(["a:0:1", "b:0:1"], Choice(site="x.vn"))
    finally:
        await client.aclose()


def of_people_and_queues(data: Path) -> tuple[overlay.OverlayState, dict[bytes, bytes]]:
    """What no crawl makes again: the operator's sites; sets and what is queued, key by key."""
    with redis.Redis.from_url(embedded.ensure(data)) as client:
        names = [*client.scan_iter("{selectors}*"), *client.scan_iter("{reparse}*")]
        assert {name.split(b"}")[0] for name in names} == {b"{selectors", b"{reparse"}
        return overlay.read(data), {name: client.dump(name) for name in names}


def not_ours(data: Path) -> list[bytes]:
    with redis.Redis.from_url(embedded.ensure(data)) as client:
        return [name for name in client.scan_iter() if not name.startswith(snapshot.OURS)]


def lose(data: Path, names: Iterable[bytes]) -> None:
    """All of that; and something is there that was not when the backup was made."""
    overlay.write(data, overlay.OverlayState())
    with redis.Redis.from_url(embedded.ensure(data)) as client:
        client.delete(*names)
        client.set("{reparse}:aside", "since the backup")


async def test_a_restored_queue_lets_go_of_what_is_blocked(r: Any, redis_server: str) -> None:
    blocked, other = links(2, "a.vn")
    entry = Entry(blocked.url, "2026-11-22", "me", "asked")
    f = await frontier(r)
    await f.taken.put({URL + blocked.url_id.hex(): entry})
    blocks = await backup._blocks(redis_server)
    await r.flushall()  # what a restore does first; the queue of the backup knows of no block
    f = await frontier(r)
    await f.add([blocked, other])
    said: list[str] = []
    await backup._block_again(redis_server, blocks, said.append)
    assert [lease.url for lease in (await f.step(2)).leases] == [other.url]
    assert (await f.taken.all()).keys() == blocks.keys() and len(said) == 1
    await check(r)


@pytest.mark.long
def test_what_was_taken_down_since_the_backup_stays_blocked(
    tmp_path: Path, newsweb: StartNewsweb
) -> None:
    """The articles of the backup come back, what is blocked is not fetched, and the take-down can
    be repeated."""
    web = newsweb("ip", sites=2, articles=6, **QUIET)
    scrapy = crawler(tmp_path, web)
    assert scrapy.run("crawl", "news").returncode == 0
    articles = stored(scrapy.data)
    victim = next(a for a in articles if a.raw_ref and not a.cluster)
    domain = next(a.site for a in articles if a.site != victim.site)
    copy = tmp_path / "copy"
    assert scrapy.run("backup", str(copy)).returncode == 0
    for target in (victim.url, domain):
        down = scrapy.run("takedown", target, "--reason", "asked", "--yes")
        assert down.returncode == 0, down.stdout + down.stderr

    back = scrapy.run("restore", str(copy), "--replace")
    assert back.returncode == 0, back.stderr
    assert "what was taken down stays blocked" in back.stderr
    assert {a.id for a in stored(scrapy.data)} == {a.id for a in articles}
    listed = scrapy.run("takedown", "--list", "--json").stdout.splitlines()
    assert {json.loads(row)["target"] for row in listed} == {victim.url, domain}

    hits = page_hits(web)
    for urls in (victim.url, next(a.url for a in articles if a.site == domain)):
        again = scrapy.run("crawl", "news", "-a", f"urls={urls}")
        assert again.returncode == 0, again.stderr[-2000:]
        assert page_hits(web)[urls] == hits[urls], "it was asked for again"
    assert scrapy.run("takedown", victim.url, "--reason", "again", "--yes").returncode == 0
    assert victim.id not in {a.id for a in stored(scrapy.data)}


@pytest.mark.long
def test_articles_of_elasticsearch_come_back(
    tmp_path: Path, newsweb: StartNewsweb, elasticsearch_server: str
) -> None:
    """As a SQLite file in the backup, and into another index from it."""
    web = newsweb("ip", sites=2, articles=8, **QUIET)
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        scrapy = crawler(
            tmp_path / name, web, ARTICLE_STORE=elasticsearch_server, ARTICLE_INDEX=f"backup-{name}"
        )
        if name == "one":
            assert scrapy.run("crawl", "news").returncode == 0
            done = scrapy.run("backup", str(tmp_path / "copy"))
        else:
            done = scrapy.run("restore", str(tmp_path / "copy"))
        assert done.returncode == 0, done.stderr
        listed = scrapy.run("export", "--json")
        articles = [json.loads(line) for line in listed.stdout.splitlines()]
        found.append({a["id"]: (a["title"], a["content"]) for a in articles})
        again = scrapy.run("crawl", "news")
        assert again.returncode == 0 and again.stat("article/new") == 0, again.stderr[-2000:]
    assert found[0] == found[1] and len(found[0]) >= 10


def outside(bad: Path) -> None:
    manifest = json.loads((bad / "manifest.json").read_text())
    manifest["files"]["../elsewhere"] = {"bytes": 1, "sha256": ""}
    (bad / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("redis_version", ["6.2", "7"], indirect=True)
def test_any_redis_is_read_and_only_ours_is_touched(
    redis_servers: RedisServers, redis_version: str, tmp_path: Path
) -> None:
    """Redis 6.2 sends a file, 7 a stream without a length; both keep what is not ours."""
    url = redis_servers.url(redis_version)
    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.hset("{f0}:r:a.vn", mapping={bytes([i]): b"\xff" * 500 for i in range(200)})
        client.set("{selectors}:x", b"\x00\r\n$EOF", px=600_000)
        client.zadd("{f0}:ready:1", {"a.vn": 5})
        client.set("others", "stay")

        def kept() -> list[object]:
            return [
                client.hgetall("{f0}:r:a.vn"),
                client.get("{selectors}:x"),
                client.zrange("{f0}:ready:1", 0, -1, withscores=True),
            ]

        before = kept()
        (file,) = snapshot.save(url, tmp_path)
        assert not snapshot.is_empty(url)
        assert snapshot.clear(url) == 3 and snapshot.is_empty(url)
        assert client.get("others") == b"stay"
        seen: list[int] = []
        program = binary_of(redis_version) or ""
        assert snapshot.load([file], url, program, seen.append) == 3
        assert kept() == before
        assert 0 < client.pttl("{selectors}:x") <= 600_000
        with pytest.raises(snapshot.SnapshotRefused, match="does not take"):
            snapshot.load([file], url, program)
        file.write_bytes(b"REDIS9999 is no file of any")
        with pytest.raises(snapshot.SnapshotRefused, match="cannot be read"):
            snapshot.load([file], url, program)
        client.flushall()


def test_a_redis_that_refuses_is_named(tmp_path: Path, redis_server: str) -> None:
    with redis.Redis.from_url(redis_server) as client:
        client.acl_setuser(
            "least", enabled=True, passwords=["+secret"], categories=["+@all"],
            commands=["-sync", "-psync"], keys=["*"],
        )  # fmt: skip
    url = redis_server.replace("://", "://least:secret@", 1)
    try:
        with pytest.raises(snapshot.SnapshotRefused, match="SYNC"):
            snapshot.save(url, tmp_path)
    finally:
        with redis.Redis.from_url(redis_server) as client:
            client.acl_deluser("least")
