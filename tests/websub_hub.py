"""A hub of WebSub (W3C Recommendation, 2018) for tests: a real server on loopback.

It does what sections 5 to 8 ask of a hub: takes subscriptions by form, comes back with a challenge
before it believes one, fetches a topic when its publisher says that there is something new, and
sends the body to all subscribers, signed with the secret of each. What a broken or hostile hub does
is switched on by the attributes.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import secrets
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


@dataclass
class Subscriber:
    callback: str
    topic: str
    secret: str
    lease_s: int
    until: float


class Hub:
    """:attr requests: forms that were sent to it; ``answers``: (what, status) of each request to a
    callback. ``denies``, ``is_silent``, ``status``: it denies, never comes back, answers that."""

    def __init__(
        self, host: str = "127.0.9.60", lease_s: int = 600, method: str = "sha256"
    ) -> None:
        self.lease_s, self.method = lease_s, method
        self.denies, self.is_silent, self.status = False, False, 202
        self.subscribers: dict[tuple[str, str], Subscriber] = {}
        self.requests: list[dict[str, str]] = []
        self.answers: list[tuple[str, int]] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                form = {k: v[0] for k, v in parse_qs(self.rfile.read(size).decode()).items()}
                self.send_response(hub._taken(form))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self.url = f"http://{host}:{self._server.server_port}/hub"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # ------------------------------------------------------------------ subscriptions
    def _taken(self, form: dict[str, str]) -> int:
        self.requests.append(form)
        mode = form.get("hub.mode")
        if mode == "publish":
            threading.Thread(target=self.publish, args=(form["hub.url"],), daemon=True).start()
        elif mode not in ("subscribe", "unsubscribe") or "hub.callback" not in form:
            return 400
        elif self.status < 300 and not self.is_silent:
            threading.Thread(target=self._verify, args=(mode, form), daemon=True).start()
        return self.status

    def _verify(self, mode: str, form: dict[str, str]) -> None:
        callback, topic = form["hub.callback"], form["hub.topic"]
        if self.denies:
            self.ask(callback, "denied", topic, reason="not for you")
            return
        challenge = secrets.token_hex(16)
        status, body = self.ask(callback, mode, topic, challenge)
        if status != 200 or body != challenge:
            return
        if mode == "unsubscribe":
            self.subscribers.pop((callback, topic), None)
            return
        until = time.time() + self.lease_s
        self.subscribers[callback, topic] = Subscriber(
            callback, topic, form.get("hub.secret", ""), self.lease_s, until
        )

    def ask(
        self, callback: str, mode: str, topic: str, challenge: str = "", reason: str = ""
    ) -> tuple[int, str]:
        asked = {"hub.mode": mode, "hub.topic": topic}
        if mode == "subscribe":
            asked["hub.lease_seconds"] = str(self.lease_s)
        asked |= {"hub.challenge": challenge} if challenge else {"hub.reason": reason}
        status, body = _request(f"{callback}?{urlencode(asked)}")
        self.answers.append((mode, status))
        return status, body

    # ------------------------------------------------------------------ content
    def publish(self, topic: str) -> None:
        """The publisher says that there is something new: it is fetched once and sent to all."""
        with urllib.request.urlopen(topic, timeout=10) as answer:
            body = answer.read()
        for sub in list(self.subscribers.values()):
            if sub.topic == topic and time.time() < sub.until:
                self.send(sub, body)

    def send(self, sub: Subscriber, body: bytes, secret: str | None = None) -> int:
        secret = sub.secret if secret is None else secret
        digest = hmac.new(secret.encode(), body, getattr(hashlib, self.method)).hexdigest()
        headers = {
            "Content-Type": "application/rss+xml",
            "Link": f'<{self.url}>; rel="hub", <{sub.topic}>; rel="self"',
            "X-Hub-Signature": f"{self.method}={digest}",
        }
        status, _ = _request(sub.callback, body, headers)
        self.answers.append(("content", status))
        return status


def _request(
    url: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request("GET" if body is None else "POST", target, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as exc:
        return 0, str(exc)
    finally:
        connection.close()
