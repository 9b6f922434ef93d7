"""The search page in a real Chromium, on a wide and a narrow screen: searched,
read, paged through."""

from __future__ import annotations

import asyncio
import importlib.resources
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.fleet.registry import Registry
from newscrawler.frontier import connect
from newscrawler.store import open_store
from tests.fixtures_browser import article_id
from tests.fixtures_fleet import fill_minutes

pytestmark = pytest.mark.slow

SCREENS = {"wide": (1280, 860), "narrow": (390, 844)}


class Screen:
    """A page of one size that remembers what went wrong on it."""

    def __init__(self, page: Page, base: str, width: int) -> None:
        self.page = page
        self.base = base
        self.width = width
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        page.on(
            "console",
            lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "request",
            lambda r: None if r.url.startswith(self.base) else self.elsewhere.append(r.url),
        )

    def open(self, path: str) -> None:
        self.page.goto(self.base + path)

    def check(self) -> None:
        """No complaint in the console, nothing asked of another host, nothing
        wider than the screen."""
        assert self.complaints == []
        assert self.elsewhere == []
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        assert self.page.evaluate("window.stolen") is None
        # Every page of the menu is seen, none beyond the edge to be scrolled to.
        for place in self.page.locator("nav a").all():
            box = place.bounding_box()
            assert box is None or box["x"] + box["width"] <= self.width, place.inner_text()


@pytest.fixture(params=[pytest.param("wide", marks=pytest.mark.long), "narrow"])
def screen(request: Any, chromium: Browser, search_page: str) -> Iterator[Screen]:
    width, height = SCREENS[request.param]
    context = chromium.new_context(viewport={"width": width, "height": height})
    yield Screen(context.new_page(), search_page, width)
    context.close()


@pytest.mark.parametrize("query", ["bóng đá nữ", "bong da nu"])
def test_a_query_is_typed_read_and_left_again(screen: Screen, query: str) -> None:
    page = screen.page
    screen.open("/")
    expect(page.get_by_role("heading", name="Latest articles")).to_be_visible()
    page.get_by_role("searchbox").fill(query)
    page.get_by_role("searchbox").press("Enter")
    expect(page.get_by_role("heading", name="10 articles")).to_be_visible()
    assert page.locator(".hit mark").first.inner_text().lower().startswith("bóng")
    screen.check()
    page.locator(".hit h2 a").first.click()
    expect(page.locator("article h1")).to_contain_text("bóng đá nữ thắng đậm")
    expect(page.get_by_role("link", name=re.compile("original", re.IGNORECASE))).to_have_attribute(
        "href", re.compile("^https://")
    )
    expect(page.get_by_text("Where the fields came from")).to_be_visible()
    screen.check()
    page.go_back()
    assert page.get_by_role("searchbox").input_value() == query


def test_results_are_paged_and_sorted(screen: Screen) -> None:
    page = screen.page
    screen.open("/?q=b%E1%BA%A3n+tin")
    seen = set(page.locator(".hit h2 a").evaluate_all("links => links.map(a => a.href)"))
    assert len(seen) == 20
    page.get_by_role("link", name=re.compile("Next")).click()
    expect(page.locator(".numbers [aria-current]")).to_have_text("2")
    second = set(page.locator(".hit h2 a").evaluate_all("links => links.map(a => a.href)"))
    assert len(second) == 20 and not seen & second
    screen.check()
    page.get_by_role("link", name="Newest").click()
    times = page.locator(".hit time").evaluate_all("times => times.map(t => t.dateTime)")
    assert len(times) == 20 and times == sorted(times, reverse=True)
    screen.check()


def test_results_are_narrowed_by_site_and_widened_again(screen: Screen) -> None:
    page = screen.page
    screen.open("/?q=b%C3%B3ng+%C4%91%C3%A1")
    if screen.width < 900:  # the filters are folded away there
        page.get_by_text("Filter", exact=True).click()
    page.locator(".facets").get_by_role("link", name=re.compile("VnExpress")).click()
    assert set(page.locator(".hit .site").all_inner_texts()) == {"VnExpress"}
    screen.check()
    page.locator(".chip").click()
    assert len(set(page.locator(".hit .site").all_inner_texts())) > 1


