"""Figures of many pages against gold data: halves, intervals, comparison, and floors they
must not fall under. Pure."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evaluation import scorer

if TYPE_CHECKING:
    from newscrawler.extraction.extract import Extraction
    from newscrawler.extraction.selectors import SelectorSet

#: What `--by` groups after, beside "all". ``split``: half of the sites, by a hash of
#: the site's name.
GROUPS = ("lang", "source", "site", "gold_kind", "split")
#: The figures of a table row, in its order; pages of each field are in the JSON form. ``authors_*``
#: and ``four`` follow the gold data, whose authors are all whom the page credits, agencies and
#: desks too: stored authors and stored credits together. ``people_*``: the stored authors alone,
#: against the same gold.
COLUMNS = (
    "title", "day", "minute", "authors_ok", "authors_exact", "authors_f1", "people_ok",
    "people_exact",
    "content_precision", "content_recall", "content_f1", "content_mean_f1", "content_ge90", "with",
    "without", "four",
    "people_four",
)  # fmt: skip
#: Columns whose 95 % interval is worth printing.
SHOWN_INTERVALS = (
    "title", "day", "minute", "authors_ok", "people_ok", "content_f1", "content_ge90", "with",
    "without", "four",
    "people_four",
)  # fmt: skip
#: A folder with this file is a sealed set (:mod:`evaluation.sealed`): no page of it is named.
SEAL = "SEALED"
_RESAMPLES = 400


def half(site: str) -> str:
    """ "dev" (rules are made with these sites) or "held" (they are only measured)."""
    return "held" if hashlib.sha256(site.encode()).digest()[0] % 2 else "dev"


def fold(site: str, count: int) -> int:
    """1..``count``: which part of the sites a site is in, by a hash of its name that
    :func:`half` does not use."""
    return int.from_bytes(hashlib.sha256(site.encode()).digest()[1:5]) % count + 1


def folds(
    gold: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    count: int,
    before: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Figures of each part of the sites, their least, and with a run of ``before`` what
    each part has won since.

    Rules that were made on some sites and hold for these alone show as parts
    that win nothing, or lose.
    """
    out: dict[str, dict[str, Any]] = {}
    won: dict[str, dict[str, Any]] = {}
    for number in range(1, count + 1):
        part = [g for g in gold if fold(str(g.get("site", "?")), count) == number]
        if not part:
            continue
        name = f"{number}/{count}"
        out[name] = figures(part, lines)["all"]
        if before is not None:
            won[f"won {name}"] = _difference(out[name], figures(part, before)["all"])
    if out:
        least = {column: _least(figure[column] for figure in out.values()) for column in COLUMNS}
        out["least"] = {**next(iter(out.values())), **least, "pages": len(gold)}
    return out | won


