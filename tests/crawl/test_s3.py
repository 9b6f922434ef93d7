"""RAW_STORE=s3://… as the README says it, against a real S3 server: crawl, reparse, doctor; the
server away; a bucket that is not there; a machine without the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from newscrawler.items import Article
from newscrawler.rawstore.raw_store import PROBE
from newscrawler.utils.optional import EXTRAS
from tests.crawl.harness import Finished, Scrapy, until
from tests.crawl.small import QUIET, Queue, complaints, crawler, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.fixtures_s3 import BUCKET, S3Server

pytestmark = pytest.mark.slow

URI = f"s3://{BUCKET}/news/raw"


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    (tmp_path / "queue").mkdir()
    kept = Queue(tmp_path / "queue")
    yield kept
    kept.close()


def without(folder: Path, *modules: str) -> dict[str, str]:
    """Environment of a Python in which these are not installed: nothing finds them."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "found = PathFinder.find_spec\n"
        f"gone = {modules!r}\n"
        "def find_spec(name, path=None, target=None):\n"
        "    return None if name.partition('.')[0] in gone else found(name, path, target)\n"
        "PathFinder.find_spec = find_spec\n"
    )
    return {"PYTHONPATH": str(folder)}


def with_env(scrapy: Scrapy, env: dict[str, str]) -> Scrapy:
    scrapy.env.update(env)
    return scrapy


def warc_pages(objects: dict[str, bytes]) -> set[str]:
    """Addresses of the answers in all WARC objects, read by a tool that is not ours."""
    return {
        record.rec_headers.get_header("WARC-Target-URI")
        for key, data in objects.items()
        if key.endswith(".warc.gz")
        for record in ArchiveIterator(BytesIO(data))
        if record.rec_type == "response"
    }


def kept(articles: list[Article]) -> set[str]:
    """Those of which the page is kept; that of a site that forbids it (noarchive) is not."""
    urls = {a.url for a in articles if a.raw_ref}
    assert urls, "no page was kept"
    return urls


def spool(scrapy: Scrapy) -> list[str]:
    return sorted(p.name for p in (scrapy.data / "warc-spool").glob("*"))


def said(done: Finished) -> str:
    """The line that ends a refused start: the whole reason is in it."""
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    return done.stderr.splitlines()[-1]


@pytest.mark.long
def test_a_crawl_writes_reparse_reads_and_doctor_is_content(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue, s3_server: S3Server
) -> None:
    web = newsweb("ip", sites=2, articles=4, **QUIET)
    # as the README says it: variables, no option
    scrapy = with_env(
        crawler(tmp_path, web, REDIS_URL=queue.url), {**s3_server.env, "RAW_STORE": URI}
    )
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-3000:]
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    objects = s3_server.objects()
    assert all(key.startswith("news/raw/") for key in objects)
    assert kept(articles) <= warc_pages(objects)
    assert spool(scrapy) == [], "what was uploaded is not kept twice"

    for part in scrapy.data.glob("articles.db*"):
        part.unlink()
    again = scrapy.run("reparse", "--json")
    assert again.returncode == 0, again.stderr[-3000:]
    titles = {a.url: a.title for a in articles}
    assert {a.url: a.title for a in stored(scrapy.data)} == {u: titles[u] for u in kept(articles)}

    doctor = scrapy.run("doctor")
    (line,) = [line for line in doctor.stdout.splitlines() if "raw store" in line]
    assert URI in line and "ok" in line, doctor.stdout
    assert spool(scrapy) == []


@pytest.mark.long
def test_server_away_in_mid_crawl_loses_nothing(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue, s3_server: S3Server
) -> None:
    web = newsweb("ip", sites=2, articles=10, **QUIET)
    # a file is complete after a few pages, and uploads begin at once
    scrapy = with_env(
        crawler(tmp_path, web, REDIS_URL=queue.url, RAW_STORE=URI, RAW_ROTATE_BYTES=8_000),
        s3_server.env,
    )
    running = scrapy.start("crawl", "news")
    until(lambda: warc_pages(s3_server.objects()), "a first file is there", 120)
    s3_server.goes_away()
    until(lambda: "stays in the spool" in running.text(), "the crawl says so", 120)
    assert running.process.poll() is None
    s3_server.comes_back()
    done = running.wait(180)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-3000:]
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    assert queue.counts().leased == 0
    assert spool(scrapy) == []
    assert kept(articles) <= warc_pages(s3_server.objects())


