"""A crawl's log as JSON lines: each visit once, followed by its id, found by `scrapy logs`, and
taken by Elasticsearch as deploy/filebeat says."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.crawl.harness import ROOT, Finished, Scrapy
from tests.crawl.small import QUIET, crawler
from tests.newsweb.process import NewswebProcess
from tests.patience import Deadline

FILEBEAT = ROOT / "deploy" / "filebeat"
#: A pipeline of a project's own that fails for some articles, after they were kept.
FAULTY = "tests.crawl.own_parts.FailingPipeline"


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One crawl with a fault, its log in many small files."""
    folder = tmp_path_factory.mktemp("json-log")
    web = NewswebProcess("ip", folder / "web", sites=2, articles=6, **QUIET)
    try:
        scrapy = crawler(
            folder,
            web,
            LOG_JSON_BYTES=8_000,
            ITEM_PIPELINES=json.dumps({FAULTY: 350}),
            FRONTIER_MAX_TRIES=1,
        )
        scrapy.env["LOG_FORMAT"] = "json"  # as an operator says it; LOG_JSON=1 is the same
        yield scrapy, scrapy.run("crawl", "news")
    finally:
        web.stop()


def lines(scrapy: Scrapy) -> list[dict[str, Any]]:
    files = sorted((scrapy.data / "logs" / "json").glob("*.jsonl"))
    assert len(files) > 1, "it was to be turned over"
    return [json.loads(one) for path in files for one in path.read_text().splitlines()]


def test_each_visit_is_one_line_and_its_id_leads_through_all_parts(
    crawl: tuple[Scrapy, Finished],
) -> None:
    scrapy, done = crawl
    assert done.returncode == 0, done.stderr[-2000:]
    found = lines(scrapy)
    visits = [one for one in found if one["event"] == "visit"]
    outcomes = {n[13:]: v for n, v in done.stats.items() if n.startswith("page/outcome/")}
    assert len(visits) == sum(outcomes.values()) > 20
    assert {o: sum(v["outcome"] == o for v in visits) for o in outcomes} == outcomes
    assert len({one["request"] for one in visits}) == len(visits)
    assert all(re.fullmatch(r"[0-9a-f]{32}\.\d+", one["request"]) for one in visits)
    for one in visits:
        if one["status"]:
            assert one["fetch_ms"] > 0
        if one["stored"]:
            assert one["bytes"] > 500 and one["parse_ms"] > 0 and one["store_ms"] > 0
    kept = [one["raw"] for one in visits if one["raw"]]
    assert len(kept) == done.stat("raw/records") > 0 and all(r.count(":") == 2 for r in kept)
    stored = [one for one in visits if one["stored"] == "new"]
    assert len(stored) == done.stat("article/new") > 3
    failed = [one for one in found if one.get("message", "").startswith("Article not stored")]
    assert failed, "the pipeline failed for some"
    by_id = {one["request"]: one for one in visits}
    for one in failed:
        assert by_id[one["request"]]["outcome"] in ("RETRY", "FAILED")
        assert by_id[one["request"]]["url"] == one["url"]
    assert all(one["worker"] == visits[0]["worker"] for one in found)
    assert "Visit ended url=" in done.stderr, "the log for people is what it was"


def test_lines_are_found_by_the_command(crawl: tuple[Scrapy, Finished], tmp_path: Path) -> None:
    scrapy, done = crawl
    found = lines(scrapy)
    failed = next(one for one in found if one.get("message", "").startswith("Article not stored"))

    def told(*options: str) -> list[dict[str, Any]]:
        answer = scrapy.run("logs", "--json", *options)
        assert answer.returncode == 0, answer.stderr
        return [json.loads(one) for one in answer.stdout.splitlines()]

    assert len(told()) == len(found)
    by_id = told("--request", failed["request"])
    assert {one["event"] for one in by_id} == {"visit", "log"}
    by_url = told("--url", failed["url"])
    assert all(one["url"] == failed["url"] for one in by_url) and len(by_url) >= len(by_id)
    domain = failed["domain"].partition(":")[0]
    assert 0 < len(told("--domain", domain)) < len(found)
    assert told("--since", "2999-01-01") == []
    packed = tmp_path / "packed"
    shutil.copytree(scrapy.data / "logs" / "json", packed)
    for path in packed.glob("*.jsonl"):
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    with (packed / "x.jsonl").open("w") as file:
        file.write("no json\n")
    answer = scrapy.run("logs", "--dir", str(packed), "--reason", "DONE")
    assert len(answer.stdout.splitlines()) == done.stat("page/outcome/DONE")
    assert "x.jsonl: 1 x not a line of the log" in answer.stderr
    assert "request=" in answer.stdout and "fetch=" in answer.stdout


