"""The licence of every package that is installed with the crawler allows BSD-licensed use of it."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

#: Licences that let a BSD-licensed program depend on a package. MPL-2.0 binds changes of its own
#: files only; of a choice of licences ("A OR B") one is enough.
ALLOWED = (
    r"MIT|BSD|Apache|PSF|Python Software Foundation|ISC|0BSD|CC0|Zlib|Unlicense|ZPL|CNRI|any-OSI"
    r"|MPL-2\.0|Mozilla Public License 2\.0|MPL-1\.1|Artistic"
)


def requirements() -> list[Requirement]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line.strip() and line.lstrip()[0] not in "#-"]


def stated_licence(name: str) -> str:
    metadata = importlib.metadata.distribution(name).metadata
    classifiers = metadata.get_all("Classifier") or []
    return (
        metadata.get("License-Expression")
        or " OR ".join(c.split("::")[-1].strip() for c in classifiers if c.startswith("License"))
        or (metadata.get("License") or "")[:80]
    )


def installed_closure() -> dict[str, str]:
    """Normalised name -> stated licence, of every run requirement and what it needs in turn."""
    found: dict[str, str] = {}
    waiting = [r for r in requirements() if r.marker is None or r.marker.evaluate()]
    while waiting:
        name = waiting.pop().name
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        found[key] = stated_licence(name)
        for text in importlib.metadata.distribution(name).requires or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed)
    return found


def is_allowed(licence: str) -> bool:
    choices = re.split(r"\bOR\b", licence)
    return any(
        all(re.search(ALLOWED, part) for part in re.split(r"\bAND\b", choice)) for choice in choices
    )


def test_every_run_dependency_has_a_licence_that_allows_ours():
    found = installed_closure()
    assert len(found) > 50  # the requirements were really walked
    assert {name: text for name, text in found.items() if not is_allowed(text)} == {}


def test_a_copyleft_licence_would_be_refused():
    assert not is_allowed("GPL-3.0-only")
    assert not is_allowed("MIT AND GPL-3.0-only")
    assert is_allowed("MPL-2.0 AND (Apache-2.0 OR MIT)")
