"""Validation: a set is executed on stored pages, held-out ones twice as heavy, and judged. Pure.

Nothing that a rule or a model proposed is used on its word. A field passes when it is found
(coverage), agrees with the page's metadata, differs between pages as such a field must, has the
shape of its kind and is not boilerplate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from statistics import median
from typing import Any

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import Article, FieldValue
from newscrawler.selectorsets.candidate_runs import read_all, root_chars
from newscrawler.selectorsets.content import boilerplate, content_label
from newscrawler.selectorsets.samples import (
    AGREE,
    WHOLE,
    Sample,
    authors_agree,
    date_read,
    f1,
    is_clock,
    norm,
    same_words,
    title_agrees,
    words,
)
from newscrawler.utils.numbers import share

COVERAGE = 0.9
#: Fewer pages with a label than this prove no agreement.
LEAST_LABELS = 4
CONTENT_F1 = 0.9
LENGTH = (0.7, 1.25)  # of the label's length
BOILERPLATE = 0.05
DENSITY = 0.7  # of the text below the content root, at least
HELD_OUT_WEIGHT = 2
REQUIRED = ("title", "content")
JUDGED_FIELDS = ("title", "published", "authors", "content")
#: The reason of a field that a set leaves to the page's own statements.
NOT_GIVEN = "no selector"
_NOTHING = FieldValue(None)
_CLOCK = "the day or the minute of the fetch: a clock of the site, not a date of the article"


@dataclass
class FieldReport:
    """Shares over the pages, weighted. ``agree`` None: too few pages have a label."""

    passed: bool
    coverage: float
    agree: float | None
    vary: float
    reason: str = ""
    examples: list[str] = field(
        default_factory=list
    )  # "page: found | expected", the first few that are wrong


@dataclass
class ValidationReport:
    passed: bool
    fields: dict[str, FieldReport]
    pages: int
    held_out: int

    @property
    def failed(self) -> dict[str, str]:
        return {name: report.reason for name, report in self.fields.items() if not report.passed}

    def metrics(self) -> dict[str, Any]:
        """For provenance: small and plain."""
        rows = {
            n: {k: v for k, v in asdict(r).items() if k != "examples"}
            for n, r in self.fields.items()
        }
        return {"pages": self.pages, "held_out": self.held_out, "fields": rows}


@dataclass
class _Pages:
    """Pages with what the set reads of them. ``common``: normalised texts of blocks that stand on
    most of them. ``few``: held-out pages alone, where one label is enough."""

    samples: list[Sample]
    values: list[dict[str, FieldValue]]
    weights: list[int]
    common: set[str]
    few: bool = False

    def unseen(self, start: int) -> _Pages:
        """The held-out pages, which begin at ``start``, by themselves."""
        samples = self.samples[start:]
        weights = [1] * len(samples)
        return _Pages(samples, self.values[start:], weights, self.common, few=True)

    def found(self, name: str) -> list[Any]:
        return [values.get(name, _NOTHING).value for values in self.values]

    def labels(self, name: str) -> list[Any]:
        return [getattr(sample.labels, name) for sample in self.samples]

    def share(self, some: Iterable[int], of: Sequence[int]) -> float:
        """Of the weight of pages the share that some of them have; 1.0 of no page."""
        return share(sum(self.weights[i] for i in some), sum(self.weights[i] for i in of), 1.0)


def judge(
    selectors: SelectorSet, induced: list[Sample], held_out: list[Sample]
) -> ValidationReport:
    """Passed = title and content pass, here and on the held-out pages alone, and no
    given field is wrong."""
    pages = [*induced, *held_out]
    common = boilerplate(pages)
    judged = _Pages(
        [replace(s, labels=replace(s.labels, content=content_label(s, common))) for s in pages],
        [read_all(s, selectors) for s in pages],
        [1] * len(induced) + [HELD_OUT_WEIGHT] * len(held_out),
        common,
    )
    given = {name for v in selectors.variants for name, c in v.fields.items() if c} | {"content"}
    fields = {}
    for name in JUDGED_FIELDS:
        if name in given:
            fields[name] = _judge_on_both(name, judged, judged.unseen(len(induced)))
        else:
            fields[name] = FieldReport(False, 0.0, None, 0.0, NOT_GIVEN)
    density = _density(selectors, judged)
    content = fields["content"]
    if density < DENSITY and content.passed:
        content.passed = False
        content.reason = f"only {density:.0%} of the text below the root is the article's: too wide"
    passed = all(fields[name].passed for name in REQUIRED)
    return ValidationReport(passed, fields, len(pages), len(held_out))


def _judge_on_both(name: str, pages: _Pages, held_out: _Pages) -> FieldReport:
    """The induced pages must not outvote those that the set never saw."""
    report = _judge_field(name, pages)
    if report.passed and len(held_out.samples) >= 2:
        unseen = _judge_field(name, held_out)
        if not unseen.passed:
            report.passed, report.reason = False, f"on the held-out pages: {unseen.reason}"
    return report


def _density(selectors: SelectorSet, pages: _Pages) -> float:
    """Median share of the text below the content root that is kept; 1.0 where nothing is found."""
    shares = [
        min(1.0, len(v["content"].value) / max(1, root_chars(s, selectors)))
        for s, v in zip(pages.samples, pages.values, strict=True)
        if "content" in v
    ]
    return median(shares) if shares else 1.0


def _judge_field(name: str, pages: _Pages) -> FieldReport:
    found, labels = pages.found(name), pages.labels(name)
    labelled = [i for i, label in enumerate(labels) if label]
    right = [i for i in labelled if value_agrees(name, found[i], labels[i])]
    enough = len(labelled) >= (1 if pages.few else LEAST_LABELS)
    # A page whose metadata know no author or date may well have none: only title and
    # content must be everywhere.
    expected = range(len(labels)) if name in REQUIRED else labelled
    coverage = pages.share((i for i in expected if found[i]), expected)
    values = [_key(value) for value in found if value]
    report = FieldReport(
        True,
        round(coverage, 3),
        round(pages.share(right, labelled), 3) if enough else None,
        round(share(len(set(values)), len(values)), 3),
    )
    wrong = [i for i in labelled if i not in right][:3]
    report.examples = [
        f"{pages.samples[i].url}: {_show(found[i])} | {_show(labels[i])}" for i in wrong
    ]
    report.reason = _fault(name, report, found, pages)
    report.passed = not report.reason
    return report


def _fault(name: str, report: FieldReport, found: list[Any], pages: _Pages) -> str:
    """Why the field does not pass, '' when it does."""
    if report.coverage < COVERAGE:
        return f"found on {report.coverage:.0%} of the pages that have it"
    if report.agree is None:
        return "no page metadata on enough pages, and one proposer alone does not count"
    if report.agree < AGREE:
        return f"agrees with the page metadata on {report.agree:.0%}"
    is_required = name in REQUIRED and not pages.few
    if is_required and report.vary < 0.95 * _told_apart(pages.labels(name)):
        return "the same on several pages: boilerplate"
    return (
        _sameness_fault(name, found, pages)
        or _shape_fault(name, found, pages)
        or _text_fault(name, found, pages)
    )


def _sameness_fault(name: str, found: list[Any], pages: _Pages) -> str:
    """A value that is the same on pages that state different ones."""
    keys = [_key(value) for value in found if value]
    if name == "published":
        if is_clock(pages.samples, found):
            return _CLOCK
        # The newest pages of a site are of two or three days: compared with what they state,
        # not with their number.
        days = {_key(label) for label in pages.labels(name) if label}
        if len(days) > 2 and len(set(keys)) < len(days) / 2:
            return "the same date on most pages"
    if name == "authors" and len(keys) >= 8 and len(set(keys)) == 1:
        # One who writes alone is found in metadata as well; an account that files
        # everything is no author.
        return "the same name on every page"
    return ""


def _shape_fault(name: str, found: list[Any], pages: _Pages) -> str:
    present = [(f, s) for f, s in zip(found, pages.samples, strict=True) if f]
    misshapen = [(f, s) for f, s in present if not _SHAPES[name](f)]
    if name == "content":
        # A page whose own metadata say no more is a short one: one of four held-out pages is
        # enough to fail a set.
        misshapen = [(f, s) for f, s in misshapen if not _is_label(f, s)]
    if len(misshapen) > len(present) * (1 - COVERAGE):
        return f"{len(misshapen)} of {len(present)} values have not the shape of this field"
    return ""


def _text_fault(name: str, found: list[Any], pages: _Pages) -> str:
    if name == "title":
        return _title_fault(found, pages.samples)
    if name == "content":
        part = _common_share([str(f) for f in found if f], pages.common)
        if part > BOILERPLATE:
            return f"{part:.0%} of the text stands on most pages"
    return ""


def _title_fault(found: list[Any], pages: list[Sample]) -> str:
    """Agreement forgives a site's name behind a headline; a kicker or a form cut short on most
    pages it must not."""
    sure = [
        (f, s.labels.title) for f, s in zip(found, pages, strict=True) if f and s.labels.title_sure
    ]
    whole = sum(same_words(f, label or "") for f, label in sure)
    if len(sure) >= LEAST_LABELS and whole < WHOLE * len(sure):
        return f"more or less than the headline on {len(sure) - whole} of {len(sure)} pages"
    return ""


def _told_apart(labels: list[Any]) -> float:
    """Share of pages whose label is no other page's, half of it at least: a story may stand
    under two templates."""
    keys = [_key(label) for label in labels if label]
    return max(0.5, share(len(set(keys)), len(keys), 1.0))


def _common_share(texts: list[str], common: set[str]) -> float:
    total = sum(len(t) for t in texts) or 1
    return sum(len(p) for t in texts for p in t.split("\n\n") if norm(p) in common) / total


def _content_agrees(value: Any, label: Any) -> bool:
    ratio = len(str(value)) / max(1, len(label))
    return (
        LENGTH[0] <= ratio <= LENGTH[1]
        and f1(Counter(words(str(value))), Counter(words(label))) >= CONTENT_F1
    )


def _is_label(value: Any, sample: Sample) -> bool:
    return value_agrees("content", value, sample.labels.content)


_AGREES: dict[str, Callable[[Any, Any], bool]] = {
    "title": title_agrees,
    "published": date_read,
    "authors": authors_agree,
    "content": _content_agrees,
}


def value_agrees(name: str, value: Any, label: Any) -> bool:
    """Whether one field's value is what the label says."""
    return bool(value and label and _AGREES[name](value, label))


