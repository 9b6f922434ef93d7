"""Figures of many pages against gold data, and the floors that they must not fall under. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from newscrawler.extraction import scoring
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import PageContext, extract, prediction

#: What `--by` groups after, beside "all".
GROUPS = ("lang", "source", "site", "gold_kind")
#: The figures of a table row, in its order; pages of each field are in the JSON form.
COLUMNS = (
    "title", "day", "minute", "authors_ok", "authors_exact", "authors_f1", "content_precision", "content_recall",
    "content_f1", "content_mean_f1", "content_ge90", "with", "without", "four",
)  # fmt: skip


def predict(ident: str, body: bytes, url: str) -> dict[str, Any]:
    """A prediction line; with ``reason`` when the page is not an article."""
    found = extract(Document(body, url), PageContext())
    line: dict[str, Any] = {"id": ident, **prediction(found)}
    if found.reason:
        line["reason"] = found.reason
    return line


def figures(
    gold: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]], by: str | None = None
) -> dict[str, dict[str, Any]]:
    """``{"all": summary, group: summary, ...}``, largest group first."""
    of_id = {line["id"]: line for line in lines}
    scored = [(g, scoring.score_page(g, of_id.get(g["id"], {}))) for g in gold]
    result = {"all": scoring.summarise([s for _, s in scored])}
    if by:
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for g, s in scored:
            groups.setdefault(str(g.get(by, "?")), []).append(s)
        for name in sorted(groups, key=lambda n: (-len(groups[n]), n)):
            result[name] = scoring.summarise(groups[name])
    return result


def below_floors(summary: Mapping[str, Any], floors: Mapping[str, float]) -> list[str]:
    """A line for every figure that is under its floor or missing."""
    out = []
    for name, floor in floors.items():
        value = summary.get(name)
        if value is None or value < floor:
            out.append(f"{name} {'missing' if value is None else format(value, '.4f')} is under its floor {floor:.4f}")
    return out
