"""A real Prometheus beside a real crawl: every rule and every panel has data to work on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests import warm
from tests.crawl.harness import until
from tests.crawl.small import QUIET, Queue, crawler
from tests.crawl.test_run import free_port

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS, GRAFANA = ROOT / "deploy/prometheus", ROOT / "deploy/grafana"
pytestmark = pytest.mark.skipif(  # CI has it: there it fails
    shutil.which("prometheus") is None and not os.environ.get("CI"),
    reason="needs Prometheus (Debian: prometheus)",
)
#: Seconds of this test for what are minutes and hours of an operator.
SHORT = {"5m": "20s", "15m": "20s", "1h": "20s", "$__rate_interval": "20s"}
#: The last comparison of a condition: what stands before it is measured.
COMPARISON = re.compile(r"\s*(==|>=|<=|>|<)\s*-?[\d.]+\s*$")


def shortened(expression: str) -> str:
    return re.sub(r"\[([^\]]+)\]", lambda m: f"[{SHORT.get(m[1], m[1])}]", expression)


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def measured(condition: str) -> list[str]:
    """What an alert compares, without the comparisons: it has data while nothing is wrong."""
    parts = re.split(r"\s+and on \(\)\s+", condition)
    found = [COMPARISON.sub("", part) for part in parts]
    assert all(before != after for before, after in zip(parts, found, strict=True)), condition
    return found


def panels() -> Iterator[tuple[str, str]]:
    for path in sorted(GRAFANA.glob("*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            assert panel["type"] == "row" or panel["targets"], panel["title"]
            for target in panel.get("targets", ()):
                yield f"{board['title']}: {panel['title']}", target["expr"]


class Prometheus:
    """The real one, with our files, every wait of them in seconds."""

    def __init__(self, folder: Path, target: int) -> None:
        self.port = free_port()
        text = (PROMETHEUS / "rules.yml").read_text()
        folder.mkdir()
        (folder / "rules.yml").write_text(shortened(text))
        config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{target}"]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [
                "prometheus",
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            cwd=folder,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def ask(self, expression: str) -> list[Any]:
        answer = httpx.get(
            f"http://127.0.0.1:{self.port}/api/v1/query",
            params={"query": shortened(expression)},
            timeout=30,
        )
        said = answer.json()
        assert said["status"] == "success", (expression, said)
        found: list[Any] = said["data"]["result"]
        return [row for row in found if row["value"][1] != "NaN"]

    def is_ready(self) -> bool:
        try:
            return bool(self.ask("newscrawler_workers"))
        except (httpx.HTTPError, ValueError):  # it says "Service Unavailable" at first
            return False

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


@pytest.mark.long
def test_every_rule_and_every_panel_has_data(newsweb: Any, tmp_path: Path, queue: Queue) -> None:
    """On a clock that runs 60 times as fast, an article comes out every few seconds."""
    web = newsweb("ip", sites=2, articles=15, **{**QUIET, "rate": 60, "delay": 0.1, "factor": 60})
    queue.set_clock(web.about["clock"])
    scrapy = crawler(tmp_path, web, CRAWL_FOREVER=True)
    port = free_port()
    serve = scrapy.start("serve", "--port", str(port))
    prometheus = None
    try:
        until(lambda: "Search page" in serve.text(), "the search page", 60)
        prometheus = Prometheus(tmp_path / "prometheus", port)
        until(prometheus.is_ready, "the first scrape", 60)
        crawl = scrapy.start("crawl", "news")
        asked = {expression: what for what, expression in panels()}
        asked |= {rule["expr"]: rule["record"] for rule in rules() if "record" in rule}
        for rule in rules():
            if "alert" in rule:
                asked |= dict.fromkeys(measured(rule["expr"]), rule["alert"])
        missing = dict(asked)
        end = time.monotonic() + 90
        while missing and time.monotonic() < end:
            time.sleep(2)
            missing = {e: what for e, what in missing.items() if not prometheus.ask(e)}
        crawl.interrupt()
        crawl.wait(60)
        assert not missing, missing
        assert len(asked) > 40
    finally:
        if prometheus is not None:
            prometheus.stop()
        serve.kill()


def test_promtool_accepts_rules_and_configuration(tmp_path: Path) -> None:
    for args in (["rules", "rules.yml"], ["config", "prometheus.yml"]):
        done = subprocess.run(
            ["promtool", "check", *args], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_configuration_of_the_containers(tmp_path: Path) -> None:
    """With the files that compose.yml mounts at their places."""
    text = (ROOT / "deploy/container/prometheus.yml").read_text()
    mounted = {"/etc/prometheus/rules.yml": PROMETHEUS / "rules.yml"}
    for place, source in mounted.items():
        shutil.copy(source, tmp_path / Path(place).name)
    (tmp_path / "metrics_token").write_text("token")
    for place in (*mounted, "/run/secrets/metrics_token"):
        assert place in text
        text = text.replace(place, str(tmp_path / Path(place).name))
    config = tmp_path / "prometheus.yml"

    def check(written: str) -> subprocess.CompletedProcess[str]:
        config.write_text(written)
        command = ["promtool", "check", "config", str(config)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    done = check(text)
    assert done.returncode == 0 and "rules found" in done.stdout, done.stdout + done.stderr
    assert check(text.replace("credentials_file", "credential_file")).returncode == 1
    assert check(text.replace("rules.yml", "rule.yml")).returncode == 1


#: Where each series begins and what a minute adds to it, while all is well.
HEALTHY: dict[str, tuple[float, float]] = {
    'up{job="newscrawler", instance="a"}': (1, 0),
    'newscrawler_up{part="redis"}': (1, 0),
    "newscrawler_workers": (3, 0),
    "newscrawler_workers_silent": (0, 0),
    "newscrawler_page_fetched_total": (0, 600),
    'newscrawler_page_outcome_total{outcome="DONE"}': (0, 550),
    'newscrawler_page_outcome_total{outcome="RETRY"}': (0, 20),
    'newscrawler_page_reason_total{reason="RETRY(timeout)"}': (0, 10),
    'newscrawler_page_outcome_total{outcome="CHALLENGE"}': (0, 1),
    "newscrawler_article_new_total": (0, 30),
    "newscrawler_article_duplicate_total": (0, 2),
    'newscrawler_article_lag_seconds_bucket{stage="total", le="300"}': (0, 29),
    'newscrawler_article_lag_seconds_bucket{stage="total", le="3600"}': (0, 30),
    'newscrawler_article_lag_seconds_bucket{stage="total", le="+Inf"}': (0, 30),
    "newscrawler_frontier_queued": (500, 0),
    "newscrawler_frontier_quarantined": (10, 1),
    'newscrawler_site_last_new_seconds{site="a.vn"}': (0, 60),
    'newscrawler_selector_alarms_total{label="drift"}': (0, 0),
    'newscrawler_llm_tokens_total{label="in"}': (0, 1000),
}
#: The minute from which on something is wrong: longer than what any rule looks back.
BEGINS = 130


@dataclass(frozen=True)
class Fault:
    """A series from minute BEGINS on: ``jumps_to`` (None: it goes on from what it was), and what a
    minute adds to it then."""

    series: str
    adds: float = 0
    jumps_to: float | None = None


FAULTS = {
    "NewscrawlerNotScraped": Fault('up{job="newscrawler", instance="a"}', jumps_to=0),
    "NewscrawlerPartAway": Fault('newscrawler_up{part="redis"}', jumps_to=0),
    "NewscrawlerNoWorker": Fault("newscrawler_workers", jumps_to=0),
    "NewscrawlerWorkerSilent": Fault("newscrawler_workers_silent", jumps_to=1),
    "NewscrawlerStandsStill": Fault("newscrawler_page_fetched_total"),
    "NewscrawlerSlowToSearch": Fault(
        'newscrawler_article_lag_seconds_bucket{stage="total", le="300"}', 5
    ),
    "NewscrawlerManyFail": Fault('newscrawler_page_outcome_total{outcome="RETRY"}', 400),
    "NewscrawlerManyTimeouts": Fault('newscrawler_page_reason_total{reason="RETRY(timeout)"}', 200),
    "NewscrawlerManyChallenges": Fault('newscrawler_page_outcome_total{outcome="CHALLENGE"}', 100),
    "NewscrawlerManyDuplicates": Fault("newscrawler_article_duplicate_total", 60),
    "NewscrawlerSiteSilent": Fault('newscrawler_site_last_new_seconds{site="a.vn"}'),
    "NewscrawlerSetFails": Fault('newscrawler_selector_alarms_total{label="drift"}', jumps_to=1),
    "NewscrawlerQuarantineGrows": Fault("newscrawler_frontier_quarantined", 20),
    "NewscrawlerModelSpends": Fault('newscrawler_llm_tokens_total{label="in"}', 40_000),
}


def promised() -> dict[str, int]:
    """Alert -> minutes within which docs/operations.md says that it is told."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    found = {}
    for names, within in re.findall(r"^\| (Newscrawler[^|]+) \| [^|]+ \| ([^|]+) \|$", text, re.M):
        alerts = [name.replace("…", "Newscrawler") for name in names.split(", ")]
        times = within.split(", ")
        for number, alert in enumerate(alerts):
            many, unit = times[number % len(times)].split()
            found[alert] = int(many) * {"min": 1, "h": 60}[unit]
    return found