def _date_shape(value: Any) -> bool:
    # Dates after the fetch are refused by dates.parse, which knows when that was.
    return isinstance(value, datetime) and value.year >= 1995


def _authors_shape(value: Any) -> bool:
    return (
        isinstance(value, list) and 0 < len(value) <= 8 and all(map(_name_shape, map(str, value)))
    )


def _name_shape(name: str) -> bool:
    letters = sum(map(str.isalpha, name))
    is_of_letters = letters >= 0.7 * len(name.replace(" ", ""))
    return 2 <= len(name) <= 80 and is_of_letters and "://" not in name


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "title": lambda v: 8 <= len(str(v)) <= 250,
    "published": _date_shape,
    "authors": _authors_shape,
    "content": lambda v: len(str(v)) >= 200,
}


def _key(value: Any) -> str:
    return str(value.date()) if isinstance(value, datetime) else norm(str(value))


def _show(value: Any) -> str:
    return str(value)[:60].replace("\n", " ") if value else "nothing"


def agrees_with(article: Article, values: dict[str, FieldValue]) -> bool:
    """Shadow: would this set have stored what was stored? Fields that the article
    lacks do not count."""
    for name in JUDGED_FIELDS:
        stored = getattr(article, name)
        if not stored:
            continue
        value = values.get(name, _NOTHING).value
        if value and not _AGREES[name](value, stored):
            return False
        if not value and name in REQUIRED:
            return False  # any other field the set may leave to the page's metadata
    return True
