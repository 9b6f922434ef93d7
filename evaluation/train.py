"""Learns the weights by which a page's authors are chosen, and says what they are worth.

    python -m evaluation.train PAGES [--out FILE] [--seed N] [--report FILE]

PAGES is a folder with gold.jsonl and html/. Pages are described once, in processes; then models are
fitted in folds by site: no page of a site that is scored was learned from. What is printed is the
cross-validation against the rules. ``--out`` writes the weights of a model of all pages, for
newscrawler/extraction/author_choice/weights.json: review it before it is committed. The seed
decides folds and generated pages; a second run prints the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation import author_pages, scorer
from evaluation.score_tables import expected_error
from newscrawler.extraction import bylines, credits
from newscrawler.extraction.author_choice import candidates
from newscrawler.extraction.author_choice.candidates import Candidate
from newscrawler.extraction.author_choice.features import RULES, Rules, describe
from newscrawler.extraction.author_choice.find import is_settled
from newscrawler.extraction.author_choice.model import Bars, Model, on_curve, select
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract

Array = npt.NDArray[np.float64]

FOLDS = 10
# The penalty of a weight, chosen by cross-validation.
RIDGE = 1.0
# A feature of fewer sites is one site's.
_LEAST_SITES = 4
_STEPS = 12
_RESAMPLES = 400
#: What a page counts in the fit, by kind: generated pages are many of few templates.
_WEIGHTS = {"gold": 1.0, "taken": 0.4, "none": 0.4, "vi": 0.3, "vi-none": 0.3}
_EMPTY = ("taken", "none", "vi-none")


@dataclass
class Row:
    """A page as it is learned from. ``described``: its candidates and their features; ``rules``:
    the people that the rules name; ``credits``: bodies that are credited where no people are found
    and beside people; ``settled``: two places of the page state what the rules named."""

    id: str
    site: str
    kind: str
    gold: list[str]
    described: list[tuple[Candidate, list[str]]]
    is_body: list[bool]
    rules: list[str]
    sure: float
    credits: tuple[list[str], list[str]]
    settled: bool
    labels: list[bool] = field(default_factory=list)


def row_of(page: author_pages.Page) -> Row:
    """What a page is learned from: everything that a fit needs, without the page."""
    context = PageContext()
    doc = Document(page.body, page.url).composed()
    found = bylines.by_rules(doc, context)
    rules = Rules.of(found)
    places = candidates.find(doc, context, found.value)
    content = extract(Document(page.body, page.url), context).content.value
    people = found.value or ["Jane Doe"]
    gold = scorer.names_of({"authors": list(page.authors)})
    row = Row(
        page.id,
        page.site,
        page.kind,
        gold,
        describe(places, rules),
        [candidates.is_body(one, places.own) for one in places.found.values()],
        found.value,
        found.confidence,
        (
            credits.find(doc, context, [], content).value,
            credits.find(doc, context, people, content).value if found.value else [],
        ),
        is_settled(doc, found),
    )
    row.labels = labels([one.name for one, _ in row.described], gold)
    return row


def labels(names: Sequence[str], gold: Sequence[str]) -> list[bool]:
    """Which candidates are gold names: the same words, or where no candidate has them, the words of
    one in the other, two at least."""
    found = [False] * len(names)
    words = [set(scorer.name_key(name).split()) for name in names]
    for wanted in (set(name.split()) for name in gold):
        exact = [mine == wanted for mine in words]
        near = [len(mine & wanted) > 1 and (mine <= wanted or wanted <= mine) for mine in words]
        for number, is_it in enumerate(exact if any(exact) else near):
            found[number] |= is_it
    return found


# ---------------------------------------------------------------- the fit
class Fit:
    """A logistic model of named features, fitted by Newton's method with a ridge penalty."""

    def __init__(self, rows: Sequence[Row], *, sees_rules: bool, ridge: float = RIDGE) -> None:
        sites: dict[str, set[str]] = {}
        for row in rows:
            for _, names in row.described:
                for name in names:
                    sites.setdefault(name, set()).add(row.site)
        self.names = sorted(
            name
            for name, of in sites.items()
            if len(of) >= _LEAST_SITES and (sees_rules or not name.startswith(RULES))
        )
        self.index = {name: number for number, name in enumerate(self.names, 1)}
        self.weights = self._fitted(rows, ridge)

    def _fitted(self, rows: Sequence[Row], ridge: float) -> Array:
        size = len(self.names) + 1
        flat = [
            (names, label, _WEIGHTS[row.kind])
            for row in rows
            for (_, names), label in zip(row.described, row.labels, strict=True)
        ]
        x = np.zeros((len(flat), size))
        x[:, 0] = 1.0
        for number, (names, _, _) in enumerate(flat):
            x[number, [self.index[name] for name in names if name in self.index]] = 1.0
        y = np.array([float(label) for _, label, _ in flat])
        counts = np.array([weight for _, _, weight in flat])
        penalty = np.full(size, ridge)
        penalty[0] = 1e-6
        w = np.zeros(size)
        for _ in range(_STEPS):
            p = 1.0 / (1.0 + np.exp(-np.clip(x @ w, -40, 40)))
            gradient = x.T @ (counts * (p - y)) + penalty * w
            hessian = (x.T * (counts * p * (1 - p))) @ x + np.diag(penalty)
            step = np.linalg.solve(hessian, gradient)
            w -= step
            if float(np.abs(step).max()) < 1e-6:
                break
        return w

    def as_weights(self) -> dict[str, float]:
        pairs = zip(["", *self.names], self.weights, strict=True)
        return {name: round(float(w), 3) for name, w in pairs if abs(w) >= 0.0005}


