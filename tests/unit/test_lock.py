"""requirements.lock is what requirements.txt asks for, each file with its hash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from newscrawler.utils.optional import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"[-_.]+")


def pins(name: str) -> dict[str, str]:
    """Package -> version of each line ``name==version``."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = (re.match(r"([\w.-]+)(?:\[[\w,]+\])?==([^\s;\\]+)", line) for line in lines)
    return {NAME.sub("-", match[1]).lower(): match[2] for match in found if match}


def test_each_pin_stands_in_the_lock_with_its_version() -> None:
    asked, locked = pins("requirements.txt"), pins("requirements.lock")
    assert len(asked) > 40
    assert {name: locked.get(name) for name in asked} == asked


@pytest.mark.parametrize("extra", ["render", "kafka", "s3", "parquet"])
def test_an_extra_has_hashes_and_the_versions_of_the_lock(extra: str) -> None:
    asked, locked = pins(f"requirements-{extra}.txt"), pins(f"requirements-{extra}.lock")
    assert asked and {name: locked.get(name) for name in asked} == asked
    text = (ROOT / f"requirements-{extra}.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[\w-])", text, flags=re.M)[1:]
    assert len(entries) == len(locked) and "://" not in text
    assert not [entry for entry in entries if "--hash=sha256:" not in entry]
    main = pins("requirements.lock")
    both = {name: version for name, version in locked.items() if name in main}
    assert both == {name: main[name] for name in both}, "one would replace the other's"


def test_what_an_extra_is_asked_for_is_what_its_command_installs() -> None:
    for extra, (_, asked) in EXTRAS.items():
        name, _, version = asked.partition("==")
        assert pins(f"requirements-{extra}.txt").get(name) == version, extra


def test_each_package_of_the_lock_has_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[\w-])", text, flags=re.M)[1:]
    assert len(entries) == len(re.findall(r"^\S+==", text, flags=re.M)) > 100
    assert not [entry for entry in entries if "--hash=sha256:" not in entry]
    assert "://" not in text, "an address of a registry"
