"""The head of frontier/keys.py is the map of all Redis keys: one line for each, and for no other."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from newscrawler.frontier import keys

LUA = Path(keys.__file__).parent / "lua"
#: What the head writes for an argument of a key's function.
WRITTEN = {
    "shard": 0,
    "class_": "<0|1|2>",
    "domain": "<domain>",
    "number": "<bucket>",
    "generation": "<gen>",
    "part": "<part>",
    "group": "<group>",
    "crawl": "<crawl>",
}
LINE = re.compile(r"^ {4}(\{(?:f0|frontier|crawls)\}:\S+) +(?:hash|zset|set|list|string) +\S", re.M)
LISTED = LINE.findall(inspect.getdoc(keys) or "")


def made_by_python() -> set[str]:
    values = [value for name, value in vars(keys).items() if name.isupper()]
    found = {value for value in values if isinstance(value, str)}
    for name, function in inspect.getmembers(keys, inspect.isfunction):
        arguments = inspect.signature(function).parameters
        if set(arguments) <= set(WRITTEN) and name not in ("prefix", "finished_id"):
            found.add(function(*(WRITTEN[argument] for argument in arguments)))
    return found - {keys.CRAWLS}


def made_by_scripts() -> set[str]:
    """What follows the prefix, up to the first part that a script fills in."""
    made = re.compile(r'(?:\bP|KEYS\[1\]) \.\. "(:[a-z:]+)"')
    return {part for file in LUA.glob("*.lua") for part in made.findall(file.read_text())}


def test_every_key_that_python_makes_has_a_line_of_its_own() -> None:
    made = made_by_python()
    assert len(made) > 30
    assert made <= set(LISTED)
    assert len(LISTED) == len(set(LISTED))


def test_every_key_that_a_script_makes_has_a_line_and_every_line_a_key() -> None:
    of_scripts = made_by_scripts()
    assert len(of_scripts) > 30

    def fixed(key: str) -> str:
        return re.sub(r"^\{\w+\}|<.*", "", key)

    assert of_scripts <= {fixed(key) for key in LISTED}
    assert {fixed(key) for key in LISTED} <= of_scripts | {fixed(key) for key in made_by_python()}