def test_a_log_is_followed_until_ctrl_c(crawl: tuple[Scrapy, Finished], tmp_path: Path) -> None:
    found = lines(crawl[0])
    following = crawl[0].start("logs", "--dir", str(tmp_path), "--follow", "--json")
    file = (tmp_path / "w-0001.jsonl").open("w", buffering=1)
    deadline = Deadline(60)
    with file:
        # What is written before it looks first is not followed: so until it tells of one.
        while found[0]["@timestamp"] not in following.text() and not deadline.is_over():
            file.write("no json\n" + json.dumps(found[0]) + "\n")
            time.sleep(0.3)
    following.interrupt()
    done = following.wait()
    told = [json.loads(one) for one in done.stderr.splitlines() if one.startswith("{")]
    assert told and all(one == found[0] for one in told), done.stderr
    assert done.returncode == 130 and "x not a line of the log" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--since", "yesterday"], 2, "not a time"),
        (["example.vn"], 2, "takes no example.vn"),
        (["--dir", "/nonexistent"], 1, "LOG_JSON=1"),
    ],
)
def test_what_cannot_be_searched_is_said_in_a_line(
    crawl: tuple[Scrapy, Finished], options: list[str], code: int, said: str
) -> None:
    answer = crawl[0].run("logs", *options)
    assert (answer.returncode, answer.stdout) == (code, "") and said in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("wrong", [{"LOG_JSON_BYTES": 0}, {"LOG_JSON_FILES": -1}])
def test_a_wrong_setting_stops_the_crawl(
    crawl: tuple[Scrapy, Finished], tmp_path: Path, wrong: dict[str, int]
) -> None:
    settings = {**crawl[0].settings, **wrong, "LOG_JSON": 1, "DATA_DIR": str(tmp_path / "data")}
    done = Scrapy(tmp_path, settings).run("crawl", "news")
    assert done.returncode != 0 and "must be 1 or more" in done.stderr
    assert not (tmp_path / "data" / "logs" / "json").exists()


def test_elasticsearch_takes_the_log(
    crawl: tuple[Scrapy, Finished], elasticsearch_server: str
) -> None:
    found = lines(crawl[0])
    template = json.loads((FILEBEAT / "index-template.json").read_text())
    name = "newscrawler-logs-2026.11.22"
    with httpx.Client(base_url=elasticsearch_server, timeout=60) as es:
        made = es.put("/_index_template/newscrawler-logs", json=template)
        assert made.status_code == 200, made.text
        es.delete(f"/{name}")
        body = "".join(f'{{"create":{{}}}}\n{json.dumps(one)}\n' for one in found)
        answer = es.post(
            f"/{name}/_bulk?refresh=true",
            content=body,
            headers={"Content-Type": "application/x-ndjson"},
        ).json()
        assert answer["errors"] is False, str(answer)[:2000]
        known = set(es.get(f"/{name}/_mapping").json()[name]["mappings"]["properties"])
        assert {key for one in found for key in one} <= known, "a field without a mapping"
        asked = {
            "size": 0,
            "query": {"term": {"event": "visit"}},
            "aggs": {
                "outcomes": {"terms": {"field": "outcome"}},
                "slow": {"percentiles": {"field": "fetch_ms"}},
                "times": {"min": {"field": "@timestamp"}},
            },
        }
        told = es.post(f"/{name}/_search", json=asked).json()
        counts = {b["key"]: b["doc_count"] for b in told["aggregations"]["outcomes"]["buckets"]}
        stats = crawl[1].stats
        assert counts == {n[13:]: v for n, v in stats.items() if n.startswith("page/outcome/")}
        assert told["aggregations"]["slow"]["values"]["50.0"] > 0
        assert told["aggregations"]["times"]["value"] > 1.7e12
        one = next(one for one in found if one["event"] == "visit" and one["stored"])
        hits = es.post(
            f"/{name}/_search", json={"query": {"term": {"request": one["request"]}}}
        ).json()["hits"]["hits"]
        assert hits[0]["_source"] == one
        es.delete(f"/{name}")
        es.delete("/_index_template/newscrawler-logs")


def test_filebeat_reads_what_workers_write() -> None:
    config = yaml.safe_load((FILEBEAT / "filebeat.yml").read_text())
    [source] = config["filebeat.inputs"]
    assert source["type"] == "filestream" and source["id"]
    for path in source["paths"]:
        assert path.endswith("/data/logs/json/*.jsonl"), "opening.json_log_dir"
    assert source["parsers"] == [
        {"ndjson": {"target": "", "overwrite_keys": True, "add_error_key": True}}
    ]
    template = json.loads((FILEBEAT / "index-template.json").read_text())
    index = config["output.elasticsearch"]["index"]
    assert index.startswith(template["index_patterns"][0].rstrip("*"))
    assert config["setup.template.enabled"] is False and template["priority"] > 100
