"""What the program says, frozen: for a change of structure that must not change behaviour.

    python -m benchmarks.golden freeze PAGES OUT     before and after the change, with two folders
    python -m benchmarks.golden compare OUT1 OUT2    exit 1 and a list of what differs

PAGES is a folder of stored real pages (gold.jsonl, html/). OUT gets one file per answer: the
predictions and the scores of `scrapy evaluate`, the articles that `scrapy replay` stores and its
outcome for each page, the `--json` of every command that only looks, and every GET route of the API
over that store. What a clock, a process id or a random number decides is taken out, so that two
runs of one program are equal. The demo is not among them: its simulated web runs by the clock, so
two runs of one program differ; `make demo` judges itself and exits 0 or 1.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

#: Keys whose values come from a clock, a process or the machine.
VOLATILE = re.compile(
    r"^(fetched|discovered|took_ms|pid|host|worker|workers|started|uptime.*|.*_at|.*_ms|.*_s|age.*|"
    r"next.*|last.*|raw_ref|seen|now|memory.*|cpu.*|version_time|bytes|freshness|lags|due.*|oldest.*)$"
)
#: What a page for people shows of the clock.
CLOCK = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+\d\d:\d\d)?|[\d.,]+"
    r" ?(ms|seconds?|minutes?|s|min)\b"
)
#: Commands that only look, over the store that the replay made.
COMMANDS = {
    "search-plain": ["search", "--json", "climate"],
    "search-phrase": ["search", "--json", '"the"'],
    "search-none": ["search", "--json", "zzzzqqqq"],
    "sites": ["sites", "list", "--json"],
    "seeds": ["seeds", "list", "--json"],
    "frontier": ["frontier", "report", "--json"],
    "selectors": ["selectors", "list", "--json"],
    "export": ["export", "--json"],
    "search-facets": ["search", "--json", "--facets", "--collapse", "--sort", "date", "the"],
    "seeds-report": ["seeds", "report", "--json"],
    "sites-freshness": ["sites", "freshness", "--json"],
    "quarantine": ["frontier", "quarantine", "list", "--json"],
    "reparse": ["reparse", "--dry-run", "--limit", "200", "--json"],
    "doctor": ["doctor", "--json"],
}
#: The same for one article: its address, and its site's host, are put in.
COMMANDS_OF_ARTICLE = {
    "article": ["article", "{url}", "--json"],
    "article-versions": ["article", "{url}", "--versions", "--json"],
    "why": ["frontier", "why", "{url}", "--json"],
    "sites-show": ["sites", "show", "{site}", "--json"],
    "selectors-show": ["selectors", "show", "{site}", "--json"],
    "selectors-test": ["selectors", "test", "{site}", "--json"],
    "selectors-history": ["selectors", "history", "{site}", "--json"],
    "frontier-of-site": ["frontier", "report", "{host}", "--json"],
}
#: Pages for people: paths, with an article's id and site put in.
PAGES_OF_ARTICLE = (
    "/api/articles/{id}",
    "/api/articles/{id}/versions",
    "/article/{id}",
    "/selectors/{site}",
)
PAGES = ("/?q=climate", "/?q=zzzzqqqq", "/sites", "/selectors", "/docs", "/openapi.json")
QUERIES = ("climate", '"prime minister"', "title:election", "-the game", "Hà Nội", "ha noi", "")


def run(command: list[str], data: Path, extra: dict[str, str] | None = None) -> str:
    """The standard output of one `scrapy` command; its exit code is the last line."""
    env = {**os.environ, "DATA_DIR": str(data), "PROGRESS": "off", **(extra or {})}
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *command],
        capture_output=True,
        text=True,
        env=env,
        timeout=1800,
    )
    return f"{done.stdout}\nexit {done.returncode}\n"


def stable(value: Any) -> Any:
    """``value`` without what may differ between two runs of one program."""
    if isinstance(value, dict):
        return {k: stable(v) for k, v in sorted(value.items()) if not VOLATILE.match(k)}
    if isinstance(value, list):
        return [stable(item) for item in value]
    return value


def steady(text: str, day: date | None = None) -> str:
    """``text`` without this machine, and without times of these days: a page
    may say "five hours ago"."""
    today = day or datetime.now(UTC).date()
    days = "|".join(str(today + timedelta(days=n)) for n in (-2, -1, 0, 1))
    shown = "|".join(f"{today + timedelta(days=n):%-d %b %Y}" for n in (-2, -1, 0, 1))
    for pattern, instead in (
        (rf"\b({days})[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", "THESE DAYS"),
        (rf"\b({shown}), \d\d:\d\d", "THESE DAYS"),
        (r"comes again in \w+ after \w+|its time has come[\w, ]*", "IN A WHILE"),
        (r'"score": -?\d{10},?', '"score": OF THE TIME'),  # of a record in the queue
        (r'"(held|ready|waiting)": \d+', r'"\1": SOME'),  # gates open while one looks
        (r'"data": "[0-9a-f]{12}"', '"data": "OF THE FOLDER"'),
        (r"[\w-]+\.warc\.gz:\d+:\d+", "RAW PAGE"),
        (r"[\d.]+ GB free", "SOME GB free"),
    ):
        text = re.sub(pattern, instead, text)
    return text.replace(str(Path(sys.executable)), "PYTHON")


def normal(text: str) -> str:
    """Each line that is JSON, without volatile keys; in the order of its text, as
    stores may list in any."""
    lines = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            line = json.dumps(stable(json.loads(line)), ensure_ascii=False, sort_keys=True)
        lines.append(line)
    return steady("\n".join(sorted(lines)) + "\n")


def examples(data: Path) -> list[dict[str, str]]:
    """Three stored articles, far apart in the order of their addresses, always the same ones."""
    rows = [json.loads(line) for line in run(["export"], data).splitlines() if line.startswith("{")]
    rows.sort(key=lambda row: row["url"])
    chosen = [rows[len(rows) * n // 4] for n in (1, 2, 3)]
    return [
        {
            "id": row["id"],
            "url": row["url"],
            "site": row["site"],
            "host": urllib.parse.urlsplit(row["url"]).netloc,
        }
        for row in chosen
    ]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.contextmanager
def served(data: Path) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "serve", "--port", str(port)],
        env={**os.environ, "DATA_DIR": str(data)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=2):
                break
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit("`scrapy serve` did not answer within 60 s")
            time.sleep(0.1)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def fetched(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return f"{answer.status}\n{answer.read().decode()}"
    except urllib.error.HTTPError as exc:
        return f"{exc.code}\n{exc.read().decode()}"


def routes(base: str) -> Iterator[tuple[str, str]]:
    """(name, path) of every GET route without a parameter and with an end, and of the searches of
    QUERIES."""
    paths = json.loads(fetched(f"{base}/openapi.json").partition("\n")[2])["paths"]
    for path, methods in sorted(paths.items()):
        if "get" not in methods or "{" in path or path in ("/metrics", "/api/search"):
            continue
        if "text/event-stream" not in methods["get"]["responses"]["200"].get("content", {}):
            yield path.strip("/").replace("/", "-"), path
    for number, query in enumerate(QUERIES):
        quoted = urllib.parse.quote(query)
        yield f"api-search-{number}", f"/api/search?q={quoted}&facets=true"


def freeze(pages: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()

        def keep(name: str, text: str) -> None:
            (out / f"{name}.txt").write_text(normal(text.replace(folder, "FOLDER")))

        for tier in ("generic", "rules"):
            predictions = out / f"evaluate-{tier}.jsonl"
            command = ["evaluate", str(pages), "--json", "--tier", tier, "--out", str(predictions)]
            keep(f"evaluate-{tier}", run(command, data))
        keep("replay", run(["replay", str(pages), "--json", "--data", str(data)], data))
        for page in sorted((pages / "html").iterdir())[::100]:
            for flag in ("--json", "--explain"):
                answer = run(["extract", str(page), flag, "--url", "https://example.com/a"], data)
                keep(f"extract-{page.name}{flag}", answer)
        for name, command in COMMANDS.items():
            keep(f"command-{name}", run(command, data))
        articles = examples(data)
        for number, article in enumerate(articles):
            for name, command in COMMANDS_OF_ARTICLE.items():
                words = [word.format(**article) for word in command]
                keep(f"command-{name}-{number}", run(words, data))
        with served(data) as base:
            for name, path in routes(base):
                keep(f"route-{name}", fetched(base + path))
            paths = [path.format(**a) for a in articles for path in PAGES_OF_ARTICLE]
            for path in (*PAGES, *paths):
                name = re.sub(r"\W+", "-", path).strip("-")
                keep(f"page-{name}", CLOCK.sub("TIME", fetched(base + path)))
    print(f"{len(list(out.iterdir()))} answers in {out}")


def compare(before: Path, after: Path) -> int:
    """1 when anything differs; prints the first lines of each difference."""
    names = sorted({p.name for p in before.iterdir()} | {p.name for p in after.iterdir()})
    different = 0
    for name in names:
        old, new = before / name, after / name
        was, is_ = (p.read_text().splitlines() if p.exists() else ["(no file)"] for p in (old, new))
        if was == is_:
            continue
        different += 1
        lines = list(difflib.unified_diff(was, is_, lineterm="", n=0))
        print(f"{name}: {len(lines)} lines differ")
        for line in lines[2:8]:
            print("   ", line[:300])
    print(f"{len(names)} answers, {different} differ")
    return 1 if different else 0


def main(argv: list[str]) -> int:
    if len(argv) == 3 and argv[0] == "freeze":
        freeze(Path(argv[1]), Path(argv[2]))
        return 0
    if len(argv) == 3 and argv[0] == "compare":
        return compare(Path(argv[1]), Path(argv[2]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