@pytest.mark.long
def test_what_a_crawl_could_not_upload_goes_up_at_the_next_start(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue, s3_server: S3Server
) -> None:
    web = newsweb("ip", sites=2, articles=4, **QUIET)
    scrapy = with_env(crawler(tmp_path, web, REDIS_URL=queue.url, RAW_STORE=URI), s3_server.env)
    running = scrapy.start("crawl", "news")
    until(lambda: any(n.endswith(".open") for n in spool(scrapy)), "a page is written", 120)
    s3_server.goes_away()
    done = running.wait(240)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-3000:]
    assert "stays in the spool" in done.stderr
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    assert warc_pages(s3_server.objects()) == set() and spool(scrapy)

    refused = scrapy.run("crawl", "news")
    assert refused.returncode == 1
    assert URI in said(refused)

    s3_server.comes_back()
    assert scrapy.run("crawl", "news").returncode == 0
    assert spool(scrapy) == []
    assert kept(articles) <= warc_pages(s3_server.objects())


def test_a_bucket_that_is_not_there_is_said_and_not_made(
    tmp_path: Path, newsweb: StartNewsweb, s3_server: S3Server
) -> None:
    web = newsweb("ip", sites=1, articles=3, **QUIET)
    scrapy = with_env(crawler(tmp_path, web, RAW_STORE="s3://raw-pagse/news"), s3_server.env)
    for command in (("crawl", "news"), ("reparse",)):
        done = scrapy.run(*command)
        assert done.returncode == 1
        assert "there is no bucket raw-pagse" in said(done)
    doctor = scrapy.run("doctor")
    assert doctor.returncode == 1
    assert "there is no bucket raw-pagse" in " ".join(doctor.stdout.split()), doctor.stdout
    assert web.hits() == [], "nothing is fetched that could not be stored"
    assert s3_server.buckets() == [BUCKET]
    assert PROBE not in str(s3_server.objects())


@pytest.mark.long
def test_without_s3fs_one_line_names_the_command(
    tmp_path: Path, newsweb: StartNewsweb, s3_server: S3Server
) -> None:
    web = newsweb("ip", sites=1, articles=3, **QUIET)
    env = s3_server.env | without(tmp_path / "bare", "s3fs")
    scrapy = with_env(crawler(tmp_path, web, RAW_STORE=URI), env)
    wanted = re.compile(rf"\S+python\S* -m pip install {re.escape(EXTRAS['s3'][1])}")
    for command in (("crawl", "news"), ("reparse",)):
        done = scrapy.run(*command)
        assert done.returncode == 1
        assert wanted.search(said(done)), done.stderr
    doctor = scrapy.run("doctor")
    assert doctor.returncode == 1
    assert "raw store" not in doctor.stdout, "one fault, one finding"
    assert EXTRAS["s3"][1] in doctor.stdout
    assert web.hits() == []


@pytest.mark.long
def test_parquet_with_and_without_its_package(tmp_path: Path, newsweb: StartNewsweb) -> None:
    import pyarrow.parquet as pq

    web = newsweb("ip", sites=1, articles=6, **QUIET)
    scrapy = crawler(tmp_path, web)
    assert scrapy.run("crawl", "news").returncode == 0
    out = tmp_path / "articles.parquet"
    command: tuple[Any, ...] = ("export", "--format", "parquet", "--out", str(out))

    bare = with_env(crawler(tmp_path, web), without(tmp_path / "bare", "pyarrow"))
    refused = bare.run(*command)
    assert refused.returncode == 1 and not out.exists()
    assert f"-m pip install {EXTRAS['parquet'][1]}" in said(refused)

    done = scrapy.run(*command)
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(out).to_pylist()
    articles = stored(scrapy.data)
    assert {(r["url"], r["title"], r["published"]) for r in rows} == {
        (a.url, a.title, a.published) for a in articles
    }
    assert len(rows) == len(articles) > 0
