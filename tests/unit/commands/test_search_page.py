"""The search page beside `scrapy run`: whose page a port has, and who serves it
when that one ends."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from scrapy.settings import BaseSettings
from scrapy.utils.project import get_project_settings

from newscrawler.api.deps import mark_of
from newscrawler.api.probe import Owner, owner
from newscrawler.commands.run import SearchPage
from tests.crawl.harness import Running, Scrapy, until

Start = Callable[[Path], tuple[Running, int]]


def settings_of(data: Path, port: int) -> BaseSettings:
    settings = get_project_settings()
    settings.update({"DATA_DIR": str(data), "API_PORT": port, "REDIS_URL": ""}, priority="cmdline")
    return settings


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Start]:
    started: list[Running] = []

    def start(folder: Path) -> tuple[Running, int]:
        folder.mkdir(exist_ok=True)
        running = Scrapy(folder, {"REDIS_URL": ""}).start("serve", "--port", "0")
        started.append(running)
        found = until(
            lambda: re.search(r"http://127\.0\.0\.1:(\d+)", running.text()),
            "the address is printed",
        )
        return running, int(found[1])

    yield start
    for running in started:
        if running.process.poll() is None:
            running.kill()


@pytest.mark.long
def test_the_page_of_another_data_folder_is_not_ours(
    serve: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, port = serve(tmp_path / "other")
    settings = settings_of(tmp_path / "mine", port)
    page = SearchPage.start(settings)
    try:
        said = capsys.readouterr().err
        assert page.port > port
        assert f"Port {port} serves another data folder; this one is on port {page.port}" in said
        assert f"Search page: {page.url}\n" in said
        answer = httpx.get(f"{page.url}/healthz")
        assert answer.json()["data"] == mark_of(settings)
        assert str(tmp_path) not in answer.text, "/healthz is open to all and names no path"
    finally:
        page.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(page.url)


@pytest.mark.long
def test_a_port_that_is_taken_after_the_look_at_it_is_left(
    serve: Start,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, port = serve(tmp_path / "other")
    looks: list[int] = []

    def free_at_first(host: str, number: int, mark: str) -> Owner:
        looks.append(number)
        return "free" if len(looks) == 1 else owner(host, number, mark)

    monkeypatch.setattr("newscrawler.commands.run.owner", free_at_first)
    page = SearchPage.start(settings_of(tmp_path / "mine", port))
    try:
        assert page.port > port
        assert f"Search page: {page.url}\n" in capsys.readouterr().err
        assert _answers(page.url)
    finally:
        page.stop()


def test_a_port_that_is_bound_and_does_not_answer_is_passed_over(
    serve: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the near end of another program's connection is."""
    _, port = serve(tmp_path / "other")
    with socket.socket() as used:
        try:
            used.bind(("127.0.0.1", port + 1))
        except OSError:
            pytest.skip(f"port {port + 1} is in use already")
        page = SearchPage.start(settings_of(tmp_path / "mine", port))
        try:
            assert page.port > port + 1
            assert f"Search page: {page.url}\n" in capsys.readouterr().err
        finally:
            page.stop()


@pytest.mark.long
def test_a_second_run_takes_the_page_over(
    serve: Start,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SearchPage, "LOOK_S", 0.1)
    first, port = serve(tmp_path / "mine")
    page = SearchPage.start(settings_of(tmp_path / "mine" / "data", port))
    try:
        assert f"Search page: http://127.0.0.1:{port} (served already)" in capsys.readouterr().err
        assert page.process is None
        first.kill()
        until(lambda: "this one serves it now" in capsys.readouterr().err, "one line says so", 20)
        until(lambda: _answers(page.url), "the page is served again", 20)
    finally:
        page.stop()


def _answers(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/healthz").json()["service"] == "newscrawler")
    except (httpx.HTTPError, json.JSONDecodeError):
        return False


def test_a_port_of_another_program_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = SearchPage.start(settings_of(tmp_path, taken.getsockname()[1]))
        page.stop()
    assert "is taken by another program; set API_PORT" in capsys.readouterr().err
    assert page.process is None
