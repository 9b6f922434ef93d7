"""`scrapy evaluate DIR`: extraction over stored pages, scored against their gold data."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from newscrawler import cli
from newscrawler.extraction.selectors import SelectorSet

try:
    from evaluation import score_tables
except ModuleNotFoundError as exc:  # in an egg; add_options says what is missing
    if exc.name != "evaluation":
        raise

TIERS = ("generic", "rules", "llm")


class GoldError(ValueError):
    """The folder or the gold file cannot be used; the message names file and line."""


def read_gold(folder: Path) -> list[dict[str, Any]]:
    """The records of ``gold.jsonl``; each has at least ``id``, ``url`` and ``html``.

    :raises GoldError: the file is missing or has no record, or a line is none
    """
    path = folder / "gold.jsonl"
    if not path.is_file():
        raise GoldError(f"{path} is missing: a folder with gold.jsonl and html/ is needed")
    records: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as exc:
                raise GoldError(f"{path} line {number}: not JSON ({exc})") from exc
            if not isinstance(record, dict) or not record.get("id") or not record.get("url"):
                raise GoldError(f"{path} line {number}: needs at least id and url")
            record.setdefault("html", f"html/{record['id']}.html.gz")
            records.append(record)
    if not records:
        raise GoldError(f"{path} holds no record")
    return records


def read_page(path: Path) -> bytes:
    """The bytes of a stored page, unpacked when its name ends in .gz."""
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


Task = tuple[str, str, str, SelectorSet | None]  # id, path, url, the set to read it with


def _predict(task: Task) -> dict[str, Any]:
    """A prediction line."""
    ident, path, url, selectors = task
    try:
        body = read_page(Path(path))
    except (OSError, EOFError) as exc:
        return {"id": ident, "reason": f"file: {exc}"}
    return score_tables.predict(ident, body, url, selectors)


def predictions(
    folder: Path,
    gold: Sequence[Mapping[str, Any]],
    processes: int,
    progress: Callable[[int, int], None],
    sets: Mapping[str, SelectorSet] | None = None,
) -> list[dict[str, Any]]:
    """One line per record, in its order. ``progress(done, of)`` is called after each page."""
    of_page = sets or {}
    tasks = [
        (str(g["id"]), str(folder / str(g["html"])), str(g["url"]), of_page.get(str(g["id"])))
        for g in gold
    ]
    lines: list[dict[str, Any]] = []
    for line in _run(tasks, processes):
        lines.append(line)
        progress(len(lines), len(tasks))
    return lines


def _run(tasks: list[Task], processes: int) -> Iterator[dict[str, Any]]:
    if processes < 2 or len(tasks) < 8:
        yield from map(_predict, tasks)
        return
    # Not fork: a command may have threads; the start costs half a second, once.
    with get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_predict, tasks, chunksize=4)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A stored run: what ``--out`` wrote.

    :raises GoldError: the file cannot be read, or is no stored run
    """
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as exc:
        raise GoldError(f"{path}: {exc}") from exc
    if not all(isinstance(line, dict) and line.get("id") for line in lines):
        raise GoldError(f"{path}: not a run that --out wrote: every line needs an id")
    return lines


