"""The gate: a set is executed on stored pages, held-out ones twice as heavy, and judged. Pure.

Nothing that a rule or a model proposed is used on its word. A field passes when it is found (coverage),
agrees with the page's witnesses, differs between pages as such a field must, has the shape of its kind
and is not boilerplate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from statistics import median
from typing import Any

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import Article, FieldValue
from newscrawler.selectorstore.content import boilerplate, content_label
from newscrawler.selectorstore.reading import read_all, root_chars
from newscrawler.selectorstore.samples import (
    AGREE,
    WHOLE,
    Sample,
    authors_agree,
    dates_agree,
    f1,
    norm,
    same_words,
    title_agrees,
    words,
)

COVERAGE = 0.9
#: Fewer pages with a witness than this prove no agreement.
LEAST_WITNESSES = 4
CONTENT_F1 = 0.9
LENGTH = (0.7, 1.25)  # of the label's length
BOILERPLATE = 0.05
DENSITY = 0.7  # of the text below the content root, at least
HELD_OUT_WEIGHT = 2
REQUIRED = ("title", "content")
FIELDS = ("title", "published", "authors", "content")
#: The reason of a field that a set leaves to the page's own statements.
NOT_GIVEN = "no selector"


@dataclass
class FieldReport:
    """Shares over the pages, weighted. ``agree`` None: too few pages have a witness."""

    passed: bool
    coverage: float
    agree: float | None
    vary: float
    reason: str = ""
    examples: list[str] = field(default_factory=list)  # "page: found | expected", the first few that are wrong


@dataclass
class Report:
    passed: bool
    fields: dict[str, FieldReport]
    pages: int
    held_out: int

    @property
    def failed(self) -> dict[str, str]:
        return {name: report.reason for name, report in self.fields.items() if not report.passed}

    def metrics(self) -> dict[str, Any]:
        """For provenance: small and plain."""
        rows = {n: {k: v for k, v in asdict(r).items() if k != "examples"} for n, r in self.fields.items()}
        return {"pages": self.pages, "held_out": self.held_out, "fields": rows}


def judge(selectors: SelectorSet, induced: list[Sample], held_out: list[Sample]) -> Report:
    """Passed = title and content pass, here and on the held-out pages alone, and no given field is wrong."""
    pages = [*induced, *held_out]
    values = [read_all(s, selectors) for s in pages]
    weights = [1] * len(induced) + [HELD_OUT_WEIGHT] * len(held_out)
    common = boilerplate(pages)
    pages = [replace(s, labels=replace(s.labels, content=content_label(s, common))) for s in pages]
    given = {name for v in selectors.variants for name, c in v.fields.items() if c} | {"content"}
    fields = {}
    for name in FIELDS:
        if name not in given:
            fields[name] = FieldReport(False, 0.0, None, 0.0, NOT_GIVEN)
            continue
        report = _judge_field(name, pages, values, weights, common)
        if report.passed and len(held_out) >= 2:  # the induced pages must not outvote those it never saw
            start = len(induced)
            unseen = _judge_field(name, pages[start:], values[start:], [1] * len(held_out), common, few=True)
            if not unseen.passed:
                report.passed, report.reason = False, f"on the held-out pages: {unseen.reason}"
        fields[name] = report
    density = _density(selectors, pages, values)
    if density < DENSITY and fields["content"].passed:
        fields["content"].passed = False
        fields["content"].reason = f"only {density:.0%} of the text below the root is the article's: too wide"
    passed = all(fields[name].passed for name in REQUIRED)
    return Report(passed, fields, len(pages), len(held_out))


def _density(selectors: SelectorSet, pages: list[Sample], values: list[dict[str, FieldValue]]) -> float:
    """Median share of the text below the content root that is kept; 1.0 where nothing is found."""
    shares = [
        min(1.0, len(v["content"].value) / max(1, root_chars(s, selectors)))
        for s, v in zip(pages, values, strict=True)
        if "content" in v
    ]
    return median(shares) if shares else 1.0


def _judge_field(
    name: str,
    pages: list[Sample],
    values: list[dict[str, FieldValue]],
    weights: list[int],
    common: set[str],
    few: bool = False,
) -> FieldReport:
    found = [v[name].value if name in v else None for v in values]
    labels = [getattr(s.labels, name) for s in pages]
    # A page whose witnesses know no author or date may well have none: only title and content must be everywhere.
    expected = [bool(label) or name in REQUIRED for label in labels]
    asked = sum(w for w, e in zip(weights, expected, strict=True) if e)
    coverage = sum(w for w, e, f in zip(weights, expected, found, strict=True) if e and f) / asked if asked else 1.0
    witnessed = [i for i, label in enumerate(labels) if label]
    right = {i for i in witnessed if found[i] and _AGREES[name](found[i], labels[i])}
    weight = sum(weights[i] for i in witnessed)
    enough = len(witnessed) >= (1 if few else LEAST_WITNESSES)
    agree = sum(weights[i] for i in right) / weight if enough and weight else None
    present = [f for f in found if f]
    vary = len({_key(f) for f in present}) / len(present) if present else 0.0
    report = FieldReport(True, round(coverage, 3), None if agree is None else round(agree, 3), round(vary, 3))
    wrong = [i for i in witnessed if i not in right]
    report.examples = [f"{pages[i].url}: {_show(found[i])} | {_show(labels[i])}" for i in wrong[:3]]
    report.reason = _fault(name, report, found, pages, common, few)
    report.passed = not report.reason
    return report


def _fault(name: str, report: FieldReport, found: list[Any], pages: list[Sample], common: set[str], few: bool) -> str:
    """Why the field does not pass, '' when it does."""
    if report.coverage < COVERAGE:
        return f"found on {report.coverage:.0%} of the pages that have it"
    if report.agree is None:
        return "no witness on enough pages, and one proposer alone does not count"
    if report.agree < AGREE:
        return f"agrees with the page's own witnesses on {report.agree:.0%}"
    present = [f for f in found if f]
    if name in REQUIRED and not few and report.vary < 0.95 * _told_apart(name, pages):
        return "the same on several pages: boilerplate"
    days = {str(s.labels.published.date()) for s in pages if s.labels.published}
    # The newest pages of a site are of two or three days: compared with what they state, not with their number.
    if name == "published" and len(days) > 2 and len({_key(f) for f in present}) < len(days) / 2:
        return "the same date on most pages"
    if name == "authors" and len(present) >= 8 and len({_key(f) for f in present}) == 1:
        # One who writes alone is found by the witnesses as well; an account that files everything is no author.
        return "the same name on every page"
    shape = _SHAPES[name]
    # A page whose own witnesses say no more is a short one: one of four held-out pages is enough to fail a set.
    short = {id(f) for f, s in zip(found, pages, strict=True) if name == "content" and f and _is_label(f, s)}
    bad = sum(not shape(f) for f in present if id(f) not in short)
    if bad > len(present) * (1 - COVERAGE):
        return f"{bad} of {len(present)} values have not the shape of this field"
    if name == "title":
        # Agreement forgives a site's name behind a headline; a kicker or a form cut short on most pages it must not.
        sure = [(f, s.labels.title) for f, s in zip(found, pages, strict=True) if f and s.labels.title_sure]
        whole = sum(same_words(f, label or "") for f, label in sure)
        if len(sure) >= LEAST_WITNESSES and whole < WHOLE * len(sure):
            return f"more or less than the headline on {len(sure) - whole} of {len(sure)} pages"
    if name == "content":
        share = _common_share([str(f) for f in present], common)
        if share > BOILERPLATE:
            return f"{share:.0%} of the text stands on most pages"
    return ""


def _told_apart(name: str, pages: list[Sample]) -> float:
    """Share of pages whose label is no other page's, half of it at least: a story may stand under two templates."""
    labels = [_key(getattr(s.labels, name)) for s in pages if getattr(s.labels, name)]
    return max(0.5, len(set(labels)) / len(labels)) if labels else 1.0


