"""What reading a set finds; and that the shipped ones, and what README says of them, are as told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets.lint import RULES, lint

ROOT = Path(__file__).parents[3]


def a_set(
    *, lead: list[str], root: list[str], exclude: list[str], title: str = "h1.headline", when: str = ""
) -> SelectorSet:  # fmt: skip
    fields: dict[str, Any] = {
        "title": [{"css": title}],
        "summary": [{"css": css} for css in lead],
        "content": {"root": root, "exclude": exclude},
    }
    variant = {"template": "article", "fields": fields, **({"when": when} if when else {})}
    return SelectorSet.from_dict({"domain": "a.vn", "version": 1, "variants": [variant]})


GOOD: dict[str, Any] = {
    "lead": [".news-sapo"], "root": [".news-sapo, div.text"], "exclude": ["figure"]
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, set()),
        (
            {"lead": ["p.detail-sapo"], "root": ["p.detail-sapo, div.text"]},
            {("tag", "p.detail-sapo")},
        ),
        ({"lead": ["h2#sapo"], "root": ["h2#sapo, div.text"]}, {("tag", "h2#sapo")}),
        (
            {
                "lead": ["h2.detail-sapo, p.detail-sapo"],
                "root": ["h2.detail-sapo, p.detail-sapo, div.text"],
            },
            set(),
        ),
        ({"lead": ["p.sapo"], "root": ["p.sapo, div.text"]}, set()),  # teasers may be .sapo too
        ({"lead": [".sapo"], "root": [".sapo, div.text"]}, {("teasers", ".sapo")}),
        (
            {"lead": [".sapo"], "root": ["h2.detail-sapo, div.text"]},
            {("tag", "h2.detail-sapo"), ("lead", ".sapo")},
        ),
        (
            {"lead": [".detail-sapo", ".descArt"], "root": [".detail-sapo, div.text"]},
            {("lead", ".descArt")},
        ),
        (
            {
                "lead": [".detail-sapo", ".detail-sapo[role=doc]"],
                "root": [".detail-sapo, div.text"],
            },
            set(),  # the class alone finds what is narrower
        ),
        ({"lead": [".sapo"], "root": ["div.text"]}, set()),  # it may stand in the text
        (
            {"lead": [".sapo"], "root": ["div.text"], "exclude": ["figure", ".sapo"]},
            {("lead-excluded", ".sapo")},
        ),
        ({"exclude": [".related"]}, {("caption", "")}),
        ({"exclude": [".PhotoCMS_Caption"]}, set()),
        ({"title": "div.top > h1:first-child"}, {("position", "div.top > h1:first-child")}),
        ({"title": "h1.sc-bdvvtL"}, {("generated", "h1.sc-bdvvtL")}),
        ({"when": "div.col-md-8"}, {("generated", "div.col-md-8")}),
        ({"when": ".headline .col-md-8"}, set()),  # a part of what has a name
        ({"when": ".headline .sc-bdvvtL"}, {("generated", ".headline .sc-bdvvtL")}),
        ({"when": ".row .col-md-8"}, {("generated", ".row .col-md-8")}),
        ({"root": ["#text_83921, .news-sapo"]}, {("generated", "#text_83921")}),
    ],
)  # fmt: skip
def test_findings(changed: dict[str, Any], told: set[tuple[str, str]]) -> None:
    found = lint(a_set(**{**GOOD, **changed}))
    if "#text" in str(changed):  # the whole selector of the root is named
        assert {(f.rule, f.selector.split(",")[0]) for f in found} == told
    else:
        assert {(f.rule, f.selector) for f in found} == told
    assert all(f.rule in RULES and f.domain == "a.vn" for f in found)


def shipped() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((ROOT / "selectors").glob("*.json"))]


def test_shipped_sets_have_no_findings() -> None:
    found = [finding for doc in shipped() for finding in lint(SelectorSet.from_dict(doc))]
    assert len(shipped()) > 30
    assert found == []


def test_readme_says_how_many_sets_are_proved() -> None:
    """Each site of sites.json has a set or is named as having none."""
    states: dict[str, list[str]] = {}
    for doc in shipped():
        states.setdefault(doc["state"], []).append(doc["domain"])
    assert set(states) == {"active", "probation"}
    text = " ".join((ROOT / "README.md").read_text().split())
    told = re.search(
        r"selector sets of ([^;]*?) are proved on a stored page and active, (\d+) more start in"
        r" probation, (\S+) has none",
        text,
    )
    assert told is not None, "README says it in other words: say it here too"
    assert sorted(re.findall(r"[a-z0-9.]+\.[a-z]+", told[1])) == sorted(states["active"])
    assert int(told[2]) == len(states["probation"])
    sites = {site["id"] for site in json.loads((ROOT / "sites.json").read_text())["sites"]}
    assert sites - {doc["domain"] for doc in shipped()} == {told[3]}