def fitted(rows: Sequence[Row], ridge: float = RIDGE) -> Model:
    return Model(
        Fit(rows, sees_rules=False, ridge=ridge).as_weights(),
        Fit(rows, sees_rules=True, ridge=ridge).as_weights(),
    )


def fold_of(site: str, seed: int) -> int:
    """The same for a site in every run with that seed."""
    digest = hashlib.blake2b(f"{seed}:{site}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) % FOLDS


def out_of_fold(rows: Sequence[Row], seed: int, ridge: float = RIDGE) -> dict[str, list[float]]:
    """Page -> probabilities of its candidates, by models that saw no page of its site."""
    found: dict[str, list[float]] = {}
    for fold in range(FOLDS):
        model = fitted([r for r in rows if fold_of(r.site, seed) != fold], ridge)
        for row in rows:
            if fold_of(row.site, seed) == fold:
                found[row.id] = [model.probability(names) for _, names in row.described]
    return found


# ---------------------------------------------------------------- answers and their worth
@dataclass(frozen=True)
class Answer:
    """``people``: stored as authors; ``names``: them and the credits; ``weakest``: probability."""

    people: list[str]
    names: list[str]
    weakest: float


def answer(row: Row, chances: Sequence[float], bars: Bars) -> Answer:
    """What would be stored of a page."""
    if row.settled:
        return by_rules(row)
    rated = [(one, p) for (one, _), p in zip(row.described, chances, strict=True)]
    chosen = select(rated, bars)
    bodies = {one.key for (one, _), body in zip(row.described, row.is_body, strict=True) if body}
    people = [one.name for one in chosen.candidates if one.key not in bodies]
    return Answer(people, [*people, *row.credits[bool(people)]], chosen.weakest)


def by_rules(row: Row) -> Answer:
    return Answer(row.rules, [*row.rules, *row.credits[bool(row.rules)]], row.sure)


def is_ok(row: Row, given: Answer) -> bool:
    return _is_ok(tuple(row.gold), tuple(given.names))


@lru_cache(maxsize=65536)
def _is_ok(gold: tuple[str, ...], names: tuple[str, ...]) -> bool:
    keys = scorer.names_of({"authors": list(names)})
    return bool(scorer.score_authors(gold, keys)["ok"])


Answers = dict[str, Answer]


def share(rows: Iterable[Row], answers: Answers, what: Callable[[Row, Answer], bool]) -> float:
    verdicts = [what(row, answers[row.id]) for row in rows]
    return sum(verdicts) / len(verdicts) if verdicts else float("nan")


def found_any(_: Row, given: Answer) -> bool:
    return bool(given.names)


def names_people(_: Row, given: Answer) -> bool:
    return bool(given.people)


#: Bars that are tried.
_GRID = tuple(
    Bars(*bars)
    for bars in product(
        (0.3, 0.4, 0.5, 0.6), (0.05, 0.1, 0.15, 0.2, 0.3), (0.4, 0.5, 0.6), (0.2, 0.25, 0.35)
    )
)
# What a wrong name on a page without an author costs, in pages that are right.
_WRONG_COSTS = 0.2


class Trials:
    """Every page answered with every bar of the grid, once."""

    def __init__(self, rows: Sequence[Row], chances: dict[str, list[float]]) -> None:
        self.rows = rows
        self.gains = np.zeros((len(_GRID), len(rows)))
        signed = sum(row.kind == "gold" for row in rows)
        empty = sum(row.kind in _EMPTY for row in rows)
        for number, row in enumerate(rows):
            known: dict[tuple[str, ...], float] = {}
            for trial, bars in enumerate(_GRID):
                given = answer(row, chances[row.id], bars)
                names = (*given.people, "", *given.names)
                if names not in known:
                    known[names] = _gain(row, given, signed, empty)
                self.gains[trial, number] = known[names]

    def best(self, inside: Callable[[Row], bool]) -> Bars:
        """The bars that are worth most on some of the pages."""
        mask = np.array([inside(row) for row in self.rows])
        return _GRID[int(self.gains[:, mask].sum(axis=1).argmax())]


def _gain(row: Row, given: Answer, signed: int, empty: int) -> float:
    if row.kind == "gold":
        return is_ok(row, given) / signed
    if row.kind in _EMPTY:
        return -_WRONG_COSTS * bool(given.people) / empty
    return 0.0


def _is_outside(fold: int, seed: int, row: Row) -> bool:
    return fold_of(row.site, seed) != fold


def cross_validated(
    rows: Sequence[Row], chances: dict[str, list[float]], trials: Trials, seed: int
) -> tuple[Answers, dict[str, Bars]]:
    """Answers with bars that were set on the other folds."""
    of_fold = [trials.best(partial(_is_outside, fold, seed)) for fold in range(FOLDS)]
    used = {row.id: of_fold[fold_of(row.site, seed)] for row in rows}
    return {row.id: answer(row, chances[row.id], used[row.id]) for row in rows}, used


def at_coverage(
    rows: Sequence[Row], chances: dict[str, list[float]], bars: dict[str, Bars], coverage: float
) -> Answers:
    """Answers where the bar of the best name is raised until no more pages are answered."""
    answers: Answers = {}
    for raised in np.linspace(0, 1, 101):
        for row in rows:
            own = bars[row.id]
            least = float(raised)
            higher = Bars(max(own.alone, least), max(own.ruled, least), own.more, own.beside)
            answers[row.id] = answer(row, chances[row.id], higher)
        if share(rows, answers, found_any) <= coverage:
            break
    return answers


def interval(rows: Sequence[Row], value: Callable[[Sequence[Row]], float], seed: int) -> str:
    """The 95 % interval of a figure, whole sites drawn."""
    of_site: dict[str, list[Row]] = {}
    for row in rows:
        of_site.setdefault(row.site, []).append(row)
    sites, draw = list(of_site.values()), random.Random(seed)
    drawn = sorted(
        value([row for site in draw.choices(sites, k=len(sites)) for row in site])
        for _ in range(_RESAMPLES)
    )
    edge = _RESAMPLES * 25 // 1000
    return f"{drawn[edge - 1]:.3f} to {drawn[-edge]:.3f}"


# ---------------------------------------------------------------- how sure
def calibration(points: Sequence[tuple[float, bool]]) -> list[tuple[float, float]]:
    """Points (probability of the weakest name, share of pages that are right) of a logistic curve
    through the pages' verdicts: two figures are fitted, as a few hundred pages bear no more."""
    z = np.array([[1.0, np.log(max(p, 1e-3) / max(1 - p, 1e-3))] for p, _ in points])
    y = np.array([float(right) for _, right in points])
    w = np.array([0.0, 0.5])
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(z @ w, -40, 40)))
        hessian = (z.T * (p * (1 - p))) @ z + np.eye(2) * 1e-3
        w -= np.linalg.solve(hessian, z.T @ (p - y))
    curve = []
    for x in (0.01, 0.05, *np.linspace(0.1, 0.9, 9), 0.95, 0.98, 0.99, 0.999):
        at = float(w[0] + w[1] * np.log(x / (1 - x)))
        curve.append((round(float(x), 3), round(1.0 / (1.0 + float(np.exp(-at))), 3)))
    return [(0.0, 0.0), *curve, (1.0, curve[-1][1])]


