"""Pictures of articles on the page, fetched from real servers through the guard and the gate."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from PIL import Image
from scrapy.settings import Settings

from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.crawl.article_pictures import (
    ArticlePictures,
    Picture,
    media_of,
    open_pictures,
)
from newscrawler.store import open_store
from tests.crawl.fault_server import FaultServer, whole
from tests.fixtures_browser import NOW, SITES, article_id, make_article

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
LIMIT = 200_000


def drawn(kind: str = "JPEG", width: int = 640, height: int = 360) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (160, 40, 30)).save(file, kind)
    return file.getvalue()


JPEG = drawn()


@pytest.fixture
def server() -> Iterator[FaultServer]:
    made = FaultServer()
    made.start({"one": ("127.0.2.1", None)})
    made._answers["/robots.txt"] = whole(b"User-agent: *\nDisallow: /secret\n", kind="text/plain")
    made._answers["/a.jpg"] = whole(JPEG, "Set-Cookie: id=1; Path=/", kind="text/html")
    made._answers["/again.jpg"] = whole(JPEG, kind="image/jpeg")
    made._answers["/secret/a.jpg"] = whole(JPEG, kind="image/jpeg")
    made._answers["/a.svg"] = whole(SVG, kind="image/svg+xml")
    made._answers["/page.jpg"] = whole(b"<!doctype html><p>sorry", kind="image/jpeg")
    made._answers["/large.jpg"] = whole(JPEG + bytes(LIMIT), kind="image/jpeg")
    made._answers["/inside.jpg"] = whole(
        b"", "Location: http://169.254.169.254/latest/meta-data/", status="302 Found"
    )
    yield made
    made.stop()


@dataclass
class Shown:
    """A page over articles that name these pictures, by the names of the articles."""

    url: str
    client: httpx.Client
    pictures: ArticlePictures | None

    def picture(self, name: str, **headers: str) -> httpx.Response:
        return self.client.get(f"/article/{article_id(name)}/picture", headers=headers)


def crawl_settings(folder: Path, redis_url: str, **more: Any) -> Settings:
    (folder / "sites.json").write_text('{"sites": []}')
    made = Settings()
    made.setmodule("newscrawler.settings", priority="project")
    made.update(
        {
            "REDIS_URL": redis_url,
            "DATA_DIR": str(folder / "data"),
            "SITES_FILE": str(folder / "sites.json"),
            "ALLOWED_PRIVATE_NETWORKS": "127.0.2.0/24",
            "DOWNLOAD_DELAY": 0.05,
            "AUTOTHROTTLE_ENABLED": False,
            "API_PICTURES": "hits",
            "API_PICTURE_MAX_BYTES": LIMIT,
        }
        | more,
        priority="cmdline",
    )
    return made


@pytest.fixture
def shown(
    request: Any, server: FaultServer, selector_redis_url: str, tmp_path: Path
) -> Iterator[Shown]:
    """The parameter is API_PICTURES."""
    with redis.Redis.from_url(selector_redis_url) as client:
        client.flushall()
    where = getattr(request, "param", "hits")
    base = f"http://127.0.2.1:{server.ports['one']}"
    named = {
        "good": f"{base}/a.jpg",
        "again": f"{base}/again.jpg",
        "forbidden": f"{base}/secret/a.jpg",
        "svg": f"{base}/a.svg",
        "page": f"{base}/page.jpg",
        "large": f"{base}/large.jpg",
        "missing": f"{base}/none.jpg",
        "redirected": f"{base}/inside.jpg",
        "metadata": "http://169.254.169.254/latest/a.jpg",
        "loopback": f"http://127.0.0.1:{server.ports['one']}/a.jpg",
        "number": "http://2130706433/a.jpg",
        "file": "file:///etc/passwd",
        "script": "javascript:alert(1)",
        "none": None,
        "gone": f"{base}/a.jpg",
    }

    async def fill() -> None:
        store = open_store("", tmp_path)
        articles = [
            make_article(name, f"Ảnh {name}", f"Bài viết có ảnh {name} ở đầu trang.", image=url)
            for name, url in named.items()
        ]
        caption = {"url": f"{base}/a.jpg", "caption": "Cầu mới", "credit": "TTXVN"}
        articles[0].pictures = [caption]
        await store.put(articles)
        await store.mark_gone([article_id("gone")])
        await store.refresh()
        await store.close()

    with ThreadPoolExecutor(1) as aside:  # playwright keeps a loop in this thread
        aside.submit(asyncio.run, fill()).result()
    settings = crawl_settings(tmp_path, selector_redis_url, API_PICTURES=where)
    pictures = open_pictures(settings)
    deps = Deps(
        store=open_store("", tmp_path), sites=SITES, pictures=pictures, clock=NOW.timestamp,
    )  # fmt: skip
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url, timeout=120) as client:
        yield Shown(running.url, client, pictures)
    running.stop()


def asked(server: FaultServer) -> list[str]:
    return [path for path, _ in server.times]


def test_a_picture_is_fetched_once_as_politely_as_a_page(shown: Shown, server: FaultServer) -> None:
    first = shown.picture("good", Referer="http://reader.example/", Cookie="mine=1")
    assert (first.status_code, first.content) == (200, JPEG)
    # Named by its bytes, whatever the site says it is; never compressed again.
    assert first.headers["content-type"] == "image/jpeg"
    assert "content-encoding" not in first.headers and "set-cookie" not in first.headers
    assert first.headers["cache-control"].startswith("private")
    assert first.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in first.headers["content-security-policy"]
    assert shown.picture("good").content == JPEG
    assert shown.picture("good", **{"If-None-Match": first.headers["etag"]}).status_code == 304
    assert asked(server) == ["/robots.txt", "/a.jpg"]
    sent = server.hits[-1][2]
    assert sent["user-agent"].startswith("newscrawler/")
    assert "referer" not in sent and "cookie" not in sent and "image/webp" in sent["accept"]
    shown.picture("again")  # the cookie that was set is not sent back
    assert "cookie" not in server.hits[-1][2]


@pytest.mark.parametrize("name", ["metadata", "loopback", "number", "file", "script", "none"])
def test_an_address_inside_the_network_is_never_asked(
    shown: Shown, server: FaultServer, name: str
) -> None:
    assert shown.picture(name).status_code == 404
    assert asked(server) == []


def test_what_is_no_picture_is_not_passed_on(shown: Shown, server: FaultServer) -> None:
    for name in ("svg", "page", "large", "missing", "redirected", "forbidden"):
        answer = shown.picture(name, Accept="image/*")
        assert answer.status_code == 404, name
        assert answer.headers["content-type"] == "application/problem+json"
        assert b"<s" not in answer.content and JPEG not in answer.content
    once = asked(server)
    assert "/secret/a.jpg" not in once
    assert "/latest/meta-data/" not in once
    for name in ("svg", "page", "large", "missing", "redirected", "forbidden"):
        assert shown.picture(name).status_code == 404
    assert asked(server) == once  # failures are remembered


def test_an_article_that_is_gone_or_unknown_has_none(shown: Shown, server: FaultServer) -> None:
    assert shown.picture("gone").status_code == 404
    assert shown.picture("nobody").status_code == 404
    assert shown.client.get("/article/x/picture").status_code == 422
    assert asked(server) == []


@pytest.mark.parametrize(
    ("shown", "on_article", "in_hits"),
    [("off", False, False), ("article", True, False), ("hits", True, True)],
    indirect=["shown"],
)
def test_the_setting_says_where_pictures_are_shown(
    shown: Shown, server: FaultServer, on_article: bool, in_hits: bool
) -> None:
    page = shown.client.get(f"/article/{article_id('good')}").text
    hits = shown.client.get("/", params={"q": "ảnh good"}).text
    src = f'src="/article/{article_id("good")}/picture"'
    assert (src in page, src in hits) == (on_article, in_hits)
    assert ("Cầu mới" in page and "TTXVN" in page) == on_article
    assert shown.picture("good").status_code == (200 if on_article else 404)
    assert ("/a.jpg" in asked(server)) == on_article
    without = shown.client.get(f"/article/{article_id('none')}").text
    assert "/picture" not in without


def test_pictures_are_seen_in_a_browser_and_failures_leave_no_frame(
    shown: Shown, server: FaultServer, chromium: Any
) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(120_000)
    elsewhere: list[str] = []
    page.on("request", lambda r: r.url.startswith(shown.url) or elsewhere.append(r.url))
    page.goto(f"{shown.url}/article/{article_id('good')}")
    page.wait_for_function("document.querySelector('.picture img').naturalWidth === 640")
    assert page.locator("figcaption").inner_text() == "Cầu mới TTXVN"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{shown.url}/?q=%E1%BA%A3nh+good")
    page.wait_for_function("document.querySelector('img.thumb').naturalWidth === 640")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{shown.url}/article/{article_id('svg')}")
    page.wait_for_function("!document.querySelector('.picture')")
    assert elsewhere == []
    context.close()


# ---------------------------------------------------------------- bounds
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
def test_the_types_of_pictures_are_known_by_their_bytes(kind: str) -> None:
    assert media_of(drawn(kind, 8, 8)) == f"image/{kind.lower()}"


@pytest.mark.parametrize("body", [b"", b"\xff\xd8", SVG, b"RIFF1234WAVE", b"%PDF-1.7", b"BM" * 9])
def test_other_bytes_are_no_picture(body: bytes) -> None:
    assert media_of(body) is None


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    settings = crawl_settings(tmp_path, "redis://127.0.0.1:1")
    kept = ArticlePictures(settings, "hits", max_bytes=100, cache_bytes=1_000)
    for number in range(50):
        kept._keep(str(number), Picture(bytes(100), "image/png"))
    assert list(kept._kept) == [str(n) for n in range(40, 50)] and kept._size == 1_000


@pytest.mark.parametrize(
    "wrong", [{"API_PICTURES": "always"}, {"API_PICTURE_MAX_BYTES": 0}, {"API_PICTURES_CACHE_BYTES": 9}]
)  # fmt: skip
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        open_pictures(crawl_settings(tmp_path, "redis://127.0.0.1:1", **wrong))


def test_they_are_off_unless_asked_for() -> None:
    shipped = Settings()
    shipped.setmodule("newscrawler.settings", priority="project")
    assert open_pictures(shipped) is None
