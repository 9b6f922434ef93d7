"""What a command runs with is what its crawler sees: over settings.py, under what the user said."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scrapy.crawler import CrawlerRunner
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings

from newscrawler import cli, settings
from newscrawler.commands import run
from tests import warm

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = sorted(
    path.stem
    for path in Path(run.__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "crawl")
)


def started(name: str, *args: str) -> BaseSettings:
    """The settings of the crawler that `scrapy <name> <args>` would make."""
    command: Any = importlib.import_module(f"newscrawler.commands.{name}").Command()
    command.settings = Settings()
    command.settings.setmodule(settings, priority="project")
    command.settings.setdict(command.default_settings, priority="command")
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    command.add_options(parser)
    opts, rest = parser.parse_known_args(list(args))
    command.process_options(rest, opts)
    return CrawlerRunner(command.settings).create_crawler("news").settings


def test_run_goes_on_for_ever_unless_told_otherwise(tmp_path: Path) -> None:
    data = f"DATA_DIR={tmp_path}"
    seen = started("run", "-s", data)
    print({name: seen[name] for name in ("CRAWL_FOREVER", "SCHEDULER_IDLE_BEFORE_CLOSE")})
    assert seen.getbool("CRAWL_FOREVER") is True
    assert seen.getint("SCHEDULER_IDLE_BEFORE_CLOSE") == 3
    assert seen["LOG_FILE"] == str(tmp_path / "logs" / "crawl.log")
    assert seen.getint("CRAWL_PAGES") == 0

    limited = started("run", "-s", data, "--until-done", "--pages", "7", "--minutes", "0.5")
    assert limited.getbool("CRAWL_FOREVER") is False
    assert limited.getint("CRAWL_PAGES") == 7
    assert limited.getint("CLOSESPIDER_TIMEOUT") == 30

    said = started(
        "run", "-s", data, "-s", "CRAWL_FOREVER=0", "-s", "SCHEDULER_IDLE_BEFORE_CLOSE=9"
    )
    assert said.getbool("CRAWL_FOREVER") is False
    assert said.getint("SCHEDULER_IDLE_BEFORE_CLOSE") == 9


def test_replay_keeps_what_makes_it_one_and_takes_the_rest(tmp_path: Path) -> None:
    seen = started(
        "replay", str(tmp_path), "-s", f"DATA_DIR={tmp_path}", "-s", "CONCURRENT_REQUESTS=4",
        "-s", "REDIS_URL=redis://127.0.0.1:1/0",
    )  # fmt: skip
    assert seen["DATA_DIR"] == str(tmp_path / "replay") and seen["REDIS_URL"] == ""
    assert seen.getint("CONCURRENT_REQUESTS") == 4
    assert seen["LOG_LEVEL"] == "WARNING"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_sets_below_the_project(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the priority "command" a setting that settings.py names stays as it is there."""
    command: Any = importlib.import_module(f"newscrawler.commands.{name}").Command()
    passed_over = {
        name: value for name, value in command.default_settings.items() if name in vars(settings)
    }
    if not isinstance(command, cli.Command):  # Scrapy's own, behind the address guard
        assert name in ("bench", "fetch", "parse", "shell", "view")
        assert passed_over == {name: getattr(settings, name) for name in passed_over}
        return
    assert not passed_over
    for setting in command.own_settings:
        monkeypatch.delenv(setting, raising=False)  # what the environment says stays
    own = Settings()
    own.setmodule(settings, priority="project")
    cli.set_own(own, command.own_settings)
    for setting, value in command.own_settings.items():
        assert own[setting] == value
        assert own.getpriority(setting) == SETTINGS_PRIORITIES["cmdline"]


def test_what_the_environment_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Settings()
    own.set("LOG_LEVEL", "DEBUG", priority="project")  # as settings.py reads it
    monkeypatch.setenv("LOG_LEVEL", "DEBUG")
    cli.set_own(own, {"LOG_LEVEL": "WARNING"})
    assert own["LOG_LEVEL"] == "DEBUG"
    monkeypatch.delenv("LOG_LEVEL")
    cli.set_own(own, {"LOG_LEVEL": "WARNING"})
    assert own["LOG_LEVEL"] == "WARNING"


# ---------------------------------------------------------------- one line for what is wrong around the command
def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SCRAPY_", "REDIS_URL"))}
    return {**kept, "DATA_DIR": str(tmp_path / "data"), **more}