Points = list[tuple[float, float]]


def _calibrated(
    rows: Sequence[Row], answers: Answers, seed: int
) -> tuple[list[float], list[bool], Points, Points]:
    """How sure each page with people is, by the points of the other folds; whether it is right; the
    points of all pages that are weighed, and of those that are settled."""
    sure: list[float] = []
    right: list[bool] = []
    curves: list[Points] = []
    for settled in (False, True):
        some = [row for row in rows if answers[row.id].people and row.settled == settled]
        points = {r.id: (answers[r.id].weakest, _is_right(r, answers[r.id])) for r in some}
        for fold in range(FOLDS):
            inside = [r.id for r in some if fold_of(r.site, seed) == fold]
            curve = calibration([points[r.id] for r in some if fold_of(r.site, seed) != fold])
            sure += [on_curve(curve, points[i][0]) for i in inside]
            right += [points[i][1] for i in inside]
        curves.append(calibration(list(points.values())))
    return sure, right, curves[0], curves[1]


def _is_right(row: Row, given: Answer) -> bool:
    return bool(row.gold) and is_ok(row, given)


# ---------------------------------------------------------------- the report
def report(rows: Sequence[Row], seed: int, ridge: float) -> tuple[list[str], Model]:
    """Lines of figures, and the model of all pages."""
    chances = out_of_fold(rows, seed, ridge)
    rules = {row.id: by_rules(row) for row in rows}
    trials = Trials(rows, chances)
    learned, bars = cross_validated(rows, chances, trials, seed)
    gold = [r for r in rows if r.kind == "gold"]
    coverage = share(gold, rules, found_any)
    level = at_coverage(gold, chances, bars, coverage)
    lines = [f"seed {seed}, ridge {ridge}, {FOLDS} folds by site, {len(rows)} pages"]
    for name, answers in (("rules", rules), ("learned", learned)):
        lines += _lines(name, rows, answers, seed)
    even = share(gold, level, is_ok)
    lines.append(
        f"learned at the rules' coverage: found {share(gold, level, found_any):.3f}, ok {even:.3f};"
        f" gain {even - share(gold, rules, is_ok):+.3f}"
        f" ({interval(gold, lambda rs: share(rs, level, is_ok) - share(rs, rules, is_ok), seed)})"
    )
    lines.append(_won_and_lost(gold, rules, learned))
    bases = [r for r in rows if r.kind in ("gold", "none")]
    sure, right, weighed, settled = _calibrated(bases, learned, seed)
    lines.append(f"calibration: expected error {expected_error(sure, right):.3f}")
    lines += _bands(sure, right)
    final = fitted(rows, ridge)
    bars_of_all = trials.best(lambda _: True)
    curves = tuple(weighed), tuple(settled)
    return lines, Model(final.plain, final.seeing, bars_of_all, *curves)


