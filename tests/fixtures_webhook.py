"""A loopback receiver of alerts that keeps what was posted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Receiver:
    """``is_away``: its port is taken and refuses connections until it comes."""

    def __init__(self, is_away: bool = False) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        #: What is answered to a body, which is kept all the same.
        self.status: Callable[[bytes], int] = lambda body: 204
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.bodies.append(body)
                outer.headers.append(dict(self.headers))
                self.send_response(status := outer.status(body))
                if status != 204:
                    self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.server_bind()
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        if not is_away:
            self.come()

    def come(self) -> None:
        self.server.server_activate()
        self.thread.start()

    @property
    def alerts(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)


@pytest.fixture
def webhook() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()