@pytest.mark.parametrize(
    "command", [("crawl", "news"), ("run",), ("serve",), ("seeds", "list")], ids=" ".join
)
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("API_PORT", "abc", "API_PORT=abc: must be a number from 0 to 65535"),
        ("API_PORT", "99999", "API_PORT=99999: must be a number from 0 to 65535"),
        ("API_PORT", "²", "API_PORT=²: must be a number"),
        ("REDIS_URL", "foo://s3cret@host", "REDIS_URL=foo://... is no address of Redis"),
        ("REDIS_URL", "s3cret", "REDIS_URL=... is no address of Redis"),
        ("REDIS_URL", "redis://h:6390/abc", "REDIS_URL: abc is no number of a database"),
        ("REDIS_URL", "redis://h/1/2", "REDIS_URL: what stands behind the host is no number of a"),
        ("REDIS_URL", "redis://u:1/s3cret@h", "REDIS_URL: what stands behind the host is no"),
        ("REDIS_URL", "unix:///tmp/r?db=abc", "REDIS_URL: abc is no number of a database"),
        ("LOG_LEVEL", "verbose", "LOG_LEVEL=VERBOSE: must be DEBUG, INFO, WARNING"),
    ],
)
def test_a_wrong_place_is_one_line(
    tmp_path: Path, command: tuple[str, ...], name: str, value: str, said: str
) -> None:
    done = warm.run(
        list(command), env=environment(tmp_path, **{name: value}), text=True, timeout=60
    )
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(said) and "s3cret" not in line
    assert done.stdout == "" and not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "url", ["redis://h:6390/1", "rediss://h", "redis://h/", "unix:///tmp/r?db=2"]
)
def test_a_database_that_is_a_number_or_none_is_taken(url: str) -> None:
    cli.begin(Settings({"REDIS_URL": url, "API_PORT": 0}))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CLOSESPIDER_TIMEOUT", "x", 'CLOSESPIDER_TIMEOUT="x": must be a number'),
        ("CONCURRENT_REQUESTS", "0", "CONCURRENT_REQUESTS=0: must be 1 or more, or nothing is"),
        ("EVENT_SINKS", f"{__name__}.NeedsFile", "NeedsFile cannot be made from the settings"),
    ],
)
def test_a_setting_that_no_crawl_could_run_with_is_one_line(
    tmp_path: Path, redis_server: str, name: str, value: str, said: str
) -> None:
    done = warm.run(
        ["crawl", "news", "-s", f"{name}={value}", "--nolog"],
        env=environment(tmp_path, REDIS_URL=redis_server), text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert said in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("host", ["10.0.0.1", "[::1]:8080", "127.0.0.1:8080"])
def test_a_crawl_of_a_private_address_names_the_setting(
    tmp_path: Path, redis_server: str, host: str
) -> None:
    done = warm.run(
        ["crawl", "news", "-a", f"urls=http://{host}/tin", "--nolog"],
        env=environment(tmp_path, REDIS_URL=redis_server), text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    said = done.stderr.splitlines()[-1]
    assert f"http://{host}/tin: " in said and "ALLOWED_PRIVATE_NETWORKS does not name it" in said


class NeedsFile:
    """A sink as docs/extending.md has it."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> NeedsFile:
        return cls(settings["EVENT_FILE"])

    async def deliver(self, events: Any) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("options", "said"),
    [(["-a", "bla=1"], "unknown argument -a bla="), ([], "REDIS_URL is not set: a worker started")],
)
def test_the_log_of_a_job_of_scrapyd_has_its_refusal(
    tmp_path: Path, options: list[str], said: str
) -> None:
    """scrapyd writes stderr of its jobs to its own log."""
    log = tmp_path / "job.log"
    done = warm.run(
        ["crawl", "news", *options, "--logfile", str(log)],
        env=environment(tmp_path, SCRAPY_PROJECT="default"), text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode in (1, 2) and said in done.stderr
    assert f"Start refused reason={said}" in log.read_text()


def test_a_misspelt_setting_names_the_one_that_is_near(tmp_path: Path) -> None:
    given = ("CLOSESPIDER_PAGECOUTN=5", "LOG_LEVLE=INFO", "EVENT_FILE=x", "CLOSESPIDER_TIMEOUT=5")
    options = [part for one in given for part in ("-s", one)]
    done = warm.run(["sites", "list", *options], env=environment(tmp_path), text=True, timeout=60)
    assert done.returncode == 0 and sorted(done.stderr.splitlines()) == [
        "unknown setting CLOSESPIDER_PAGECOUTN; did you mean CLOSESPIDER_PAGECOUNT?",
        "unknown setting LOG_LEVLE; did you mean LOG_LEVEL?",
    ]


def test_standard_output_that_cannot_be_written_is_one_line(filled_folder: Path) -> None:
    def ended(command: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m scrapy {command}"],
            env=environment(filled_folder) | {"DATA_DIR": str(filled_folder)},
            cwd=ROOT, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stderr.splitlines()

    full = "standard output cannot be written: No space left on device"
    assert ended("sites list >/dev/full") == (1, [full])
    closed = "export failed: standard output is closed; name a file with --out"
    assert ended("export >&-") == (1, [closed])
    assert ended("sites list >/dev/null")[0] == 0


@pytest.mark.parametrize("port", ["99999", "-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    done = warm.run(["serve", f"--port={port}"], env=environment(tmp_path), text=True, timeout=60)
    assert done.returncode == 2
    assert f"{port}: must be a number from 0 to 65535" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("lines", [0, 1], ids=["reads nothing", "reads a line"])
def test_a_pipe_that_is_closed_is_no_error(tmp_path: Path, lines: int) -> None:
    """33 sites have more seeds than a pipe holds."""
    command = [sys.executable, "-m", "scrapy", "seeds", "list", "--json"]
    process = subprocess.Popen(
        command,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdout is not None and process.stderr is not None
    for _ in range(lines):
        assert process.stdout.readline().startswith(b"{")
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0, said
    assert said == b""


def test_standard_error_that_nobody_reads_does_not_end_a_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scrapy", "sites", "freshness"]  # it has only a note to say
    process = subprocess.Popen(
        command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stderr.close()
    process.stdout.read()
    process.stdout.close()
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    "command",
    [["evaluate", "pages"], ["selectors", "bench", "--base-url", "http://x", "--model", "m"]],
)
def test_what_needs_a_checkout_says_so_where_there_is_none(
    tmp_path: Path, command: list[str]
) -> None:
    """As in an egg: the package alone, without evaluation/ beside it."""
    root = Path(run.__file__).resolve().parents[2]
    (tmp_path / "newscrawler").symlink_to(root / "newscrawler")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = newscrawler.settings\n")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *command, "-s", f"DATA_DIR={tmp_path / 'data'}"],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "needs a checkout of the repository: its package `evaluation` is not installed with newscrawler"
    )
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- what a newcomer mistypes
@pytest.mark.parametrize("option", ["--limt", "--jsn", "--size=0"])
def test_a_mistyped_option_of_search_is_no_word(tmp_path: Path, option: str) -> None:
    args = ["search", "vàng", option, "3"]
    done = warm.run(args, env=environment(tmp_path), text=True, timeout=60)
    assert done.returncode == 2 and f"unknown option {option}" in done.stderr
    meant = warm.run(
        ["search", "--", "vàng", option], env=environment(tmp_path), text=True, timeout=60
    )
    assert "unknown option" not in meant.stderr


@pytest.mark.parametrize("name", [*COMMANDS, "crawl"])
def test_a_mistyped_option_is_no_argument_of_any_command(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once: `scrapy backup --rwa` made a backup in a folder of this name."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(
        cli.UsageError, match=r"^unknown option --logfiel; did you mean --logfile\?"
    ) as e:
        started(name, "--logfiel", "x")
    assert not e.value.print_help and not (tmp_path / "data").exists()
    with pytest.raises(cli.UsageError, match=r"^unknown option --zzqqxx=3(; a query.*)?$"):
        started(name, "a", "--zzqqxx=3")


def test_a_backup_with_a_mistyped_option_makes_nothing(tmp_path: Path) -> None:
    env = environment(tmp_path)
    done = warm.run(["backup", "--rwa"], env=env, text=True, timeout=60)
    assert done.returncode == 2 and not (ROOT / "--rwa").exists()
    assert list(tmp_path.iterdir()) == []
    (line,) = done.stderr.strip().splitlines()[-1:]
    assert line.endswith("unknown option --rwa; did you mean --raw?"), done.stderr


def test_what_stands_behind_the_two_dashes_is_the_query(filled_folder: Path) -> None:
    def said(*words: str) -> str:
        environ = {**environment(filled_folder), "DATA_DIR": str(filled_folder)}
        done = warm.run(["search", *words], env=environ, text=True, timeout=60)
        return str(done.stdout + done.stderr)

    assert "error: -vàng: no word to look for" in said("--", "-vàng")
    with_a_word = said("--", "-vàng", "giá")
    assert "Read as: " in with_a_word and "--" not in with_a_word


@pytest.mark.parametrize("command", [["export", "--format", "csv"], ["reparse"]], ids=" ".join)
def test_since_that_is_no_time_names_what_is(tmp_path: Path, command: list[str]) -> None:
    args = [*command, "--since", "yesterday"]
    done = warm.run(args, env=environment(tmp_path), text=True, timeout=60)
    assert done.returncode == 2 and "write 3d, 12h, 2026-08-31" in done.stderr


def test_since_is_an_age_a_day_or_a_time() -> None:
    now = datetime.now(UTC)
    for text, hours in (("3d", 72), ("12h", 12), (" 0d ", 0)):
        assert abs(now - cli.since(text) - timedelta(hours=hours)) < timedelta(minutes=5)
    assert cli.since("2026-08-31") == datetime(2026, 8, 31, tzinfo=UTC)
    assert cli.since("2026-08-31T07:00+07:00") == datetime(2026, 8, 31, tzinfo=UTC)


def test_a_log_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data" / "logs" / "crawl.log").mkdir(parents=True)
    args = ["run", "--no-serve", "--minutes", "1"]
    done = warm.run(args, env=environment(tmp_path), text=True, timeout=60)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "DATA_DIR cannot be written" in done.stderr and "crawl.log" in done.stderr


@pytest.mark.parametrize(
    ("python", "said"),
    [("nosuchpython", "there is no such program"), ("python3.10", "3.11, 3.12 or 3.13 is needed")],
)
def test_make_refuses_a_python_that_it_cannot_use(tmp_path: Path, python: str, said: str) -> None:
    """And leaves no environment behind that the next `make run` would take."""
    old = tmp_path / "python3.10"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.13 && exit 0\nexit 1\n')
    old.chmod(0o755)
    venv = tmp_path / "venv"
    done = subprocess.run(
        ["make", "-C", str(ROOT), f"VENV={venv}", f"PYTHON={python}", f"{venv}/bin/python"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode and said in done.stderr and not venv.exists()


class Destroyed:
    """Ctrl-C comes while it is taken away."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the interpreter looks for signals between two steps
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_within_a_destructor_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    reached = False
    with pytest.raises(SystemExit) as ended, cli.interruptible("Stopped."):
        Destroyed()
        reached = True
    assert reached, "Python has dropped it"
    assert ended.value.code == 130 and capsys.readouterr().err.endswith("Stopped.\n")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("command", [["seeds", "add"], ["extract"]], ids=lambda args: args[0])
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://nosuch.invalid/tin", "name not found: nosuch.invalid"),
        ("http://10.0.0.1/tin", "10.0.0.1 is not fetched: private address"),
    ],
)
def test_an_address_that_cannot_be_asked_is_said_at_once(
    tmp_path: Path, command: list[str], url: str, said: str
) -> None:
    """Once: 75 seconds of silence, and then when the next turn would be."""
    done = warm.run([*command, url], env=environment(tmp_path), text=True, timeout=60)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert said in line and url in line, line
    assert done.stdout == ""