def _lines(name: str, rows: Sequence[Row], answers: Answers, seed: int) -> list[str]:
    lines = []
    for kind in ("gold", "vi"):
        some = [r for r in rows if r.kind == kind]
        if some:
            right = share(some, answers, is_ok)
            lines.append(
                f"{name:8} {kind:8} pages {len(some)}: ok {right:.3f}"
                f" ({interval(some, lambda rs: share(rs, answers, is_ok), seed)}),"
                f" found {share(some, answers, found_any):.3f}"
            )
    for kind in (*_EMPTY, "all"):
        some = [r for r in rows if r.kind == kind or (kind == "all" and r.kind in _EMPTY)]
        if some:
            wrong = share(some, answers, names_people)
            lines.append(
                f"{name:8} {kind:8} pages {len(some)}: wrong name {wrong:.3f}"
                f" ({interval(some, lambda rs: share(rs, answers, names_people), seed)})"
            )
    return lines


def _won_and_lost(gold: Sequence[Row], rules: Answers, learned: Answers) -> str:
    before = {r.id: is_ok(r, rules[r.id]) for r in gold}
    after = {r.id: is_ok(r, learned[r.id]) for r in gold}
    won = sum(after[i] and not before[i] for i in before)
    lost = sum(before[i] and not after[i] for i in before)
    return f"pages won {won}, lost {lost}"