def read_floors(path: Path) -> dict[str, float]:
    """``{figure: least value}``; keys that start with "_" are notes.

    :raises GoldError: the file cannot be read, has no floors, or names an unknown figure
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise GoldError(f"{path}: {exc}") from exc
    floors = (
        {k: v for k, v in data.items() if not k.startswith("_")} if isinstance(data, dict) else {}
    )
    known = {*score_tables.COLUMNS, *score_tables.CEILINGS}
    for name, value in floors.items():
        if name not in known or not isinstance(value, (int, float)):
            raise GoldError(
                f"{path}: {name!r} is not a figure with a number; known are"
                f" {', '.join((*score_tables.COLUMNS, *score_tables.CEILINGS))}"
            )
    if not floors:
        raise GoldError(f"{path}: no floors in it")
    return floors


def _keep_sealed(folder: Path, opts: argparse.Namespace) -> None:
    """Ends the command where it would name pages of a set that nobody may read."""
    if not (folder / score_tables.SEAL).is_file():
        return
    named = [name for name in ("out", "compare", "worst") if getattr(opts, name)]
    named += [f"by {group}" for group in opts.by or () if group == "site"]
    if named:
        cli.fail(
            f"{folder} is a sealed set: --{named[0]} would show its pages, and a page that is read"
            " is lost for measuring. Totals: python -m evaluation.sealed"
        )


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] DIR"

    def short_desc(self) -> str:
        return "Score extraction on stored pages with gold data"

    def long_desc(self) -> str:
        return (
            "DIR holds gold.jsonl (one page a line: id, url, html, and the fields that are known)"
            " and html/. Prints the share right per field, for all pages, by language and by"
            " source. Fetches nothing. Gold authors are all whom a page credits, agencies and desks"
            " too: the columns au_* and four score the stored authors (people) and the stored"
            " credits together, pe_* the stored authors alone. In a file of --out `authors` is"
            " both, `people` and `credits` are each."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        cli.need_checkout("scrapy evaluate")
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument(
            "--out", metavar="FILE", help="write the predictions, one JSON object a line"
        )
        parser.add_argument(
            "--floors", metavar="FILE", help="JSON of least figures; exit 1 naming each one missed"
        )
        parser.add_argument(
            "--tier",
            choices=TIERS,
            default="generic",
            help="rules, llm: pages of sites with enough of them are read with a set made of the"
            " site's other pages",
        )
        parser.add_argument(
            "--split",
            choices=("dev", "held"),
            help="only that half of the sites (hash of the name)",
        )
        parser.add_argument(
            "--folds",
            type=int,
            default=0,
            metavar="N",
            help="figures of N parts of the sites, and with --compare what each part has won or"
            " lost since",
        )
        parser.add_argument(
            "--compare",
            metavar="FILE",
            help="a run that --out wrote: which pages were won and lost",
        )
        parser.add_argument(
            "--worst",
            type=int,
            default=0,
            metavar="N",
            help="list N pages with most fields wrong, and why",
        )
        parser.add_argument(
            "--calibration",
            action="store_true",
            help="how many values of each band of confidence are wrong, and how far confidence is"
            " from the share that is right",
        )
        parser.add_argument(
            "--intervals", action="store_true", help="95 %% intervals, by drawing sites (bootstrap)"
        )
        parser.add_argument(
            "--by", choices=score_tables.GROUPS, action="append", help="default: lang and source"
        )
        parser.add_argument(
            "--processes", type=int, default=os.cpu_count() or 1, help="default: one per processor"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        if len(args) != 1:
            raise cli.UsageError("one folder is needed: scrapy evaluate DIR", print_help=False)
        if opts.folds < 0 or opts.folds == 1:
            raise cli.UsageError(
                f"--folds {opts.folds}: 2 or more parts are needed", print_help=False
            )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        folder = Path(args[0])
        _keep_sealed(folder, opts)
        try:
            floors = read_floors(Path(opts.floors)) if opts.floors else {}
            gold = read_gold(folder)
            before = read_lines(Path(opts.compare)) if opts.compare else None
        except GoldError as exc:
            cli.fail(str(exc))
        if opts.split:
            gold = [g for g in gold if score_tables.half(str(g.get("site", "?"))) == opts.split]
            if not gold:
                cli.fail(f"no page of {folder} is of a site in the half {opts.split!r}")
        sets = self._sets(folder, gold, opts.tier) if opts.tier != "generic" else None
        lines = predictions(folder, gold, max(1, opts.processes), _progress, sets)
        if opts.out:
            _write(Path(opts.out), lines)
        rows = _rows(gold, lines, before, opts)
        _print(rows, opts.as_json)
        if before is not None:
            _print_changes(score_tables.changes(gold, before, lines), opts.as_json)
        _print_more(gold, lines, opts)
        unread = sum(str(line.get("reason", "")).startswith("file:") for line in lines)
        if unread:
            cli.note(f"{unread} pages could not be read")
        summary = dict(rows[0])
        if "expected_error" in floors:
            errors = [row["expected_error"] for row in score_tables.reliability(gold, lines)]
            summary["expected_error"] = max(errors, default=None)
        missed = score_tables.below_floors(summary, floors)
        if missed:
            cli.fail("\n".join(missed))

    def _sets(
        self, folder: Path, gold: Sequence[Mapping[str, Any]], tier: str
    ) -> dict[str, SelectorSet]:
        """Page id -> set, made of the site's other pages; said on stderr for which
        sites there is one."""
        from evaluation import selector_tiers
        from newscrawler.crawl import opening
        from newscrawler.crawl.selector_jobs import GenerationConfig, make_llm
        from newscrawler.frontier import connect
        from newscrawler.selectorsets.jobs import Jobs
        from newscrawler.selectorsets.propose import Proposer

        settings = self.settings
        assert settings is not None
        config = GenerationConfig.of(settings)
        llm = make_llm(settings) if tier == "llm" else None
        if llm is not None and not llm.configured:
            cli.fail(
                "--tier llm: no model is configured; set LLM_BASE_URL and LLM_MODEL"
                " (docs/selectors.md)"
            )

        async def make() -> selector_tiers.Sets:
            # The model's budget is the fleet's, in Redis; rules spend none.
            client: Any = (
                connect(opening.redis_url(settings), single=False) if llm is not None else None
            )
            proposer = Proposer(
                Jobs(client, config.limits), llm, tier, config.max_input_chars, cached=False
            )
            try:
                return await selector_tiers.make_sets(
                    gold, lambda g: read_page(folder / str(g["html"])), proposer
                )
            finally:
                if llm is not None:
                    await llm.close()

        made = asyncio.run(make())
        for line in made.notes:
            cli.note(f"--tier {tier}: {line}")
        cli.note(
            f"--tier {tier}: {len(made.of_page)} of {len(gold)} pages have a set, the others the"
            " generic chain"
        )
        return made.of_page


def _print_more(
    gold: Sequence[Mapping[str, Any]], lines: list[dict[str, Any]], opts: argparse.Namespace
) -> None:
    """The tables that were asked for besides."""
    if opts.worst > 0:
        worst = score_tables.worst(gold, lines, opts.worst)
        cli.print_rows(worst, ("id", "site", "wrong", "why"), opts.as_json)
    if opts.calibration:
        bands = score_tables.calibration(gold, lines)
        cli.print_rows(bands, ("field", "band", "pages", "wrong", "share_wrong"), opts.as_json)
        held = score_tables.reliability(gold, lines)
        names = ("field", "pages", "sure", "right", "expected_error")
        cli.print_rows(held, names, opts.as_json)


def _print_changes(found: Mapping[str, Mapping[str, Sequence[str]]], as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "field": name,
            "won": len(c["won"]),
            "lost": len(c["lost"]),
            "pages_lost": list(c["lost"]),
            "pages_won": list(c["won"]),
        }
        for name, c in found.items()
    ]
    if as_json:
        cli.print_rows(rows, ("field",), True)
        return
    for row in rows:
        row.update(
            {k: " ".join(found[str(row["field"])][k[6:]][:8]) for k in ("pages_lost", "pages_won")}
        )
    cli.show()
    if rows:
        cli.print_rows(rows, ("field", "won", "lost", "pages_lost", "pages_won"), False)
    else:
        cli.show("no page changed against the stored run")


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(
            f"\r{done}/{total} pages", end="" if done < total else "\n", file=sys.stderr, flush=True
        )
    elif done == total or done % 200 == 0:
        cli.show(f"{done}/{total} pages", file=sys.stderr, flush=True)


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    try:
        with path.open("w", encoding="utf-8") as out:
            for line in lines:
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as exc:
        cli.fail(f"--out {path}: {exc.strerror}")


_SHORT = {
    "authors_ok": "au_ok",
    "authors_exact": "au_exact",
    "authors_f1": "au_f1",
    "content_precision": "c_p",
    "people_ok": "pe_ok",
    "people_exact": "pe_exact",
    "people_four": "pe_four",
    "content_recall": "c_r",
    "content_f1": "c_f1",
    "content_mean_f1": "c_mean_f1",
    "content_ge90": "c_ge90",
}


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        cli.print_rows(rows, ("group",), True)
        return
    shown = [_shown(row) for row in rows if len(rows) < 12 or _is_shown(row)]
    cli.print_rows(shown, list(shown[0]), False)
    first = rows[0]
    fields = ("title", "day", "minute", "authors", "content", "with", "four")
    counts = ", ".join(f"{name} {first[name + '_n']}" for name in fields)
    cli.show(f"scored pages: {counts}")
    cli.show(
        "au_ and four: stored authors and stored credits together, as the gold data count them;"
        " pe_: people alone"
    )
    edges = first.get("interval95") or {}
    shown_edges = [
        f"{name} {edges[name][0]:.3f}-{edges[name][1]:.3f}"
        for name in score_tables.SHOWN_INTERVALS
        if name in edges
    ]
    if shown_edges:
        cli.show("95 % intervals: " + ", ".join(shown_edges))


def _is_shown(row: Mapping[str, Any]) -> bool:
    """Of a long table: groups with pages enough to tell, and those that are always looked at."""
    group = row["group"]
    always = group == "all" or group.startswith(("source=", "lang=vi", "fold="))
    return always or bool(row["pages"] >= 5)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    sign = "+" if row["group"].startswith("fold=won") else ""
    shown = {"group": row["group"], "pages": row["pages"]}
    for column in score_tables.COLUMNS:
        value = row[column]
        shown[_SHORT.get(column, column)] = None if value is None else f"{value:{sign}.3f}"
    return shown


def _rows(
    gold: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    before: Sequence[Mapping[str, Any]] | None,
    opts: argparse.Namespace,
) -> list[dict[str, Any]]:
    """The table: all pages, then the folds or the groups that were asked for."""
    rows: list[dict[str, Any]] = [{"group": "all", **score_tables.figures(gold, lines)["all"]}]
    if opts.folds:
        parts = score_tables.folds(gold, lines, opts.folds, before)
        rows += [{"group": f"fold={name}", **summary} for name, summary in parts.items()]
    for by in opts.by or (() if opts.folds else ("lang", "source")):
        groups = score_tables.figures(gold, lines, by)
        rows += [
            {"group": f"{by}={name}", **summary}
            for name, summary in groups.items()
            if name != "all"
        ]
    if opts.intervals:
        rows[0]["interval95"] = score_tables.intervals(gold, lines)
    return rows
