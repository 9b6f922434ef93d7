"""Sites whose pages are empty frames: a script asks for the page and puts it in place, as
single-page applications do."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from tests.newsweb.faults import Answer
from tests.newsweb.wire import Wire

APP = "/static/app.js"
DATA = "/api/trang"

_SHELL = """<!doctype html><html lang="vi"><head><meta charset="utf-8"><title>Báo</title>
<link rel="stylesheet" href="/static/app.css"></head><body>
<noscript>Trang này cần JavaScript.</noscript><div id="root"></div>
<script src="/static/app.js"></script></body></html>"""
#: The page itself, and what such pages do besides: an image that counts, a socket, a beacon.
_SCRIPT = """
new Image().src = '/static/dem.gif?' + Math.random();
try { new WebSocket('ws://' + location.host + '/static/song') } catch (e) {}
navigator.sendBeacon('/static/dem', 'x');
fetch('/api/trang?duong=' + encodeURIComponent(location.pathname + location.search))
  .then(answer => answer.json()).then(page => {
    const found = new DOMParser().parseFromString(page.html, 'text/html');
    document.head.innerHTML = found.head.innerHTML;
    document.getElementById('root').innerHTML = found.body.innerHTML;
  });
"""


def answer(target: str, page: Callable[[str], Wire]) -> Answer | Wire:
    """:param page: the page behind an address, whole, as a site without scripts has it"""
    parts = urlsplit(target)
    if parts.path == APP:
        return Answer(200, _SCRIPT.encode(), "text/javascript; charset=utf-8")
    if parts.path == DATA:
        wire = page(parse_qs(parts.query).get("duong", ["/"])[0])
        data = json.dumps({"html": wire.body.decode("utf-8", "replace")})
        return Answer(wire.status, data.encode(), "application/json")
    if parts.path.startswith("/static/"):
        return Answer(404, b"", "text/plain")
    wire = page(target)
    is_page = wire.status == 200 and b"text/html" in wire.head
    return Answer(200, _SHELL.encode()) if is_page else wire