def values(series: str, fault: Fault | None, until_minute: int) -> str:
    """As promtool writes them: `start+step x steps`, a sample a minute."""
    start, step = HEALTHY[series]
    if fault is None or fault.series != series:
        return f"{start}+{step}x{until_minute}"
    last = start + step * (BEGINS - 1)
    then = last + fault.adds if fault.jumps_to is None else fault.jumps_to
    return f"{start}+{step}x{BEGINS - 1} {then}+{fault.adds}x{until_minute - BEGINS}"


def alerts_of(folder: Path, name: str, fault: Fault | None, raised: dict[int, set[str]]) -> None:
    """promtool fails unless exactly these alerts are raised at these minutes."""
    last = max(raised)
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": s, "values": values(s, fault, last)} for s in HEALTHY],
            "promql_expr_test": [
                {
                    "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": f"{minute}m",
                    "exp_samples": [
                        {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts
                    ],
                }
                for minute, alerts in raised.items()
            ],
        }
    ]
    file = folder / f"{name}.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(PROMETHEUS / "rules.yml")], "tests": tests}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_fault_raises_its_alert_in_time_and_a_healthy_fleet_none(tmp_path: Path) -> None:
    """Within the time of docs/operations.md, and nothing else with it."""
    told = promised()
    assert set(FAULTS) == set(told) == {rule["alert"] for rule in rules() if "alert" in rule}
    alerts_of(tmp_path, "healthy", None, {90: set(), 300: set()})
    for alert, fault in FAULTS.items():
        assert fault.series in HEALTHY
        # One minute more: promtool evaluates the groups of rules in any order, and the one of an
        # alert may read what another has recorded a minute before.
        by = BEGINS + told[alert] + 1
        alerts_of(tmp_path, alert, fault, {BEGINS - 1: set(), by: {alert}, by + 30: {alert}})


def test_commands_that_alerts_name_exist(tmp_path: Path) -> None:
    named = set()
    for rule in rules():
        if "alert" in rule:
            named |= set(
                re.findall(r"scrapy ([a-z]+)(?: ([a-z]+))?", rule["annotations"]["explain"])
            )
    assert len(named) > 5
    for command, verb in named:
        help_text = warm.run([command, "--help"], text=True, timeout=60).stdout
        assert "Usage" in help_text and verb in help_text, (command, verb)
