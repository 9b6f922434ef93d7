"""The code says the words of docs/glossary.md, not those that it had before.

Only old words that are no English of their own are looked for: "lines", "search" or "server" are
old names of modules and good words all the same.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Old word as a pattern -> how docs/glossary.md has it.
OLD = {
    r"clutter\w*": "clutter",
    r"contested": "contested",
    r"twins?": "twins",
    r"neardup\w*": "neardup",
    r"pump\w*": "pump",
    r"suspects?": "suspects",
    r"witness(?:es)?": "witnesses",
    r"drift_?desk|direct_?desk": "DriftDesk",
    r"direct_?(?:ext|reader|queue)": "DirectReader",
    r"(?:drift|generation|direct)_ext": "drift_ext",
    r"lied": "lied",
    r"doubts": "doubts",
    r"asides": "asides",
    r"sapo": "sapo",
    r"wiring": "wiring",
    r"logformat": "logformat",
    r"selectorstore/": "selectorstore",
    r"links_digest": "links_digest",
    r"hand(?:s|ed)?[ _]out": "hand out",
    r"(?-i:desk)(?=\s*=|\.[a-z])": "desk",
    r"(?-i:Letter)(?=[(\]:,)])": "Letter",
}
#: Words that several classes were called by; now one at most.
AMBIGUOUS = ("Limits", "Page", "Place", "Reader", "State")
#: File -> the old words that it may say, and why.
STILL = {
    "api/access.py": ("hand out", "tokens, not leases"),
    "api/deps.py": ("hand out", "addresses, not leases"),
    "api/follow_page.py": ("hand out", "tokens, not leases"),
    "api/tokens.py": ("hand out", "tokens, not leases"),
    "commands/token.py": ("hand out", "tokens, not leases"),
    "handlers.py": ("hand out", "a request of Scrapy's engine"),
    "library/__init__.py": ("hand out", "articles of the public API"),
    "commands/store.py": ("twins", "a key of JSON that others read"),
    "crawl/day_report.py": ("twins", "a key of JSON that others read"),
    "fleet/history.py": ("twins", "rows that an earlier version wrote"),
    "discovery/link_classes.py": ("twins", "fields of rules in Redis"),
    "metrics.py": ("twins contested pump suspects", "names of stats that others read"),
    "frontier/lua/_offer.lua": ("lied", "a stat that others read"),
    "frontier/state_text.py": ("lied", "a stat that others read"),
    "selectorsets/lint.py": ("sapo", "class names of Vietnamese papers"),
    "extraction/calibration.py": ("contested", "a key of calibration.json"),
}


@cache
def files() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "newscrawler"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    wanted = [name for name in listed.stdout.split() if name.endswith((".py", ".lua", ".html"))]
    return {
        name.removeprefix("newscrawler/"): (ROOT / name).read_text(encoding="utf-8")
        for name in wanted
        if (ROOT / name).is_file()
    }


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_class_of_this_name_is_one_thing(name: str) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert f"{name} (" in glossary, "the glossary says what to say instead"
    defined = re.compile(rf"^class _?{name}\b", re.M)
    assert sum(len(defined.findall(text)) for text in files().values()) <= 1


@pytest.mark.parametrize(("pattern", "word"), OLD.items())
def test_an_old_word_is_in_the_glossary_alone(pattern: str, word: str) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert word in glossary, "the glossary says what to say instead"
    assert len(files()) > 300, "the search found next to nothing"
    old = re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", re.I)
    found = {name for name, text in files().items() if old.search(text)}
    allowed = {name for name, (words, _) in STILL.items() if word in words}
    assert found <= allowed
    assert allowed <= found, "an exception that is not needed any more"