def _bands(sure: Sequence[float], right: Sequence[bool]) -> list[str]:
    lines = []
    edges = (0.0, 0.3, 0.5, 0.65, 0.8, 0.9, 1.01)
    for low, high in pairwise(edges):
        inside = [r for s, r in zip(sure, right, strict=True) if low <= s < high]
        if inside:
            lines.append(
                f"  sure from {low}: {len(inside)} pages, right {sum(inside) / len(inside):.3f}"
            )
    return lines


def as_json(model: Model, lines: list[str]) -> str:
    """The file of weights: one line a feature."""
    data: dict[str, Any] = {
        "about": "Made by python -m evaluation.train (docs/extraction.md). One weight a feature.",
        "report": lines,
        "bars": {
            "alone": model.bars.alone,
            "ruled": model.bars.ruled,
            "more": model.bars.more,
            "beside": model.bars.beside,
        },
        "settled": [list(point) for point in model.settled],
        "calibration": [list(point) for point in model.calibration],
        "plain": model.plain,
        "seeing": model.seeing,
    }
    return json.dumps(data, indent=1, ensure_ascii=False, sort_keys=False) + "\n"


def rows_of(pages: Iterable[author_pages.Page], processes: int) -> list[Row]:
    """Rows in the order of the pages."""
    if processes < 2:
        return list(map(row_of, pages))
    with get_context("spawn").Pool(processes) as pool:
        return list(pool.imap(row_of, pages, chunksize=8))


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn the weights of authors")
    parser.add_argument("pages", type=Path)
    parser.add_argument("--out", type=Path, help="write the weights there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ridge", type=float, default=RIDGE)
    parser.add_argument("--generated", type=int, default=4, help="pages a Vietnamese site, twice")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if not (options.pages / "gold.jsonl").is_file():
        sys.exit(
            f"{options.pages}/gold.jsonl is missing: a folder with gold.jsonl and html/ is needed"
        )
    pages = [
        *author_pages.stored(options.pages),
        *author_pages.generated(options.seed, options.generated),
    ]
    rows = rows_of(pages, options.processes)
    lines, model = report(rows, options.seed, options.ridge)
    print("\n".join(lines))
    if options.out:
        options.out.write_text(as_json(model, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