def _difference(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The figures of ``new`` less those of ``old``; None where one of them has none."""
    out = dict(new)
    for column in COLUMNS:
        is_known = new[column] is not None and old[column] is not None
        out[column] = new[column] - old[column] if is_known else None
    return out


def _least(figures_: Iterable[float | None]) -> float | None:
    return min((figure for figure in figures_ if figure is not None), default=None)


def predict(
    ident: str, body: bytes, url: str, selectors: SelectorSet | None = None
) -> dict[str, Any]:
    """A prediction line; ``reason`` when the page is not an article."""
    # Extraction, which no other command needs at its start.
    from newscrawler.extraction.document import Document
    from newscrawler.extraction.extract import PageContext, extract, prediction

    found = extract(Document(body, url), PageContext(), selectors)
    line: dict[str, Any] = {
        "id": ident,
        **prediction(found),
        "sure": _sure(found),
        "contested": found.disagreements,
    }
    if selectors is not None:
        line["set"] = selectors.label
    if found.reason:
        line["reason"] = found.reason
    return line


def _sure(found: Extraction) -> dict[str, float]:
    """Confidence of the fields that are scored by right and wrong; of authors that of the people,
    else of the credits."""
    named = found.authors if found.authors.value else found.credits
    return {
        name: round(value.confidence, 3)
        for name, value in (
            ("title", found.title),
            ("published", found.published),
            ("authors", named),
            ("content", found.content),
        )
        if value.value
    }


#: Lower edges of the bands of confidence in a calibration.
BANDS = (0.0, 0.3, 0.5, 0.65, 0.8, 0.9)


def band_edges() -> list[tuple[float, float]]:
    """``(from, below)`` of each band; 1 is in the last one."""
    return list(pairwise((*BANDS, 1.01)))


def calibration(
    gold: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Per field and band of confidence: pages, how many are wrong, and the share. ``band``:
    "nothing" where the field was not found, else its lower edge; "contested" are pages of any band
    that another good source on the page contradicts."""
    of_id = {line["id"]: line for line in lines}
    counts: dict[tuple[str, str], list[int]] = {}
    for g in gold:
        line = of_id.get(g["id"], {})
        for name, is_right in verdicts_by_field(score(g, line)).items():
            for band in _bands(name, line):
                pages, wrong = counts.get((name, band), [0, 0])
                counts[name, band] = [pages + 1, wrong + (not is_right)]
    order = [*map(str, BANDS), "nothing", "contested"]
    rows = sorted(counts.items(), key=lambda item: (item[0][0], order.index(item[0][1])))
    return [
        {
            "field": name,
            "band": band,
            "pages": pages,
            "wrong": wrong,
            "share_wrong": round(wrong / pages, 3),
        }
        for (name, band), (pages, wrong) in rows
    ]


def verdicts_by_field(scored: Mapping[str, Any]) -> dict[str, bool]:
    """Field with a confidence -> right; a publication is right by its day."""
    found = verdicts(scored)
    return {name: found[verdict] for name, verdict in _VERDICT_OF.items() if verdict in found}


_VERDICT_OF = {"title": "title", "published": "day", "authors": "authors", "content": "content"}


def reliability(
    gold: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Per field: values with a confidence, its mean, the share that is right, and the expected
    error of the confidence."""
    of_id = {line["id"]: line for line in lines}
    points: dict[str, list[tuple[float, bool]]] = {}
    for g in gold:
        line = of_id.get(g["id"], {})
        sure = line.get("sure") or {}
        for name, is_right in verdicts_by_field(score(g, line)).items():
            if name in sure:
                points.setdefault(name, []).append((sure[name], is_right))
    rows = []
    for name, some in sorted(points.items()):
        said, was = [s for s, _ in some], [r for _, r in some]
        rows.append(
            {
                "field": name,
                "pages": len(some),
                "sure": round(sum(said) / len(said), 3),
                "right": round(sum(was) / len(was), 3),
                "expected_error": round(expected_error(said, was), 3),
            }
        )
    return rows


def expected_error(sure: Sequence[float], right: Sequence[bool], bands: int = 10) -> float:
    """Mean distance of how sure a band is and how often it is right, weighted by its pages."""
    total = 0.0
    for band in range(bands):
        inside = [i for i, s in enumerate(sure) if min(int(s * bands), bands - 1) == band]
        if inside:
            said = sum(sure[i] for i in inside) / len(inside)
            was = sum(right[i] for i in inside) / len(inside)
            total += abs(said - was) * len(inside) / len(sure)
    return total


def _bands(name: str, line: Mapping[str, Any]) -> Iterator[str]:
    sure = (line.get("sure") or {}).get(name)
    yield "nothing" if sure is None else str(max(edge for edge in BANDS if edge <= sure))
    if name in (line.get("contested") or ()):
        yield "contested"


def score(gold: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
    """:func:`scoring.score_page`, and the same with the people alone as authors (a line
    without ``people``: all)."""
    out = scorer.score_page(gold, line)
    if "authors" in out:
        alone = scorer.score_page(
            gold, {**line, "authors": line.get("people", line.get("authors"))}
        )
        out["people"] = alone["authors"]
        if "four" in out:
            out["people_four"] = alone["four"]
    return out


def figures(
    gold: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]], by: str | None = None
) -> dict[str, dict[str, Any]]:
    """``{"all": summary, group: summary, ...}``, largest group first."""
    of_id = {line["id"]: line for line in lines}
    scored = [(g, score(g, of_id.get(g["id"], {}))) for g in gold]
    result = {"all": summarise([s for _, s in scored])}
    if by:
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for g, s in scored:
            name = half(str(g.get("site", "?"))) if by == "split" else str(g.get(by, "?"))
            groups.setdefault(name, []).append(s)
        for name in sorted(groups, key=lambda n: (-len(groups[n]), n)):
            result[name] = summarise(groups[name])
    return result


def summarise(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """:func:`scoring.summarise` and the ``people_*`` columns."""
    out: dict[str, Any] = dict(scorer.summarise(scores))
    people = [s["people"] for s in scores if "people" in s]
    fours = [s["people_four"] for s in scores if "people_four" in s]
    out["people_ok"] = sum(c["ok"] for c in people) / len(people) if people else None
    out["people_exact"] = sum(c["exact"] for c in people) / len(people) if people else None
    out["people_four"] = sum(map(bool, fours)) / len(fours) if fours else None
    return out


def intervals(
    gold: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]], seed: int = 1
) -> dict[str, tuple[float, float]]:
    """Column -> 95 % bootstrap interval. Whole sites are drawn: pages of one template
    are not independent."""
    of_id = {line["id"]: line for line in lines}
    of_site: dict[str, list[Mapping[str, Any]]] = {}
    for g in gold:
        of_site.setdefault(str(g.get("site") or g["id"]), []).append(
            score(g, of_id.get(g["id"], {}))
        )
    sites, draw = list(of_site.values()), random.Random(seed)
    found: dict[str, list[float]] = {}
    for _ in range(_RESAMPLES):
        summary = summarise([s for site in draw.choices(sites, k=len(sites)) for s in site])
        for name in COLUMNS:
            if summary[name] is not None:
                found.setdefault(name, []).append(summary[name])
    edge = max(1, _RESAMPLES * 25 // 1000)
    return {name: (sorted(v)[edge - 1], sorted(v)[-edge]) for name, v in found.items()}


#: What is right or wrong on one page, by name.
VERDICTS = ("title", "day", "minute", "authors", "people", "content", "four", "people_four")


def verdicts(scored: Mapping[str, Any]) -> dict[str, bool]:
    """Field -> right, for the fields that the page's gold has; content is right from F1 0.9."""
    return {name: _is_right(name, scored[name]) for name in VERDICTS if name in scored}


def _is_right(name: str, score: Any) -> bool:
    if name in ("authors", "people"):
        score = score["ok"]
    elif name == "content":
        score = score[2] >= 0.9
    right: bool = score
    return right


def changes(
    gold: Sequence[Mapping[str, Any]],
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
) -> dict[str, dict[str, list[str]]]:
    """Field -> ids of pages that became right (``won``) and wrong (``lost``) from one
    stored run to another."""
    old, new = {x["id"]: x for x in before}, {x["id"]: x for x in after}
    out: dict[str, dict[str, list[str]]] = {}
    for g in gold:
        a, b = (verdicts(score(g, run.get(g["id"], {}))) for run in (old, new))
        for name in (name for name, was in a.items() if was != b[name]):
            found = out.setdefault(name, {"won": [], "lost": []})
            found["won" if b[name] else "lost"].append(g["id"])
    return out


def worst(
    gold: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]], count: int
) -> list[dict[str, Any]]:
    """The pages with most fields wrong, and per wrong field what was wanted and what was found."""
    of_id = {line["id"]: line for line in lines}
    rows: list[tuple[float, dict[str, Any]]] = []
    for g in gold:
        line = of_id.get(g["id"], {})
        scored = score(g, line)
        right = verdicts(scored)
        wrong = [n for n in right if n in ("title", "day", "authors", "content") and not right[n]]
        if not wrong:
            continue
        f1 = scored["content"][2] if "content" in scored else 1.0
        row = {
            "id": g["id"],
            "site": g.get("site"),
            "wrong": ",".join(wrong),
            "why": "; ".join(filter(None, _reasons(wrong, g, line, f1))),
        }
        rows.append((len(wrong) + (1 - f1), row))
    rows.sort(key=lambda item: (-item[0], item[1]["id"]))
    return [row for _, row in rows[:count]]


