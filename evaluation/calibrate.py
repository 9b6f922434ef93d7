"""Learns how sure a field is: confidence of the rules -> share of pages that are right.

    python -m evaluation.calibrate PAGES [--out FILE] [--seed N]

PAGES is a folder with gold.jsonl and html/. Each page is read once; then a logistic curve is fitted
for title, publication, credits and text, in folds by site: three figures a field, as a few hundred
verdicts bear no more. What is printed is the cross-validation: the expected error (the mean
distance of how sure a band is and how often it is right, weighted by its pages) before and after.
``--out`` writes the figures of all pages, for newscrawler/extraction/calibration.json: review them
before they are committed. Confidence of authors is fitted by :mod:`evaluation.train`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import score_tables
from evaluation.score_tables import expected_error
from evaluation.train import FOLDS, fold_of
from newscrawler.extraction import calibration
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract, prediction

#: Penalty of the slope and of what a contradiction costs; verdicts of a field are hundreds.
RIDGE = 1.0
LEAST_SLOPE = 0.3
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Point:
    """One value of one page. ``raw``: the confidence of the rules."""

    site: str
    field: str
    raw: float
    contested: bool
    right: bool


def points_of(gold: Mapping[str, Any], body: bytes) -> list[Point]:
    """What is known of a page's fields, by rules alone."""
    found = extract(Document(body, str(gold["url"])), PageContext(), calibrated=False)
    right = score_tables.verdicts_by_field(score_tables.score(gold, prediction(found)))
    if "authors" in right and not found.authors.value:
        right["credits"] = right["authors"]  # gold names whom a page credits, bodies too
    points = []
    for name in calibration.CALIBRATED:
        value = getattr(found, name)
        if name in right and value.value:
            contested = name in found.disagreements
            points.append(Point(str(gold["site"]), name, value.confidence, contested, right[name]))
    return points


def fitted(points: Sequence[Point], ridge: float = RIDGE) -> calibration.Curve:
    """By Newton's method. A slope below LEAST_SLOPE is set to it: pages that the rules were tuned
    on hardly show the order of their confidence, other pages need it."""
    curve = _fit(points, ridge)
    return curve if curve.slope >= LEAST_SLOPE else _fit(points, ridge, LEAST_SLOPE)


def _fit(points: Sequence[Point], ridge: float, slope: float | None = None) -> calibration.Curve:
    """With ``slope`` given, the other two figures alone."""
    odds = np.array([calibration.log_odds(p.raw) for p in points])
    shift = odds * (slope or 0.0)
    x = np.array([[1.0, 0.0, float(p.contested)] for p in points])
    if slope is None:
        x[:, 1] = odds
    y = np.array([float(p.right) for p in points])
    penalty = np.array([1e-3, ridge, ridge])
    w = np.zeros(3)
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ w + shift, -30, 30)))
        hessian = (x.T * (p * (1 - p))) @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, x.T @ (p - y) + penalty * w)
        w -= step
        if float(np.abs(step).max()) < 1e-8:
            break
    base, steep, doubt = (round(float(v), 3) for v in w)
    return calibration.Curve(base, steep if slope is None else slope, doubt)


def out_of_fold(points: Sequence[Point], seed: int) -> list[float]:
    """How sure each value is, by a curve that saw no page of its site."""
    sure: dict[int, float] = {}
    for fold in range(FOLDS):
        curve = fitted([p for p in points if fold_of(p.site, seed) != fold])
        for number, point in enumerate(points):
            if fold_of(point.site, seed) == fold:
                sure[number] = curve.sure(point.raw, point.contested)
    return [sure[number] for number in range(len(points))]


def report(points: Sequence[Point], seed: int) -> list[str]:
    """A line a field: pages, expected error before and after; then its bands."""
    lines = [f"seed {seed}, ridge {RIDGE}, {FOLDS} folds by site"]
    for name in calibration.CALIBRATED:
        own = [p for p in points if p.field == name]
        if not own:
            continue
        right = [p.right for p in own]
        before = expected_error([p.raw for p in own], right)
        sure = out_of_fold(own, seed)
        lines.append(
            f"{name}: {len(own)} pages of {len({p.site for p in own})} sites, expected error"
            f" {before:.3f} before, {expected_error(sure, right):.3f} by cross-validation"
        )
        lines += _bands(sure, right)
    return lines


def _bands(sure: Sequence[float], right: Sequence[bool]) -> Iterable[str]:
    for low, high in score_tables.band_edges():
        inside = [(s, r) for s, r in zip(sure, right, strict=True) if low <= s < high]
        if inside:
            said = math.fsum(s for s, _ in inside) / len(inside)
            was = sum(r for _, r in inside) / len(inside)
            yield f"  from {low}: {len(inside)} pages, sure {said:.3f}, right {was:.3f}"


def as_json(points: Sequence[Point], lines: Sequence[str]) -> str:
    """The file of curves."""
    curves = {}
    for name in calibration.CALIBRATED:
        curve = fitted([p for p in points if p.field == name])
        curves[name] = {"base": curve.base, "slope": curve.slope, "contested": curve.contested}
    about = "Made by python -m evaluation.calibrate (docs/extraction.md)."
    data = {"about": about, "report": list(lines), "curves": curves}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _of_file(task: tuple[dict[str, Any], str]) -> list[Point]:
    gold, path = task
    return points_of(gold, gzip.decompress(Path(path).read_bytes()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn how sure a field is")
    parser.add_argument("pages", type=Path)
    parser.add_argument("--out", type=Path, help="write the curves there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    path = options.pages / "gold.jsonl"
    if not path.is_file():
        sys.exit(f"{path} is missing: a folder with gold.jsonl and html/ is needed")
    gold = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    tasks = [(g, str(options.pages / g["html"])) for g in gold]
    points: list[Point] = []
    with get_context("spawn").Pool(max(1, options.processes)) as pool:
        for done, some in enumerate(pool.imap(_of_file, tasks, chunksize=8), 1):
            points += some
            if done % 100 == 0 or done == len(tasks):
                print(f"{done}/{len(tasks)} pages", file=sys.stderr, flush=True)
    lines = report(points, options.seed)
    print("\n".join(lines))
    if options.out:
        options.out.write_text(as_json(points, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