@pytest.mark.parametrize("given", ["http://nosuch.invalid/tin", "nosuch.invalid", "10.0.0.1"])
def test_replay_of_an_address_says_at_once_that_it_takes_a_folder(
    tmp_path: Path, given: str
) -> None:
    done = warm.run(["replay", given], env=environment(tmp_path), text=True, timeout=60)
    assert done.returncode in (1, 2)
    (line,) = done.stderr.splitlines()
    assert given.rpartition("//")[2] in line and "gold.jsonl" in line, line
    assert done.stdout == ""


def test_extract_shows_a_page_with_pictures(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    paragraphs = "".join(
        f"<p>Câu thứ {n} của bài viết kể về cơn bão số {n} đã đi qua ven biển miền Trung.</p>"
        for n in range(12)
    )
    page.write_text(
        "<html><head><meta property='og:type' content='article'></head><body><article>"
        f"<h1>Bão số ba đổ bộ vào miền Trung</h1>{paragraphs}<figure><img src='/a.jpg'>"
        "<figcaption>Sóng lớn ở Vinh. Ảnh: An Bình</figcaption></figure>"
        f"{paragraphs}</article></body></html>"
    )
    done = warm.run(
        ["extract", str(page), "--url", "https://bao.example/tin-1.html"],
        env=environment(tmp_path), text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    [line] = [x for x in done.stdout.splitlines() if x.startswith("pictures:")]
    assert "https://bao.example/a.jpg | Sóng lớn ở Vinh." in line
    assert "Câu thứ 11" in done.stdout
    explained = warm.run(
        ["extract", str(page), "--url", "https://bao.example/tin-1.html", "--explain"],
        env=environment(tmp_path), text=True, timeout=60,
    )  # fmt: skip
    assert explained.returncode == 0 and "Sóng lớn" in explained.stdout, explained.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["run", "--pages", "abc"], "abc: must be a whole number above 0"),
        (["run", "--pages", "0"], "0: must be a whole number above 0"),
        (["run", "--minutes", "x"], "x: must be a number above 0"),
        (["run", "--minutes", "nan"], "nan: must be a number above 0"),
        (["run", "--sites", " , "], "--sites names no site"),
        (["monitor", "--every", "soon"], "soon: must be a span of time like 90s, 5m"),
        (["seeds", "refresh", "--every", "0s"], "--every must be a second or more"),
        (["report", "--day", "2099-01-01"], "2099-01-01: has not begun yet"),
        (["report", "--day", "today"], "nothing is known of"),
        (["seeds", "add", "https://la.example/rss/tin.rss"], "scrapy seeds add https://HOST/"),
    ],
)
def test_a_wrong_argument_says_what_is_right(tmp_path: Path, command: list[str], said: str) -> None:
    done = warm.run(command, env=environment(tmp_path), text=True, timeout=90)
    assert done.returncode in (1, 2) and said in done.stderr, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30), ("5m", 300), ("1h", 3600), ("7d", 604_800), ("1.5h", 5400), ("0.5s", 0.5),
        ("1h30m", 5400), ("1d12h", 129_600), ("2m05s", 125), (" 5m ", 300), ("0m", 0),
    ],
)  # fmt: skip
def test_a_span_of_time_has_units_or_is_seconds(text: str, seconds: float) -> None:
    assert cli.span_s(text) == cli.span_with_units_s(text) == seconds


