"""Everything that can go wrong with an answer, by name, each with what a good crawler makes of it.

A fault is laid over an ordinary story: the story's page is rendered, then spoiled. So each fault
has a real article address that fits the site's pattern and is linked like any other.
"""

from __future__ import annotations

import gzip
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from tests.newsweb.world import World

MB = 1024 * 1024


@dataclass(slots=True)
class Answer:
    """One HTTP answer. ``end`` is how it goes wrong on the wire: "" | drop (no answer) |
    short (body is cut)."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    end: str = ""
    delay_s: float = 0.0
    encoding: str = ""  # Content-Encoding, when the body is already encoded
    chunks: tuple[bytes, int] | None = None  # (piece, times) for huge bodies: sent piece by piece


@dataclass(frozen=True)
class Fault:
    """``found``: the article behind it is to be stored. ``optional``: either is right.
    ``outcome``: the expected end of the visit in the words of items.Outcome."""

    name: str
    outcome: str
    make: Callable[
        [bytes, int, str], Answer
    ]  # (page, number of earlier hits, base address of the site) -> answer
    found: bool = False
    optional: bool = False
    busy: bool = False  # makes a polite crawler back off: lives on a host of its own


def to_cp1258(text: str) -> bytes:
    """windows-1258: letters with circumflex, breve and horn are whole, tone marks
    follow the letter."""
    out: list[str] = []
    for char in unicodedata.normalize("NFD", text):
        joined = (
            unicodedata.normalize("NFC", out[-1] + char)
            if out and char in "\u0302\u0306\u031b"
            else ""
        )
        if len(joined) == 1:
            out[-1] = joined
        elif (char == "\u031b" and len(out) > 1 and unicodedata.combining(out[-1])) or (
            char in "\u0302\u0306" and len(out) > 1 and unicodedata.combining(out[-1])
        ):  # the horn comes after the dot below in NFD
            out[-2] = unicodedata.normalize("NFC", out[-2] + char)
        else:
            out.append(char)
    return "".join(out).encode("cp1258", "xmlcharrefreplace")


@lru_cache(maxsize=2)
def gzip_bomb(megabytes: int) -> bytes:
    """A valid page of that many MB when unpacked, about a thousandth of it on the wire."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    out = packer.compress(b"<html><head><title>x</title></head><body><p>")
    for _ in range(megabytes):
        out += packer.compress(b"a" * MB)
    return out + packer.compress(b"</p></body></html>") + packer.flush()


def _reencoded(page: bytes, codec: str, declared: str, meta: str) -> Answer:
    text = page.decode().replace(
        '<meta charset="utf-8">', f'<meta charset="{meta}">' if meta else ""
    )
    body = to_cp1258(text) if codec == "cp1258" else text.encode(codec)
    return Answer(200, body, f"text/html; charset={declared}" if declared else "text/html")


def _nested(page: bytes, _hits: int, _base: str) -> Answer:
    return Answer(200, b"<html><body>" + b"<div>" * 100_000 + b"x" + b"</div>" * 100_000)


def _status(status: int, **headers: str) -> Callable[[bytes, int, str], Answer]:
    extra = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _page, _hits, _base: Answer(
        status, f"<html><body><h1>{status}</h1></body></html>".encode(), headers=extra
    )


def _once(status: int, **headers: str) -> Callable[[bytes, int, str], Answer]:
    refuse = _status(status, **headers)
    return lambda page, hits, base: refuse(page, hits, base) if hits == 0 else Answer(200, page)


def _redirect(target: str, status: int = 302) -> Callable[[bytes, int, str], Answer]:
    return lambda _page, _hits, base: Answer(
        status, b"", headers={"Location": target.format(base=base)}
    )


CHALLENGE = (
    b'<html><body><script>document.cookie="D1N=9f2c4b7a5e1d0c3b8a6f;path=/;max-age=86400";window.location.reload(true);'
    b"</script></body></html>"
)
CAPTCHA = (
    b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><div class='cf-turnstile' data-sitekey='0x4AAA'></div>"
    b"<form id='challenge-form' action='/?__cf_chl_f_tk=x' method='POST'></form><noscript>Enable JavaScript and cookies to continue"
    b"</noscript><script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script></body></html>"
)