def _reasons(
    wrong: Sequence[str], gold: Mapping[str, Any], line: Mapping[str, Any], f1: float
) -> Iterator[str]:
    if line.get("reason"):
        yield f"not an article: {line['reason']}"
    for name in wrong:
        yield _reason(name, gold, line, f1)


def _reason(name: str, gold: Mapping[str, Any], line: Mapping[str, Any], f1: float) -> str:
    if name == "content":
        return (
            f"content F1 {f1:.2f}, {len(line.get('content') or '')} characters for"
            f" {len(gold['content'])}"
        )
    key = "published" if name == "day" else name
    wanted, found = gold.get(key), line.get(key)
    return f"{name} {_short(found)} for {_short(wanted)}"


def _short(value: Any) -> str:
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    if not shown:
        return "nothing"
    return repr(shown if len(shown) < 60 else shown[:57] + "…")


#: What ``--floors`` may bound from above: the expected error of the field that is worst calibrated.
CEILINGS = ("expected_error",)


def below_floors(summary: Mapping[str, Any], floors: Mapping[str, float]) -> list[str]:
    """A line for every figure that is under its floor, above its ceiling or missing."""
    out = []
    for name, floor in floors.items():
        value = summary.get(name)
        if value is not None and name in CEILINGS:
            if value > floor:
                out.append(f"{name} {value:.4f} is above {floor:.4f}")
            continue
        if value is None or value < floor:
            out.append(
                f"{name} {'missing' if value is None else format(value, '.4f')} is under its floor"
                f" {floor:.4f}"
            )
    return out
