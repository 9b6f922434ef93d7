"""`scrapy extract FILE-or-URL`: what extraction finds on one page, and why."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newscrawler import cli
from newscrawler.discovery.sites import SitesError
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.safe_css import SelectorError
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import READ

if TYPE_CHECKING:
    from newscrawler.extraction.extract import Extraction

#: A stored page that unpacks to more than this is not read.
MAX_FILE_BYTES = 50 * 1024 * 1024


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] FILE-or-URL"

    def short_desc(self) -> str:
        return "Show what extraction finds on one page"

    def long_desc(self) -> str:
        return (
            "A file may be gzipped. A URL is fetched through robots.txt and the fleet's gate."
            " Nothing is stored."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument("--url", help="the address that a FILE was fetched from")
        parser.add_argument(
            "--html-encoding", metavar="NAME", help="charset of a FILE, over what the page says"
        )
        parser.add_argument(
            "--selectors", metavar="FILE", help="a selector set to try; none = generic chain alone"
        )
        parser.add_argument(
            "--explain",
            action="store_true",
            help="every candidate of every field and which one won",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise cli.UsageError(
                "one file or URL is needed: scrapy extract FILE-or-URL", print_help=False
            )
        is_url = args[0].startswith(("http://", "https://"))
        if is_url and (opts.url or opts.html_encoding):
            raise cli.UsageError("--url and --html-encoding are for a FILE", print_help=False)
        doc = (
            self._fetched(args[0]) if is_url else _from_file(args[0], opts.url, opts.html_encoding)
        )
        selectors, context = self._known_of(doc.url, opts.selectors)
        if opts.explain:
            _print_rows(doc, context, selectors, opts.as_json)
            return
        from newscrawler.extraction.extract import extract  # all of extraction

        found = extract(doc, context, selectors)
        _print(found, opts.as_json)
        if not found.is_article:
            cli.note(f"not an article: {found.reason}")

    def _fetched(self, url: str) -> Document:
        from newscrawler.crawl.polite_fetch import fetch_polite
        from newscrawler.crawl.rendering import unrendered
        from newscrawler.fetch.client import FetchError
        from newscrawler.frontier.queue import FrontierError

        assert self.settings is not None
        try:
            page = asyncio.run(fetch_polite(url, self.settings, say=cli.note))
        except (ValueError, FetchError, FrontierError) as exc:
            cli.fail(str(exc))
        if page.status != 200:
            cli.fail(f"status {page.status} from {page.url}")
        if line := unrendered(self.settings, page.url, page.body):
            cli.note(line)
        return Document(page.body, page.url, page.header("content-type"))

    def _known_of(self, url: str, given: str | None) -> tuple[SelectorSet | None, PageContext]:
        """The set to use and what is known of the site, when it is one of the configured ones."""
        from newscrawler.library.pages import known_of

        assert self.settings is not None
        active, context = None, PageContext(fetched=datetime.now(UTC))
        try:
            active, context = known_of(self.settings, url)
        except (OSError, SitesError) as exc:
            cli.note(f"sites are not known here: {exc}")
        if given == "none":
            return None, context
        return (_set_from_file(Path(given)) if given else active), context


def _from_file(name: str, url: str | None, encoding: str | None) -> Document:
    path = Path(name)
    try:
        raw = path.read_bytes()
    except OSError as exc:
        cli.fail(f"{name}: {exc.strerror}")
    if raw[:2] == b"\x1f\x8b":
        raw = _unpacked(raw, name)
    content_type = f"text/html; charset={encoding}" if encoding else None
    if encoding:
        try:
            raw = raw.decode(encoding, "replace").encode("utf-8")
        except LookupError:
            raise cli.UsageError(f"unknown charset {encoding!r}", print_help=False) from None
        content_type = "text/html; charset=utf-8"
    return Document(raw, url or path.absolute().as_uri(), content_type)


def _unpacked(raw: bytes, name: str) -> bytes:
    """Stops at MAX_FILE_BYTES, so that a gzip bomb does not fill the memory."""
    try:
        unpacker = zlib.decompressobj(wbits=31)
        body = unpacker.decompress(raw, MAX_FILE_BYTES + 1)
    except (zlib.error, gzip.BadGzipFile) as exc:
        cli.fail(f"{name}: not a gzip file ({exc})")
    if len(body) > MAX_FILE_BYTES:
        cli.fail(f"{name}: unpacks to more than {MAX_FILE_BYTES // 2**20} MB")
    return body


def _set_from_file(path: Path) -> SelectorSet:
    try:
        return SelectorSet.from_dict(json.loads(path.read_text("utf-8")))
    except SelectorError as exc:
        cli.fail(f"{path}: {exc}")
    except (OSError, ValueError) as exc:
        cli.fail(f"{path}: {exc}")


def _print(found: Extraction, as_json: bool) -> None:
    if as_json:
        out: dict[str, Any] = {"is_article": found.is_article, "reason": found.reason}
        for name in READ:
            value = getattr(found, name)
            out[name] = {
                "value": value.value,
                "origin": value.origin,
                "confidence": value.confidence,
            }
        cli.print_object(
            out | {"selector_version": found.selector_version, "disagreements": found.disagreements}
        )
        return
    for name in READ:
        value = getattr(found, name)
        if name == "content" or value.value in (None, [], ""):
            continue
        shown = _text(value.value)
        if name == "published" and found.published_day_only:
            shown = value.value.date().isoformat()
        cli.show(
            f"{name.replace('_', ' ') + ':':15}{shown}  ({value.origin} {value.confidence:.2f})"
        )
    if found.content.value:
        cli.show(
            f"\n{found.content.value}\n\n({found.content.origin} {found.content.confidence:.2f})"
        )


def _print_rows(
    doc: Document, context: PageContext, selectors: SelectorSet | None, as_json: bool
) -> None:
    from newscrawler.extraction.explain import explain  # all of extraction

    rows = []
    for row in explain(doc, context, selectors):
        raw, value = row.raw, row.read
        if not as_json:
            raw, value = str(raw)[:60], _short(value)
        rows.append(
            {
                "won": "*" if row.won else "",
                "field": row.field,
                "origin": row.origin,
                "raw": raw,
                "value": value,
                "note": row.note,
            }
        )
    cli.print_rows(rows, ("won", "field", "origin", "raw", "value", "note"), as_json)


def _short(value: Any) -> str | None:
    """One line for a table."""
    if value is None:
        return None
    if isinstance(value, str) and len(value) >= 80:
        value = f"{value[:79]}…"
    return " ".join(_text(value).split())


def _text(value: Any) -> str:
    """A field's value for people: names with commas; a picture as its address, caption and
    credit."""
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, dict):
        return " | ".join(str(part) for part in value.values() if part)
    return str(value)