FAULTS: dict[str, Fault] = {
    f.name: f
    for f in (
        Fault("slow", "DONE", lambda p, h, b: Answer(200, p, delay_s=2.0), found=True),
        Fault(
            "cp1258",
            "DONE",
            lambda p, h, b: _reencoded(p, "cp1258", "windows-1258", "windows-1258"),
            found=True,
        ),
        Fault("utf16", "DONE", lambda p, h, b: _reencoded(p, "utf-16", "", ""), found=True),
        Fault(
            "lie-latin1",
            "DONE",
            lambda p, h, b: _reencoded(p, "utf-8", "iso-8859-1", ""),
            found=True,
        ),
        Fault(
            "lie-utf8",
            "DONE",
            lambda p, h, b: _reencoded(p, "cp1258", "utf-8", "utf-8"),
            optional=True,
        ),
        Fault("no-charset", "DONE", lambda p, h, b: _reencoded(p, "utf-8", "", ""), found=True),
        Fault("cut-html", "DONE", lambda p, h, b: Answer(200, p[: len(p) * 2 // 3]), optional=True),
        Fault("short-body", "FAILED", lambda p, h, b: Answer(200, p, end="short"), busy=True),
        Fault("empty", "NOT_ARTICLE", lambda p, h, b: Answer(200, b"")),
        Fault("nested", "NOT_ARTICLE", _nested),
        Fault(
            "binary",
            "REFUSED",
            lambda p, h, b: Answer(200, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200),
        ),
        Fault(
            "big",
            "REFUSED",
            lambda p, h, b: Answer(200, chunks=(b"<p>" + b"tin tuc moi " * 87_381 + b"</p>", 50)),
        ),
        Fault("gzip-bomb", "REFUSED", lambda p, h, b: Answer(200, gzip_bomb(60), encoding="gzip")),
        Fault(
            "bad-gzip",
            "FAILED",
            lambda p, h, b: Answer(200, gzip.compress(p)[:-2000] + b"\x00" * 400, encoding="gzip"),
            busy=True,
        ),
        Fault("status-403", "FAILED", _status(403)),
        Fault("status-404", "GONE", _status(404)),
        Fault("status-410", "GONE", _status(410)),
        Fault(
            "soft-404",
            "NOT_ARTICLE",
            lambda p, h, b: Answer(
                200,
                "<html><head><title>Không tìm thấy trang</title></head><body><h1>404</h1><p>Trang không tồn tại.</p></body></html>".encode(),
            ),
        ),
        Fault("redirect-private", "REFUSED", _redirect("http://10.0.0.1/noi-bo.html")),
        Fault(
            "redirect-metadata", "REFUSED", _redirect("http://169.254.169.254/latest/meta-data/")
        ),
        Fault("redirect-foreign", "REFUSED", _redirect("http://example.org/tin-123456.html")),
        # each address of the circle is a URL of its own, and a known one is not queued again
        Fault("redirect-loop", "REDIRECTED", _redirect("{base}/loop?n=1")),
        Fault("redirect-file", "REFUSED", _redirect("file:///etc/passwd")),
        Fault("challenge", "CHALLENGE", lambda p, h, b: Answer(200, CHALLENGE)),
        Fault("captcha", "CHALLENGE", lambda p, h, b: Answer(403, CAPTCHA)),
        Fault("drop", "FAILED", lambda p, h, b: Answer(end="drop"), busy=True),
        Fault(
            "drop-once",
            "DONE",
            lambda p, h, b: Answer(end="drop") if h == 0 else Answer(200, p),
            found=True,
            busy=True,
        ),
        Fault("status-500", "FAILED", _status(500), busy=True),
        Fault("status-503", "FAILED", _status(503), busy=True),
        Fault("503-once", "DONE", _once(503, Retry_After="1"), found=True, busy=True),
        Fault("429-once", "DONE", _once(429, Retry_After="2"), found=True, busy=True),
        Fault("429-bare", "DONE", _once(429), found=True, busy=True),
        Fault("429-always", "FAILED", _status(429), busy=True),
    )
}


def by_path(path: str) -> Answer | None:
    """The generic faults that every host has: /slow?s=2, /drop, /status/503, /loop,
    /redirect?to=URL, /bomb?mb=60."""
    parts = urlsplit(path)
    query = {k: v[0] for k, v in parse_qs(parts.query).items()}
    page = "<html><head><title>Thử</title></head><body><h1>Thử</h1><p>Trang thử của mạng tin giả lập.</p></body></html>".encode()
    match parts.path.strip("/").split("/"):
        case ["slow"]:
            return Answer(200, page, delay_s=float(query.get("s", "2")))
        case ["drop"]:
            return Answer(end="drop")
        case ["short"]:
            return Answer(200, page, end="short")
        case ["status", code] if code.isdigit():
            extra = {"Retry-After": query["after"]} if "after" in query else {}
            return Answer(int(code), page, headers=extra)
        case ["loop"]:
            return Answer(
                302, headers={"Location": f"/loop?n={(int(query.get('n', '0')) + 1) % 3}"}
            )
        case ["redirect"]:
            return Answer(int(query.get("code", "302")), headers={"Location": query.get("to", "/")})
        case ["bomb"]:
            return Answer(200, gzip_bomb(int(query.get("mb", "60"))), encoding="gzip")
    return None


def traps(path: str) -> bytes | None:
    """Endless spaces: an open calendar, a path that repeats itself, session
    numbers in the query."""
    parts = urlsplit(path)
    if parts.path.startswith("/lich-mo/"):
        from tests.newsweb.lists import calendar_links

        return f"<html><body>{calendar_links(parts.path)}</body></html>".encode()
    if parts.path.startswith("/lap/"):
        return b'<html><body><a href="tin/">Tin</a> <a href="anh/">Anh</a> <a href="../lap/tin/">Lap</a></body></html>'
    if parts.path == "/phien":
        number = int((parse_qs(parts.query).get("sid") or ["1"])[0]) + 1
        return f'<html><body><a href="/phien?sid={number}">Tiếp</a> <a href="/phien?sid={number * 7}">Khác</a></body></html>'.encode()
    return None


#: Addresses below these are endless; judge.traps counts them.
TRAP_PREFIXES = ("/lich-mo/", "/lap/", "/phien")


def bad_xml(path: str, base: str, good: str) -> bytes | None:
    """Feeds and sitemaps that attack or break. ``good`` is a proper feed of the same site."""
    if path == "/rss/bomb.rss":
        levels = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
        return f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY l0 "ha">{levels}]><rss><channel><title>&l9;</title></channel></rss>'.encode()
    if path == "/rss/xxe.rss":
        return (
            f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "{base}/xxe-canary"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
            f"<rss><channel><item><title>&x;&f;</title><link>{base}/</link></item></channel></rss>"
        ).encode()
    if path == "/rss/cut.rss":
        return good.encode()[: len(good.encode()) * 3 // 5]
    if path == "/rss/html.rss":
        return b"<html><head><title>Loi</title></head><body><h1>Loi he thong</h1></body></html>"
    if path == "/sitemap-loop.xml":
        return (
            f'<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>{base}/sitemap-loop.xml</loc>'
            f"</sitemap></sitemapindex>"
        ).encode()
    if path == "/sitemap-bomb.xml.gz":
        return gzip_bomb(60)
    return None


BAD_FEEDS = ("/rss/bomb.rss", "/rss/xxe.rss", "/rss/cut.rss", "/rss/html.rss")
BAD_SITEMAPS = ("/sitemap-loop.xml", "/sitemap-bomb.xml.gz")
#: Fetched only by an XML parser that resolves external entities.
CANARY = "/xxe-canary"


def fault_truth(world: World) -> Iterator[dict[str, Any]]:
    """One line per spoiled address: what is wrong there and how a visit should end."""
    for site in world.sites:
        for ident, name in site.faults.items():
            fault, story = FAULTS[name], site.by_id[ident]
            yield {
                "type": "fault",
                "fault": name,
                "url": story.url,
                "site": site.id,
                "outcome": fault.outcome,
                "stored": fault.found,
                "optional": fault.optional,
            }
