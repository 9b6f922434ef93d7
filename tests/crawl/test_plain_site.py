"""A site whose pages state nothing of themselves: a headline, a byline, a date and a text, in
markup of no kind; a feed names some of its articles."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from tests.crawl.fault_server import FaultServer, whole
from tests.crawl.harness import Finished, Scrapy
from tests.crawl.small import QUICK, stored

pytestmark = pytest.mark.slow

HOST = "127.0.9.31"
#: Texts of their own, so that none is another's duplicate.
SUBJECTS = (
    ("Hafenumbau", "der Hafen"), ("Radweg", "der Radweg am Fluss"), ("Haushalt", "der Haushalt"),
    ("Schulbau", "die Schule im Norden"), ("Theater", "das Theater"), ("Freibad", "das Freibad"),
    ("Buslinie", "die Buslinie nach Osten"), ("Brücke", "die alte Brücke"),
)  # fmt: skip
ENCODINGS = ("utf-8", "windows-1252", "utf-16")


def title_of(number: int) -> str:
    return f"{SUBJECTS[number][0]} beschlossen: Rat der Stadt stimmt mit Mehrheit zu"


def sentences(number: int) -> list[str]:
    name, thing = SUBJECTS[number]
    return [
        f"Der Rat der Stadt hat am Abend nach langer Debatte entschieden, dass {thing} erneuert wird.",
        f"Für das Vorhaben {name} sind im nächsten Jahr rund {number + 3} Millionen Euro vorgesehen.",
        f"Anwohner hatten zuvor gegen die Pläne protestiert und {400 + number} Unterschriften übergeben.",
        f"Die Arbeiten beginnen im Frühjahr und dauern etwa {number + 2} Jahre, sagte die Dezernentin.",
        f"Kritiker bezweifeln, dass der Zeitplan für {thing} gehalten wird, und nennen frühere Fälle.",
    ]


def frame(title: str, body: str, encoding: str = "utf-8") -> bytes:
    menu = '<a href="/politik/">Politik</a> <a href="/impressum.html">Impressum</a>'
    page = (
        f'<html><head><meta charset="{encoding}"><title>{title}</title></head><body>'
        f"<div>{menu}</div>{body}</body></html>"
    )
    data = page.encode(encoding)
    return whole(data, kind=f"text/html; charset={encoding}")


def article(number: int, *, tag: str = "div", with_date: bool = True) -> bytes:
    day = datetime.now(UTC) - timedelta(days=number + 1)
    date = f"<div>{day:%d.%m.%Y, %H:%M} Uhr</div>" if with_date else ""
    first = sentences(number)
    text = "".join(f"<{tag}>{a} {b}</{tag}>" for a, b in itertools.pairwise(first))
    by = "<div>Von Anna Beispiel</div>"
    return frame(
        title_of(number),
        f"<h1>{title_of(number)}</h1>{by}{date}<div>{text}</div>",
        ENCODINGS[number % len(ENCODINGS)],
    )


POLITICS = [f"/politik/beschlossen-{n}.html" for n in range(101, 106)]
NEWS = [f"/news?id={n}" for n in range(1, 4)]
SERVICE = ["/impressum.html", "/ueber-uns.html", "/datenschutz.html"]


def feed(base: str) -> bytes:
    entries = "".join(
        f"<item><title>{title_of(n)}</title><link>{base}{path}</link>"
        f"<pubDate>{format_datetime(datetime.now(UTC) - timedelta(days=n + 1))}</pubDate></item>"
        for n, path in enumerate(NEWS)
    )
    return whole(
        f"<rss><channel><title>Stadtblatt</title>{entries}</channel></rss>".encode(),
        kind="application/rss+xml",
    )


@pytest.fixture
def site() -> Iterator[FaultServer]:
    server = FaultServer()
    server.start({"plain": (HOST, None)})
    base = f"http://{HOST}:{server.ports['plain']}"
    answers = server._answers
    cards = "".join(
        f'<div><a href="{path}">{title_of(n)}</a></div>'
        for n, path in enumerate([*NEWS, *POLITICS])
    )
    service = " ".join(f'<a href="{path}">Mehr</a>' for path in SERVICE)
    link = '<link rel="alternate" type="application/rss+xml" href="/rss.xml">'
    answers["/"] = frame("Stadtblatt", f"{link}{cards}<div>{service}</div>")
    answers["/politik/"] = frame("Politik", cards)
    answers["/rss.xml"] = feed(base)
    for n, path in enumerate(NEWS):  # no date of their own: the feed has one
        answers[path] = article(n, with_date=False)
    for n, path in enumerate(POLITICS, len(NEWS)):
        answers[path] = article(n, tag="p" if n % 2 else "div")
    for path in SERVICE:
        text = "".join(f"<p>{path}: {line}</p>" for line in sentences(0) + sentences(1))
        answers[path] = frame(path, f"<h1>Angaben zu {path}</h1>{text}")
    yield server
    server.stop()


def crawled(folder: Path, site: FaultServer) -> tuple[Scrapy, Finished]:
    base = f"http://{HOST}:{site.ports['plain']}"
    sites = {"sites": [{"id": "plain.de", "home": f"{base}/", "language": "de"}]}
    (folder / "sites.json").write_text(json.dumps(sites), "utf-8")
    scrapy = Scrapy(folder, {**QUICK, "SITES_FILE": folder / "sites.json"})
    return scrapy, scrapy.run("crawl", "news")


def test_all_articles_of_a_site_that_states_nothing_are_stored(
    tmp_path: Path, site: FaultServer
) -> None:
    scrapy, done = crawled(tmp_path, site)
    assert done.returncode == 0, done.stderr[-2000:]
    base = f"http://{HOST}:{site.ports['plain']}"
    why = [scrapy.run("frontier", "why", base + path).stdout for path in NEWS + POLITICS]
    assert {a.url for a in stored(scrapy.data)} == {base + p for p in NEWS + POLITICS}, why
    assert all(a.published for a in stored(scrapy.data))
