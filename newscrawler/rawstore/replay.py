"""A folder of stored pages that answers instead of the network: ``gold.jsonl`` +
``html/<id>.html.gz``."""

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
    pages: dict[str, tuple[str, Path]] = field(
        default_factory=dict
    )  # URL as written -> id and file, in their order
    _canonical: dict[str, str] = field(default_factory=dict)

    def add(self, url: str, page_id: str, path: Path) -> None:
        """The first page of a URL is the one that answers."""
        self.pages.setdefault(url, (page_id, path))
        canonical = urls.canonicalize(url)
        if canonical:
            self._canonical.setdefault(canonical, url)

    def urls(self) -> list[str]:
        return list(self.pages)

    def page_id(self, url: str) -> str | None:
        found = self._find(url)
        return found[0] if found else None

    def _find(self, url: str) -> tuple[str, Path] | None:
        if url not in self.pages:
            url = (
                self._canonical.get(url) or self._canonical.get(urls.canonicalize(url) or "") or ""
            )
        return self.pages.get(url)

    def page(self, url: str) -> bytes | None:
        """The stored page; None when the folder has none for this URL."""
        found = self._find(url)
        if found is None:
            return None
        data = found[1].read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data

    def robots(self, host: str) -> bytes | None:
        """robots.txt of a host, from ``robots/<host>`` or ``robots/<host>.txt``; None
        when there is none."""
        if "/" in host or host.startswith("."):
            return None
        for name in (host, host + ".txt"):
            path = self.folder / "robots" / name
            if path.is_file():
                return path.read_bytes()
        return None


def load_index(folder: Path) -> ReplayIndex:
    """:raises ReplayError: no gold.jsonl, a line that is not JSON with ``url`` and ``id``, or a
    page that is missing"""
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
                url, page_id = row["url"], str(row["id"])
                path = folder / row.get("html", f"html/{page_id}.html.gz")
            except (ValueError, KeyError, TypeError) as exc:
                raise ReplayError(
                    f"{gold} line {number}: not a JSON object with url and id ({exc!r})"
                ) from exc
            if not path.is_file():
                raise ReplayError(f"{gold} line {number}: {path.relative_to(folder)} is missing")
            index.add(url, page_id, path)
    return index