def _common_share(texts: list[str], common: set[str]) -> float:
    total = sum(len(t) for t in texts) or 1
    return sum(len(p) for t in texts for p in t.split("\n\n") if norm(p) in common) / total


def _content_agrees(value: Any, label: Any) -> bool:
    ratio = len(str(value)) / max(1, len(label))
    return LENGTH[0] <= ratio <= LENGTH[1] and f1(Counter(words(str(value))), Counter(words(label))) >= CONTENT_F1


def _is_label(value: Any, sample: Sample) -> bool:
    return value_agrees("content", value, sample.labels.content)


_AGREES: dict[str, Callable[[Any, Any], bool]] = {
    "title": title_agrees,
    "published": dates_agree,
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
    def is_name(name: str) -> bool:
        letters = sum(c.isalpha() for c in name)
        return 2 <= len(name) <= 80 and letters >= 0.7 * len(name.replace(" ", "")) and "://" not in name

    return isinstance(value, list) and 0 < len(value) <= 8 and all(is_name(str(n)) for n in value)


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
    """Shadow: would this set have stored what was stored? Fields that the article lacks do not count."""
    checks = {
        "title": article.title,
        "content": article.content,
        "published": article.published,
        "authors": article.authors,
    }
    for name, stored in checks.items():
        if not stored:
            continue
        value = values[name].value if name in values else None
        if not value:
            if name in REQUIRED:
                return False
            continue  # the set leaves the field to the witnesses
        if not _AGREES[name](value, stored):
            return False
    return True
