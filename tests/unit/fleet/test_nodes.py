"""The nodes of scrapy.cfg as scrapyd-client reads them, and what is no scrapyd."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from newscrawler.fleet.nodes import Node, NodeError, Target, TargetError, targets


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose scrapy.cfg is the only one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    yield tmp_path / "scrapy.cfg"


def test_sections_defaults_and_variables(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PASSWORD", "s3cret")
    project.write_text(
        "[deploy]\nproject = news\nusername = fleet\npassword = $NODE_PASSWORD\n"
        "[deploy:a]\nurl = http://10.0.0.1:6800/\n"
        "[deploy:b]\nurl = https://b.example:6800\nproject = other\nusername = me\n"
    )
    found = targets()
    assert found == {
        "a": Target("a", "http://10.0.0.1:6800", "news", "fleet", "s3cret"),
        "b": Target("b", "https://b.example:6800", "other", "me", "s3cret"),
    }
    assert "s3cret" not in repr(found)


def test_deploy_with_a_url_is_a_node_of_its_own(project: Path) -> None:
    project.write_text("[deploy]\nurl = http://127.0.0.1:6800/\n")
    assert targets() == {"default": Target("default", "http://127.0.0.1:6800", "newscrawler")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[settings]\ndefault = x\n", "names no node"),
        ("[deploy:a]\nproject = x\n", "[deploy:a]: url = (nothing)"),
        ("[deploy:a]\nurl = 10.0.0.1:6800\n", "is no address"),
        ("[deploy:a b]\nurl = http://a:6800\n", "letters, digits"),
        ("[deploy:a]\nurl = http://a:1/\n[deploy:b]\nurl = http://a:1\n", "the same scrapyd"),
        ("[deploy:a\n", "cannot be read"),
    ],
)
def test_a_wrong_file_is_one_clear_line(project: Path, text: str, said: str) -> None:
    project.write_text(text)
    with pytest.raises(TargetError) as error:
        targets()
    assert said in str(error.value) and "\n" not in str(error.value).strip().split("\n")[0]


class Strange(http.server.BaseHTTPRequestHandler):
    """Another program on the port: a page, and a locked door."""

    def do_GET(self) -> None:
        locked = self.path.startswith("/locked")
        self.send_response(401 if locked else 200)
        self.end_headers()
        self.wfile.write(b"<html>It works!</html>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def strange() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Strange)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_what_is_no_scrapyd_is_said(strange: str) -> None:
    view = Node(Target("a", strange)).view()
    assert "does not answer as scrapyd does" in view.error and "node a" in view.error
    view = Node(Target("a", f"{strange}/locked", username="u", password="hidden")).view()
    assert "refuses the name and password" in view.error and "hidden" not in view.error


def test_a_node_that_is_away_is_said() -> None:
    with pytest.raises(NodeError) as error:
        Node(Target("a", "http://127.0.0.1:1")).versions()
    assert not error.value.is_late and "connection refused" in str(error.value)
