"""How sure a field is, as the share of pages that are right where rules are so confident. Pure.

The rules' own figures order their answers; they are no shares. ``calibration.json`` beside this
file holds a logistic curve for each field, made by ``python -m evaluation.calibrate`` and read by
people before it is committed:

    log-odds(sure) = base + slope * log-odds(raw) + contested * (another good source contradicts)

Authors have curves of their own (author_choice.model). Credits are measured where they stand alone,
as whom the page names in the place of an author. What a selector set, a rule of the user or a model
has given keeps its figure: these curves were measured on rules.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from newscrawler.items import FieldValue

#: The fields that have a curve.
CALIBRATED = ("title", "published", "credits", "content")
_FILE = "calibration.json"
_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class Curve:
    """See the module for the formula."""

    base: float
    slope: float
    contested: float

    def sure(self, raw: float, contested: bool) -> float:
        """0 to 1, rising with ``raw``, which is the rules' confidence."""
        at = self.base + self.slope * log_odds(raw) + self.contested * contested
        return 1.0 / (1.0 + math.exp(-at))


def log_odds(share: float) -> float:
    """Of a share, kept off 0 and 1."""
    kept = min(max(share, _LEAST), 1 - _LEAST)
    return math.log(kept / (1 - kept))


def calibrated(name: str, value: FieldValue, contested: Iterable[str]) -> FieldValue:
    """The same value with the share of pages that are right in the place of its confidence."""
    sure = curves()[name].sure(value.confidence, name in contested)
    return FieldValue(value.value, value.origin, round(sure, 3))


@cache
def curves() -> dict[str, Curve]:
    """The curves that the package carries, by field."""
    data = json.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return {name: Curve(**figures) for name, figures in data["curves"].items()}