def test_hostile_text_does_nothing(screen: Screen) -> None:
    for path in (
        "/?q=t%E1%BA%A5n+c%C3%B4ng",
        f"/article/{article_id('attack')}",
        "/?q=%3Cscript%3Ewindow.stolen%3D1%3C/script%3E",
    ):
        screen.open(path)
        assert screen.page.locator("main img, main script").count() == 0
        screen.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_can_be_read(screen: Screen, scheme: Any) -> None:
    screen.page.emulate_media(color_scheme=scheme)
    for path in (
        "/",
        "/sites",
        "/frontier",
        "/fleet",
        "/docs",
        "/?q=t%E1%BB%AB+d%C3%A0i",
        f"/article/{article_id('wide')}",
    ):
        screen.open(path)
        screen.check()
        assert contrast(screen.page, "body") >= 7
        for muted in (".status", ".by", ".top nav a:not([aria-current])"):
            if screen.page.locator(muted).count():
                assert contrast(screen.page, muted) >= 4.5, (path, muted)


def contrast(page: Page, selector: str) -> float:
    """Contrast of the text of the first such element with what is behind it (WCAG 2.1, 1.4.3)."""
    script = """element => {
      const rgb = text => text.match(/[\\d.]+/g).map(Number);
      let behind = element, ground = [0, 0, 0, 0];
      while (behind && ground[3] === 0) {
        const c = rgb(getComputedStyle(behind).backgroundColor);
        ground = [c[0], c[1], c[2], c.length > 3 ? c[3] : 1];
        behind = behind.parentElement;
      }
      const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
        const v = c[i] / 255;
        return sum + weight * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      }, 0);
      const [a, b] = [light(rgb(getComputedStyle(element).color)), light(ground)].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    }"""
    return float(page.locator(selector).first.evaluate(script))


def drawn_contrast(page: Page, selector: str) -> float:
    """As :func:`contrast`, of what is drawn with the page behind it."""
    page.evaluate(
        """selector => {
      const probe = document.createElement("p");
      probe.id = "drawn";
      probe.style.color = getComputedStyle(document.querySelector(selector)).fill;
      document.querySelector("main").append(probe);
    }""",
        selector,
    )
    found = contrast(page, "#drawn")
    page.evaluate("document.getElementById('drawn').remove()")
    return found


def test_the_page_is_complete_without_javascript(chromium: Browser, search_page: str) -> None:
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(search_page + "/?q=xang")
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_text("Filter", exact=True).click()
    expect(page.locator(".facets li a").first).to_be_visible()
    context.close()


