"""Which candidates are the authors: two logistic models, their mean, and what is asked of it. Pure.

The weights stand in ``weights.json`` beside this file, made by ``python -m evaluation.train`` and
read by people before they are committed: one figure for each feature. At run time a probability is
a sum.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from newscrawler.extraction import authors
from newscrawler.extraction.author_choice.candidates import Candidate, Candidates
from newscrawler.extraction.author_choice.features import RULES, Rules, describe

_FILE = "weights.json"


@dataclass(frozen=True, slots=True)
class Bars:
    """Least probabilities: ``alone`` of the best name, ``ruled`` of the best one where the rules
    named it too, ``more`` of every further one, ``beside`` of a further one that stands in the same
    text or markup as the best."""

    alone: float = 0.4
    ruled: float = 0.2
    more: float = 0.55
    beside: float = 0.3


@dataclass(frozen=True)
class Model:
    """``plain`` does not see the rules' answer, ``seeing`` does: feature -> weight.

    ``calibration``: points of (probability of the weakest chosen name, share of pages that are
        right), rising; ``settled``: the same of (the rules' confidence, share) where nothing is
        weighed.
    """

    plain: dict[str, float]
    seeing: dict[str, float]
    bars: Bars = field(default_factory=Bars)
    calibration: tuple[tuple[float, float], ...] = ((0.0, 0.0), (1.0, 1.0))
    settled: tuple[tuple[float, float], ...] = ((0.0, 0.0), (1.0, 1.0))

    def probability(self, features: Iterable[str]) -> float:
        """Of one candidate: the mean of both models."""
        plain, seeing = self.plain, self.seeing
        a, b = plain.get("", 0.0), seeing.get("", 0.0)
        for name in features:
            b += seeing.get(name, 0.0)
            if not name.startswith(RULES):
                a += plain.get(name, 0.0)
        return (_logistic(a) + _logistic(b)) / 2

    def sure(self, probability: float) -> float:
        """The share of pages that are right where the weakest chosen name is so probable."""
        return on_curve(self.calibration, probability)

    def sure_of_rules(self, confidence: float) -> float:
        """That share where nothing is weighed and the rules are so confident."""
        return on_curve(self.settled, confidence)


def on_curve(points: Sequence[tuple[float, float]], x: float) -> float:
    """Between two points the line that joins them."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * max(0.0, x - x0) / max(x1 - x0, 1e-9)
    return points[-1][1]


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, x))))


@dataclass(frozen=True, slots=True)
class Chosen:
    """Candidates in the order of the page, and the least probability among them."""

    candidates: tuple[Candidate, ...] = ()
    weakest: float = 0.0


def choose(page: Candidates, rules: Rules, model: Model) -> Chosen:
    """The authors that a page's candidates make most likely; nobody where the best stays below
    the bar."""
    return select(rate(page, rules, model), model.bars)


def rate(page: Candidates, rules: Rules, model: Model) -> list[tuple[Candidate, float]]:
    """The candidates in the order of the page, each with its probability."""
    return [(one, model.probability(names)) for one, names in describe(page, rules)]


def select(rated: Sequence[tuple[Candidate, float]], bars: Bars) -> Chosen:
    """What is taken of candidates with their probabilities, which stand in the page's order."""
    if not rated:
        return Chosen()
    best = _best(rated, bars)
    if best is None:
        return Chosen()
    groups = {p.group for p in best.places if p.group}
    taken = [
        (one, p)
        for one, p in rated
        if one is best
        or (best.ruled and one.ruled)  # a list is decided as one
        or p >= bars.more
        or (p >= bars.beside and _beside(one, groups))
    ]
    taken = [
        (one, p)
        for one, p in taken
        if not any(_is_part(one, p, other, q) for other, q in taken if other is not one)
    ]
    chosen = taken[: authors.MAX_NAMES]
    return Chosen(tuple(one for one, _ in chosen), min((p for _, p in chosen), default=0.0))


def _best(rated: Sequence[tuple[Candidate, float]], bars: Bars) -> Candidate | None:
    """The likeliest one that is likely enough: less is asked of names that the rules gave."""
    for one, p in sorted(rated, key=lambda item: -item[1]):
        if p >= (bars.ruled if one.ruled else bars.alone):
            return one
    return None


def _beside(one: Candidate, groups: set[str]) -> bool:
    return any(p.group in groups and not p.foreign for p in one.places)


def _is_part(one: Candidate, p: float, other: Candidate, q: float) -> bool:
    """Whether another chosen name says the same: the longer one, or the likelier of two whose
    words are the same."""
    mine, theirs = set(one.key.split()), set(other.key.split())
    if mine == theirs:
        return (q, other.key) > (p, one.key)
    if mine < theirs:
        return len(mine) == 1 or q >= 0.5 * p
    return theirs < mine and len(theirs) > 1 and q > 2 * p


@cache
def shipped() -> Model:
    """The model that the package carries."""
    return from_json(json.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8")))


def from_json(data: dict[str, Any]) -> Model:
    """Of what :mod:`evaluation.train` wrote."""
    curves = [tuple((float(x), float(y)) for x, y in data[k]) for k in ("calibration", "settled")]
    return Model(data["plain"], data["seeing"], Bars(**data["bars"]), *curves)