def test_a_number_alone_is_seconds_where_no_time_can_be_meant() -> None:
    assert (cli.span_s("7"), cli.span_s("1.5")) == (7, 1.5)
    assert cli.span_with_units_s("7") is None


@pytest.mark.parametrize("text", ["", "m", "5 m", "-1", "²s", "30m1h", "1w", "1h30", "1e3"])
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    assert cli.span_with_units_s(text) is None
    with pytest.raises(argparse.ArgumentTypeError, match="a span of time like 90s, 5m, 1h30m"):
        cli.span_s(text)


def test_since_takes_an_age_a_day_or_a_time() -> None:
    for text, hours in (("3d", 72), ("12h", 12), ("90m", 1.5), ("1d12h", 36)):
        assert abs((datetime.now(UTC) - cli.since(text)).total_seconds() / 3600 - hours) < 0.1
    assert cli.since("2026-08-31") == datetime(2026, 8, 31, tzinfo=UTC)
    for wrong in ("soon", "90", "999999d"):
        with pytest.raises(cli.UsageError, match="not a time"):
            cli.since(wrong)


@pytest.mark.parametrize(
    "command",
    [
        ["monitor", "--every"],
        ["seeds", "refresh", "--every"],
        ["follow", "add", "a", "b", "--mail", "a@b.vn", "--every"],
        ["frontier", "audit", "a.vn", "--last"],
        ["frontier", "quota", "a.vn", "--pages", "5", "--per"],
    ],
    ids=lambda command: command[0] + command[-1],
)
def test_every_option_of_a_span_says_the_same(tmp_path: Path, command: list[str]) -> None:
    done = warm.run([*command, "soon"], env=environment(tmp_path), text=True, timeout=90)
    assert done.returncode == 2
    assert f"argument {command[-1]}: soon: must be a span of time like 90s, 5m" in done.stderr
