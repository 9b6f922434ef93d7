"""The curves of confidence: what is learned, what is applied, what is left alone."""

from __future__ import annotations

import json
import random
import re
from importlib.resources import files

import pytest

from evaluation import calibrate
from evaluation.score_tables import expected_error, reliability
from newscrawler.extraction import calibration
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import FieldValue
from tests.unit.extraction.story import HEAD, paragraphs

URL = "https://www.example.com/2026/07/30/bridge.html"
PAGE = (
    f'<html lang=en><head><title>{HEAD}</title><meta property="og:title" content="{HEAD}"><meta'
    ' property="article:published_time" content="2026-07-30T10:00:00Z"></head><body><article>'
    f"<h1>{HEAD}</h1><div class=body>{paragraphs(8)}</div></article></body></html>"
).encode()
AGENCY = PAGE.replace(b"</h1>", b"</h1><p class=author>dpa</p>")
SET = SelectorSet.from_dict(
    {"domain": "example.com", "state": "active", "variants": [{"template": "article", "fields": {
        "title": [{"css": "h1"}], "content": {"root": ["div.body"]},
    }}]}
)  # fmt: skip


def points(share: float, contested: float, seed: int = 5) -> list[calibrate.Point]:
    """Pages of 200 sites on which confidence is far from the share that is right."""
    draw = random.Random(seed)
    found = []
    for number in range(800):
        doubted = draw.random() < 0.2
        right = draw.random() < (contested if doubted else share)
        raw = draw.choice((0.3, 0.55, 0.75, 0.95))
        site = f"site{number % 200}.example"
        found.append(calibrate.Point(site, "title", raw, doubted, right))
    return found


def test_confidence_becomes_the_share_that_is_right_on_sites_outside_the_fold() -> None:
    some = points(0.95, 0.7)
    right = [p.right for p in some]
    assert expected_error([p.raw for p in some], right) > 0.15
    assert expected_error(calibrate.out_of_fold(some, seed=1), right) < 0.03


def test_the_order_of_the_rules_is_kept_where_pages_do_not_show_it() -> None:
    curve = calibrate.fitted(points(0.95, 0.7))
    assert curve.slope >= calibrate.LEAST_SLOPE and curve.contested < 0
    assert curve.sure(0.3, False) < curve.sure(0.75, False) < curve.sure(0.95, False)


def test_the_shipped_curves_are_those_of_their_command() -> None:
    assert set(calibration.curves()) == set(calibration.CALIBRATED)
    for curve in calibration.curves().values():
        assert curve.slope >= calibrate.LEAST_SLOPE and curve.contested <= 0
    written = json.loads(calibrate.as_json([*_of_every_field()], ["a line"]))
    assert set(written["curves"]) == set(calibration.CALIBRATED) and written["report"] == ["a line"]


def _of_every_field() -> list[calibrate.Point]:
    return [
        calibrate.Point(p.site, name, p.raw, p.contested, p.right)
        for name in calibration.CALIBRATED
        for p in points(0.9, 0.6)
    ]


def test_the_shipped_figures_keep_the_promise_outside_their_fold() -> None:
    """What cross-validation printed stands beside the figures that it was printed with. Credits are
    the authors' field where no people are found: the error of two groups in the same bands is at
    most the mean of theirs, weighted by pages."""
    shipped = files("newscrawler.extraction")
    lines = json.loads((shipped / "calibration.json").read_text(encoding="utf-8"))["report"]
    found = [m.groups() for line in lines if (m := _FIELD.match(line))]
    of_field = {name: (int(pages), float(error)) for name, pages, error in found}
    assert set(of_field) == set(calibration.CALIBRATED)
    weights = shipped / "author_choice" / "weights.json"
    learned = json.loads(weights.read_text(encoding="utf-8"))["report"]
    (people,) = (float(m[1]) for line in learned if (m := _PEOPLE.match(line)))
    bands = [int(m[1]) for line in learned if (m := _BAND.match(line))]
    pages, error = of_field.pop("credits")
    joined = (people * sum(bands) + error * pages) / (sum(bands) + pages)
    assert joined <= 0.03
    assert max(error for _, error in of_field.values()) <= 0.03


_FIELD = re.compile(r"(\w+): (\d+) pages .*, ([\d.]+) by cross-validation")
_PEOPLE = re.compile(r"calibration: expected error ([\d.]+)")
_BAND = re.compile(r"  sure from [\d.]+: (\d+) pages")


def test_what_rules_read_is_calibrated() -> None:
    raw = extract(Document(AGENCY, URL), PageContext(), calibrated=False)
    found = extract(Document(AGENCY, URL), PageContext())
    assert raw.credits.value == ["dpa"] and not raw.authors.value
    for name in calibration.CALIBRATED:
        mine, other = getattr(found, name), getattr(raw, name)
        assert (mine.value, mine.origin) == (other.value, other.origin)
        assert mine == calibration.calibrated(name, other, found.disagreements)


def test_what_a_set_gives_has_a_figure_of_its_own() -> None:
    found = extract(Document(PAGE, URL), PageContext(), SET)
    assert (found.title.confidence, found.content.confidence) == (0.98, 0.98)
    assert found.published.origin.startswith("meta:")


def test_bodies_that_are_credited_beside_people_keep_their_figure() -> None:
    body = PAGE.replace(b"</h1>", b"</h1><p class=author>Jane Doe and John Roe, AP</p>")
    raw = extract(Document(body, URL), PageContext(), calibrated=False)
    found = extract(Document(body, URL), PageContext())
    assert found.authors.value == ["Jane Doe", "John Roe"] and found.credits.value == ["AP"]
    assert found.credits == raw.credits


def test_a_contradicted_value_is_less_sure() -> None:
    value = FieldValue("x", "generic:h1", 0.75)
    alone = calibration.calibrated("title", value, [])
    assert calibration.calibrated("title", value, ["title"]).confidence < alone.confidence < 1


@pytest.mark.parametrize(("raw", "low", "high"), [(0.0, 0, 1), (1.0, 0.5, 1)])
def test_the_ends_are_shares(raw: float, low: float, high: float) -> None:
    assert low < calibration.calibrated("title", FieldValue("x", "", raw), []).confidence < high


def test_reliability_states_the_expected_error() -> None:
    gold = [{"id": str(n), "title": f"Title number {n} of a story"} for n in range(4)]
    lines = [
        {"id": str(n), "title": gold[n]["title"] if n else "Another", "sure": {"title": 0.95}}
        for n in range(4)
    ]
    assert reliability(gold, lines) == [
        {"field": "title", "pages": 4, "sure": 0.95, "right": 0.75, "expected_error": 0.2}
    ]