def test_the_figures_of_the_crawl_are_refreshed(chromium: Browser, search_page: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.clock.install()
    page.goto(search_page)
    page.route(
        "**/api/status",
        lambda route: route.fulfill(json={"articles": 1234, "workers": 2, "pages_per_s": 9.5}),
    )
    page.clock.run_for(6000)
    expect(page.locator("[data-live=articles]")).to_have_text("1,234")
    expect(page.locator("[data-live-word]")).to_have_text("Crawling")
    context.close()


def test_a_search_is_looked_at_over_time(screen: Screen) -> None:
    page = screen.page
    screen.open("/?q=gi%C3%A1+x%C4%83ng")
    page.get_by_role("link", name="Over time").click()
    bars = page.locator(".plot > svg a")
    expect(bars.first).to_be_visible()
    size = page.locator(".plot > svg").bounding_box()
    assert size is not None and size["width"] > 0.7 * screen.width and size["height"] > 150
    screen.check()
    page.get_by_role("link", name="Share of all").click()
    expect(page.locator(".plot .scale")).to_contain_text("%")
    screen.check()
    page.get_by_role("link", name="Week").click()
    expect(page.locator(".sorts [aria-current]").first).to_have_text("Week")
    bars.last.locator("rect[class^=c]").first.click()
    expect(page.locator(".hit h2").first).to_contain_text("Giá xăng")
    screen.check()


@pytest.mark.long
def test_trends_fit_the_screen(screen: Screen) -> None:
    screen.open("/trends")
    expect(screen.page.get_by_role("heading", level=1)).to_contain_text("Rising on 21 Nov")
    screen.check()
    screen.page.get_by_role("link", name="Day before").click()
    expect(screen.page.get_by_role("heading", level=1)).to_contain_text("20 Nov")
    screen.check()


def test_axe_finds_no_fault(screen: Screen) -> None:
    """axe-core's rules of WCAG 2.1 A and AA and its good habits: names, labels, contrast, order of
    headings; light where it is wide, dark where it is narrow."""
    faults = axe_faults(
        screen,
        "/?q=c%E1%BA%A7u+s%C3%B4ng",
        "/?q=xang&site=tuoitre.vn&after=2026-11-01",
        "/?q=zzzz",
        "/facet?key=author",
        "/attention?q=tin",
        "/trends",
        "/sites",
        "/frontier",
        "/docs",
        f"/article/{article_id('edited')}",
    )
    assert faults == {}


def axe_faults(screen: Screen, *paths: str) -> dict[tuple[str, str], list[str]]:
    source = importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
    screen.page.emulate_media(color_scheme="light" if screen.width > 900 else "dark")
    faults = {}
    for path in paths:
        screen.open(path)
        screen.page.evaluate(source)
        found = screen.page.evaluate(
            "tags => axe.run({runOnly: {type: 'tag', values: tags}})", tags
        )["violations"]
        for one in found:
            faults[path, one["id"]] = [node["html"][:120] for node in one["nodes"]][:3]
    return faults


@pytest.fixture
def working_fleet(redis_server: str, filled_folder: Path) -> Iterator[str]:
    """The address of a server over a Redis with five hours of a fleet's work."""

    async def fill() -> None:
        client = connect(redis_server, single=False)
        await client.flushdb()
        await fill_minutes(client, minutes=300)
        await client.aclose()

    # Playwright's own loop runs in this thread.
    thread = threading.Thread(target=asyncio.run, args=[fill()])
    thread.start()
    thread.join()
    deps = Deps(
        store=open_store("", filled_folder),
        registry=Registry(connect(redis_server, single=False)),
    )
    running = start_in_thread(create_app(deps))
    yield running.url
    running.stop()


def test_the_fleet_is_drawn(screen: Screen, working_fleet: str) -> None:
    page, screen.base = screen.page, working_fleet
    assert axe_faults(screen, "/fleet?hours=6") == {}
    for hours in ("1 hour", "24 hours", "6 hours"):
        page.get_by_role("link", name=hours, exact=True).click()
        expect(page.locator(".sorts [aria-current]")).to_have_text(hours)
        expect(page.locator(".plots figure")).to_have_count(7)
        screen.check()
    size = page.locator(".plots .plot > svg").first.bounding_box()
    assert size is not None and size["height"] > 100
    assert size["width"] > (0.6 if screen.width < 900 else 0.3) * screen.width
    bars = page.locator(".plots figure").first.locator("rect.c0")
    expect(bars.last).to_be_visible()
    # What is drawn stands out from its ground, in both looks (WCAG 2.1, 1.4.11).
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for colour in ("c0", "c1"):
            assert drawn_contrast(page, f".plots rect.{colour}") >= 3, (scheme, colour)
    page.get_by_text("Figures", exact=True).click()
    expect(page.locator(".figures tbody tr").first).to_be_visible()
    screen.check()


def test_the_page_is_used_by_keys_alone(screen: Screen) -> None:
    page = screen.page
    screen.open("/?q=b%E1%BA%A3n+tin")
    links = page.locator(".hit h2 a")
    page.keyboard.press("j")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(links.nth(0)).to_be_focused()
    outline = links.nth(0).evaluate("link => getComputedStyle(link).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("n")
    expect(page.locator(".numbers [aria-current]")).to_have_text("2")
    page.keyboard.press("/")
    box = page.get_by_role("searchbox")
    expect(box).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("jko?")  # letters, where they are typed
    assert box.input_value() == "jko?"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    title = links.nth(0).inner_text()
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(page.locator("article h1")).to_have_text(title)
    screen.check()


def test_language_and_theme_are_chosen_and_kept(screen: Screen) -> None:
    page = screen.page
    screen.open("/?q=xang")
    page.get_by_role("button", name="Tiếng Việt").click()
    expect(page.get_by_role("button", name="Tìm kiếm")).to_be_visible()
    assert page.get_by_role("searchbox").input_value() == "xang"
    page.get_by_role("button", name="Tối").click()
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(ground) == "rgb(22, 21, 20)"
    screen.open("/sites")
    assert page.evaluate(ground) == "rgb(22, 21, 20)"
    expect(page.get_by_role("heading", level=1)).to_contain_text("Trang báo")
    screen.check()


def test_copies_are_opened(screen: Screen) -> None:
    page = screen.page
    screen.open("/?q=c%E1%BA%A7u+m%E1%BB%9Bi+s%C3%B4ng+H%C6%B0%C6%A1ng")
    copies = page.locator(".copies li a")
    expect(copies).to_be_hidden()
    page.locator(".copies summary").click()
    expect(copies).to_be_visible()
    screen.check()
    copies.click()
    expect(page.locator(".side .near a").first).to_be_visible()
