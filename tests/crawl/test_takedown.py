"""`scrapy takedown` on real crawls of the simulated web: nothing of the article is left anywhere,
it does not come back, and nothing else goes."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from newscrawler.crawl.keeping import alone
from newscrawler.crawl.takedown_look import pieces_of
from newscrawler.frontier import redis_server as embedded
from newscrawler.items import Article
from newscrawler.store import codec
from tests.crawl.harness import Scrapy, until
from tests.crawl.small import QUIET, Queue, crawler, in_store, page_hits, stored, versions
from tests.fixtures_newsweb import StartNewsweb
from tests.fixtures_s3 import BUCKET, S3Server
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow

WHY = ("--reason", "asked by the court", "--yes")


def texts_of(*articles: Article) -> set[bytes]:
    """Title and pieces of the text; sentences that other articles have as well are no sign."""
    return {t.encode() for a in articles for t in (a.title, *pieces_of(a))}


def own_texts(article: Article, others: list[Article]) -> set[bytes]:
    rest = "\n".join(f"{a.title}\n{a.content}" for a in others if a.id != article.id).encode()
    found = {text for text in texts_of(article) if text not in rest}
    assert article.title.encode() in found and len(found) > 2
    return found


def target(record: bytes) -> str:
    found = re.search(rb"WARC-Target-URI: (\S+)", record[:2000])
    return found[1].decode() if found else ""


def everything_in(data: Path, quoting: set[str]) -> list[tuple[str, bytes]]:
    """Every file of a folder as it is, and what is packed in it; without the raw pages of other
    articles, of which the boxes beside the text quote titles."""
    found = []
    for path in sorted(p for p in data.rglob("*") if p.is_file()):
        raw = path.read_bytes()
        found.append((path.name, raw))
        if ".warc.gz" in path.name:
            found += [(path.name, part) for part in inflated(raw) if target(part) not in quoting]
        # versions of articles are packed inside of the file of articles
        found += [(path.name, part) for part in packed_parts(raw)] if path.suffix == ".db" else []
    return found


def inflated(raw: bytes) -> list[bytes]:
    parts = []
    while raw:
        one = zlib.decompressobj(31)
        parts.append(one.decompress(raw))
        raw = one.unused_data
    return parts


def packed_parts(raw: bytes) -> list[bytes]:
    found = []
    for match in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", raw):
        try:
            found.append(zlib.decompressobj().decompress(raw[match.start() :], 200_000))
        except zlib.error:
            continue
    return found


def holders(data: Path, texts: set[bytes], others: list[Article]) -> list[str]:
    quoting = {a.url for a in others}
    found = everything_in(data, quoting)
    return [name for name, raw in found if any(text in raw for text in texts)]


def but(victim: Article, articles: list[Article]) -> list[Article]:
    return [a for a in articles if a.id != victim.id]


def logs_of(scrapy: Scrapy, victim: Article) -> dict[Path, int]:
    """The JSON log and one that somebody packed, with their lines; both name the article."""
    (log,) = (scrapy.data / "logs/json").glob("*")
    packed = log.with_name("of-before.jsonl.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    rows = log.read_text().splitlines()
    assert any(json.loads(row).get("url") == victim.url for row in rows)
    return {log: len(rows), packed: len(rows)}


def assert_masked(logged: dict[Path, int], victim: Article, articles: int) -> None:
    for file, rows in logged.items():
        data = file.read_bytes()
        text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
        assert len(text.splitlines()) == rows, "every line is there"
        others = {json.loads(row).get("url") for row in text.splitlines()}
        assert victim.url not in text and len(others) > articles


@pytest.fixture
def web(newsweb: StartNewsweb) -> NewswebProcess:
    return newsweb("ip", sites=2, articles=8, **QUIET)


def victim_of(articles: list[Article]) -> Article:
    """One whose page was kept."""
    return next(a for a in articles if a.raw_ref and not a.cluster)


def crawled(scrapy: Scrapy, *more: str) -> list[Article]:
    done = scrapy.run("crawl", "news", *more)
    assert done.returncode == 0, done.stderr[-2000:]
    return stored(scrapy.data)


def test_an_article_goes_from_everywhere_and_stays_away(
    tmp_path: Path, web: NewswebProcess
) -> None:
    scrapy = crawler(tmp_path, web, LOG_JSON=1)
    articles = crawled(scrapy)
    victim = victim_of(articles)
    logged = logs_of(scrapy, victim)
    edited = replace(victim, title=victim.title + ", bản sửa lần hai")
    in_store(scrapy.data, lambda store: store.put([edited]))
    articles = stored(scrapy.data)
    assert len(versions(scrapy.data, victim)) == 2, "an older version is part of the test"
    texts = own_texts(victim, articles)
    for form in ("jsonl", "csv"):
        out = scrapy.data / f"export.{form}"
        assert scrapy.run("export", "--format", form, "--out", str(out)).returncode == 0
    before = holders(scrapy.data, texts, but(victim, articles))
    assert {"articles.db", "export.jsonl", "export.csv"} < set(before)
    assert any(".warc.gz" in name for name in before) and any("aof" in name for name in before)

    asked = scrapy.run("takedown", victim.url, "--reason", "asked by the court")
    assert asked.returncode == 1 and "nothing was changed" in asked.stderr
    assert victim.url in asked.stdout and "1 older version" in asked.stdout
    assert holders(scrapy.data, texts, but(victim, articles)) == before

    done = scrapy.run("takedown", victim.url, *WHY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is left" in done.stdout and "Backups" in done.stdout
    assert holders(scrapy.data, texts, but(victim, articles)) == []
    assert not list(scrapy.data.glob("takedown-*"))
    assert {a.id for a in stored(scrapy.data)} == {a.id for a in articles} - {victim.id}
    assert victim.url not in scrapy.run("search", victim.title, "--json").stdout
    checked = scrapy.run("store", "check")
    assert checked.returncode == 0, checked.stdout
    rows = [json.loads(row) for row in (scrapy.data / "export.jsonl").read_text().splitlines()]
    assert len(rows) == len(articles) and rows.count({}) == 1
    assert_masked(logged, victim, len(articles))
    audit = (scrapy.data / "audit.jsonl").read_text()
    assert "asked by the court" in audit and "takedown.done" in audit
    assert not any(text.decode() in audit for text in texts)

    hits = page_hits(web)
    again = crawled(scrapy, "-a", f"urls={victim.url}")
    assert victim.id not in {a.id for a in again}
    assert page_hits(web)[victim.url] == hits[victim.url], "it was asked for again"
    why = scrapy.run("frontier", "why", victim.url)
    assert "taken down" in why.stdout
    listed = scrapy.run("takedown", "--list", "--json")
    (row,) = [json.loads(line) for line in listed.stdout.splitlines()]
    assert row["target"] == victim.url and row["reason"] == "asked by the court"
    assert row["removed"]["articles"] == 1

    reparsed = scrapy.run("reparse")
    assert reparsed.returncode == 0, reparsed.stderr
    assert victim.id not in {a.id for a in stored(scrapy.data)}

    assert scrapy.run("takedown", "--undo", victim.url).returncode == 0
    back = crawled(scrapy, "-a", f"urls={victim.url}")
    assert victim.id in {a.id for a in back}


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("blocked for the whole fleet", marks=pytest.mark.long),
        "raw pages",
        pytest.param("looking for", marks=pytest.mark.long),
    ],
)
def test_a_take_down_that_is_killed_goes_on(tmp_path: Path, web: NewswebProcess, word: str) -> None:
    scrapy = crawler(tmp_path, web)
    articles = crawled(scrapy)
    victim = victim_of(articles)
    texts = own_texts(victim, articles)
    running = scrapy.start("takedown", victim.url, *WHY)
    until(lambda: word in running.text() or running.process.poll() is not None, word)
    running.kill()
    embedded.stop(scrapy.data)
    done = scrapy.run("takedown", victim.url, *WHY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert holders(scrapy.data, texts, but(victim, articles)) == []
    assert {a.id for a in stored(scrapy.data)} == {a.id for a in articles} - {victim.id}


@pytest.mark.long
def test_while_a_crawl_runs_what_is_in_flight_is_dropped(
    tmp_path: Path, newsweb: StartNewsweb
) -> None:
    """Articles of which nobody has the page yet are blocked by their addresses, others by what is
    stored; the crawl goes on to its end."""
    web = newsweb("ip", sites=2, articles=14, **{**QUIET, "delay": 0.3})
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=0.3)
    rows = [r for r in web.truth() if r["type"] == "article" and r["should_be_found"]]
    running = scrapy.start("crawl", "news")
    until(lambda: running.text().count("kind=article outcome=DONE") > 4, "some articles")
    have = set(re.findall(r"Visit ended url=(\S+) .*kind=article outcome=DONE", running.text()))
    ahead = [r["url"] for r in rows if r["url"] not in have][:3]
    done_before = sorted(have)[:1]
    for url in [*ahead, *done_before]:
        done = scrapy.run("takedown", url, *WHY)
        assert done.returncode == 0, done.stdout + done.stderr
    ended = running.wait(180)
    assert ended.returncode == 0 and "Traceback" not in ended.stderr, ended.stderr[-3000:]
    urls = {a.url for a in stored(scrapy.data)}
    assert not urls & {*ahead, *done_before}
    assert len(urls) > 5, "the rest of the crawl was stored"
    assert scrapy.run("store", "check").returncode == 0


@pytest.mark.long
def test_a_domain_goes_as_a_whole(tmp_path: Path, web: NewswebProcess) -> None:
    scrapy = crawler(tmp_path, web)
    articles = crawled(scrapy)
    host = articles[0].url.split("/")[2]
    gone = [a for a in articles if a.url.split("/")[2] == host]
    rest = [a for a in articles if a.url.split("/")[2] != host]
    assert gone and rest
    done = scrapy.run("takedown", host, *WHY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(gone):,} articles" in done.stdout
    kept = "\n".join(codec.plain(a) for a in rest).encode()
    texts = {text for text in texts_of(*gone) if text not in kept}
    assert len(texts) > 20
    everything = everything_in(scrapy.data, set())
    pages = [(name, raw) for name, raw in everything if ".warc.gz" in name]
    assert not [raw for _, raw in pages if f"//{host}/" in target(raw)]
    files = [(name, raw) for name, raw in everything if ".warc.gz" not in name]
    assert [name for name, raw in files if any(text in raw for text in texts)] == []
    hits = len([h for h in web.hits() if h["host"] == host])
    assert {a.id for a in crawled(scrapy)} == {a.id for a in rest}
    assert len([h for h in web.hits() if h["host"] == host]) == hits
    assert scrapy.run("takedown", "--undo", host).returncode == 0
    assert {a.id for a in crawled(scrapy)} >= {a.id for a in rest}


@pytest.mark.long
def test_elasticsearch_and_pages_in_s3(
    tmp_path: Path, newsweb: StartNewsweb, elasticsearch_server: str, s3_server: S3Server
) -> None:
    web = newsweb("ip", sites=2, articles=6, **QUIET)
    scrapy = crawler(
        tmp_path, web, ARTICLE_STORE=elasticsearch_server, ARTICLE_INDEX="taken",
        RAW_STORE=f"s3://{BUCKET}/raw",
    )  # fmt: skip
    scrapy.env |= s3_server.env
    assert scrapy.run("crawl", "news").returncode == 0
    rows = [json.loads(line) for line in scrapy.run("export").stdout.splitlines()]
    victim = next(row for row in rows if row.get("raw_ref"))
    done = scrapy.run("takedown", victim["url"], *WHY)
    assert done.returncode == 0, done.stdout + done.stderr
    left = [json.loads(line) for line in scrapy.run("export").stdout.splitlines()]
    assert {r["id"] for r in left} == {r["id"] for r in rows} - {victim["id"]}
    objects = s3_server.objects()
    quoting = {row["url"] for row in left}
    held = [part for raw in objects.values() for part in parts_of(raw)]
    assert not [p for p in held if victim["title"].encode() in p and target(p) not in quoting]
    pages = {
        record.rec_headers.get_header("WARC-Target-URI")
        for key, raw in objects.items() if key.endswith(".warc.gz")
        for record in ArchiveIterator(BytesIO(raw)) if record.rec_type == "response"
    }  # fmt: skip
    assert victim["url"] not in pages
    assert {r["url"] for r in left if r.get("raw_ref")} <= pages
    checked = scrapy.run("store", "check")
    assert checked.returncode == 0, checked.stdout


def parts_of(raw: bytes) -> list[bytes]:
    return inflated(raw) if raw.startswith(b"\x1f\x8b") else [raw]


def test_what_is_asked_wrongly_is_said_and_nothing_changes(
    tmp_path: Path, web: NewswebProcess, queue: Queue
) -> None:
    scrapy = crawler(tmp_path, web)
    early = scrapy.run("takedown", "https://example.vn/a.html", *WHY)
    assert early.returncode == 1 and "no articles stored yet" in early.stderr
    in_store(scrapy.data, lambda store: store.open())
    for arguments, said in (
        (("not a target", *WHY), "neither a URL"),
        (("https://example.vn/a.html", "--yes"), "--reason is needed"),
        (("--list", "example.vn"), "stand alone"),
        ((), "one URL or domain"),
    ):
        done = scrapy.run("takedown", *arguments)
        assert done.returncode in (1, 2) and said in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    with alone(scrapy.data):
        beside = scrapy.run("takedown", "https://example.vn/a.html", *WHY)
    assert beside.returncode == 1 and "at work here" in beside.stderr, beside.stderr
