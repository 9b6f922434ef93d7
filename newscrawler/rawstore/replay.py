"""A folder of stored pages that answers instead of the network: ``gold.jsonl`` + ``html/<id>.html.gz``."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path

from newscrawler.web import urls


class ReplayError(ValueError):
    """The folder is not one of stored pages; the text names file and line."""


@dataclass
class ReplayIndex:
    """URL -> file. A URL is also found in its canonical form, as that is how the frontier asks."""

    folder: Path
    pages: dict[str, Path] = field(default_factory=dict)  # the URLs as written, in the order of the file
    _canonical: dict[str, Path] = field(default_factory=dict)

    def add(self, url: str, path: Path) -> None:
        """The first page of a URL is the one that answers."""
        self.pages.setdefault(url, path)
        canonical = urls.canonicalize(url)
        if canonical:
            self._canonical.setdefault(canonical, path)

    def page(self, url: str) -> bytes | None:
        """The stored page; None when the folder has none for this URL."""
        path = self.pages.get(url) or self._canonical.get(url) or self._canonical.get(urls.canonicalize(url) or "")
        if path is None:
            return None
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data

    def robots(self, host: str) -> bytes | None:
        """robots.txt of a host, from ``robots/<host>`` or ``robots/<host>.txt``; None when there is none."""
        if "/" in host or host.startswith("."):
            return None
        for name in (host, host + ".txt"):
            path = self.folder / "robots" / name
            if path.is_file():
                return path.read_bytes()
        return None


def load_index(folder: Path) -> ReplayIndex:
    """:raises ReplayError: no gold.jsonl, a line that is not JSON with ``url`` and ``id``, or a page that is missing"""
    gold = folder / "gold.jsonl"
    if not gold.is_file():
        raise ReplayError(f"{folder} is not a folder of stored pages: it has no gold.jsonl")
    index = ReplayIndex(folder)
    with gold.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                url, path = row["url"], folder / row.get("html", f"html/{row['id']}.html.gz")
            except (ValueError, KeyError, TypeError) as exc:
                raise ReplayError(f"{gold} line {number}: not a JSON object with url and id ({exc!r})") from exc
            if not path.is_file():
                raise ReplayError(f"{gold} line {number}: {path.relative_to(folder)} is missing")
            index.add(url, path)
    return index
