"""No pattern that reads a stranger's text costs more than time in proportion to its length.

Each pattern is run as the code runs it, on strings that are derived from it (attacks.py). Judged is
the growth of CPU time, never a time by itself; what is below a floor is fast enough.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import ModuleType
from typing import Any

import pytest

from newscrawler.extraction import authors, boilerplate, lexicon, page_metadata
from tests.measured import least
from tests.unit.attacks import attacks

PACKAGES = (
    *("extraction", "extraction.author_choice", "web", "discovery", "selectorsets"),
    *("store", "store.sqlite", "store.elasticsearch", "store.fulltext", "rawstore"),
    *("utils", "fetch", "crawl", "fleet", "api"),
)

#: Read by a helper that is handed the pattern.
USED_BY_A_HELPER = {"extraction.safe_css._STEP": "match"}  # _Reader._take
#: Never see long text; what bounds it is held by test_what_is_bounded_is_bounded.
BOUNDED = {
    "extraction.authors._URL",
    "extraction.authors._CREDIT",
    "extraction.authors._SPLIT",
    "extraction.authors._TAIL",
    "extraction.boilerplate._NAMED_PARAGRAPH",
    "extraction.boilerplate._NO_NAME",
    "extraction.page_metadata._VALUE",
}
#: Read what this program has written: a message's template.
OWN_TEXT = {"crawl.log_files._PLACE"}
FLOOR_S = 0.0015
#: Four times the length: 4 in linear time, 16 in quadratic.
WORST_RATIO = 9.0
#: CPU time that only an exponential pattern or one of a high power needs for so short a text. The
#: lengths are tried in turn, near enough to each other that the first one over the limit ends soon.
STEEP_S = 0.1
STEEP_LENGTHS = (8, *range(16, 40, 2), 40, 46, 52, 64, 96, 128, 256, 512, 1_024)
_METHODS = "search|match|fullmatch|sub|subn|split|findall|finditer"
_USE = re.compile(rf"\b([A-Z_][A-Z0-9_]*)\s*\.({_METHODS})\b")


def modules() -> Iterator[tuple[str, ModuleType]]:
    for package in PACKAGES:
        path = importlib.import_module(f"newscrawler.{package}").__path__
        for found in pkgutil.iter_modules(path):
            name = f"{package}.{found.name}"
            yield name, importlib.import_module(f"newscrawler.{name}")


def patterns() -> dict[str, tuple[re.Pattern[str], frozenset[str]]]:
    """Name, pattern and the methods that are called on it: of module level, in its tables, and
    within calls of re."""
    used = defaultdict(set)
    sources = {name: inspect.getsource(module) for name, module in modules()}
    for name, source in sources.items():
        for use in _USE.finditer(source):
            used[f"{name}.{use[1]}" if use[1].startswith("_") else use[1]].add(use[2])
    found: dict[str, tuple[re.Pattern[str], frozenset[str]]] = {}
    seen: set[re.Pattern[str]] = set()
    for name, module in modules():
        for label, value in vars(module).items():
            for at, pattern in _compiled(value):
                if pattern not in seen and f"{name}.{label}" not in OWN_TEXT:
                    seen.add(pattern)
                    how = used.get(f"{name}.{label}", set()) | used.get(label, set())
                    how |= {USED_BY_A_HELPER.get(f"{name}.{label}", "")} - {""}
                    found[f"{name}.{label}{at}"] = (pattern, frozenset(how))
        for line, method, pattern in _written(sources[name]):
            found[f"{name}:{line}"] = (pattern, frozenset({method}))
    return found


def _compiled(value: object, at: str = "", depth: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        yield at, _of_text(value)
    elif isinstance(value, lexicon.Pattern):
        yield at, value.compiled
    elif isinstance(value, dict | list | tuple) and depth < 3:
        inner = value.values() if isinstance(value, dict) else value
        for position, one in enumerate(inner):
            yield from _compiled(one, f"{at}[{position}]", depth + 1)


def _of_text(pattern: re.Pattern[Any]) -> re.Pattern[str]:
    """The same pattern for text where it is one for bytes: the attacks are made of its letters, and
    the engine takes the same steps."""
    if isinstance(pattern.pattern, str):
        return pattern
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)


def _written(source: str) -> Iterator[tuple[int, str, re.Pattern[str]]]:
    """Calls such as re.sub("...", ...)."""
    if not re.search(rf"\bre\.({_METHODS})\(", source):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("re"), attr=method),
                args=[ast.Constant(str(text)), *_],
                keywords=keywords,
            ) if method in _METHODS.split("|"):
                flags = next((ast.unparse(k.value) for k in keywords if k.arg == "flags"), "")
                letters = [getattr(re, flag.strip()[3:]) for flag in flags.split("|") if flag]
                yield node.lineno, method, re.compile(text, sum(letters))


PATTERNS = patterns()
attacks_of = cache(lambda pattern: tuple(attacks(pattern)))


def _as_used(pattern: re.Pattern[str], methods: frozenset[str]) -> Callable[[str], object]:
    """The dearest of the ways in which the code calls it; what nobody calls by
    its name is searched."""
    if methods == {"fullmatch"}:
        return pattern.fullmatch
    if methods and methods <= {"match", "fullmatch"}:
        return pattern.match
    return lambda text: pattern.sub("", text)


def _cpu_s(run: Callable[[str], object], text: str, best_of: int = 1) -> float:
    took = []
    for _ in range(best_of):
        started = time.process_time()
        run(text)
        took.append(time.process_time() - started)
    return min(took)


def fault(pattern: re.Pattern[str], run: Callable[[str], object]) -> str:
    """What makes the pattern slow, "" when nothing does."""
    for before, part, behind in attacks_of(pattern):

        def text(length: int, attack: tuple[str, str, str] = (before, part, behind)) -> str:
            return attack[0] + attack[1] * (length // len(attack[1])) + attack[2]

        for length in STEEP_LENGTHS:
            if _cpu_s(run, text(length)) > STEEP_S and _cpu_s(run, text(length)) > STEEP_S:
                return f"{before!r} + n * {part!r} + {behind!r}: endless at {length} characters"
        if _cpu_s(run, text(4_096)) < FLOOR_S:
            continue
        lengths = (1_024, 2_048)
        if all(
            least(partial(_ratio, run, text, n), WORST_RATIO, 3) >= WORST_RATIO for n in lengths
        ):
            return f"{before!r} + n * {part!r} + {behind!r}: more than linear"
    return ""


def _ratio(run: Callable[[str], object], text: Callable[[int], str], length: int) -> float:
    return _cpu_s(run, text(4 * length), 2) / max(_cpu_s(run, text(length), 3), 1e-5)


def test_the_patterns_are_found() -> None:
    assert len(PATTERNS) > 300 and set(BOUNDED) | set(USED_BY_A_HELPER) <= set(PATTERNS)
    assert sum(bool(attacks_of(pattern)) for pattern, _ in PATTERNS.values()) > 200


@pytest.mark.parametrize(
    "slow",
    [r"\s+$", r"(a+)+$", r"(\w+\s?)*$", r"<a[^>]*>", r"^\s*:?\s*$", r"x\d+y?\d+z", r"\S+@\S+\.\w+"],
)
def test_a_slow_pattern_is_found(slow: str) -> None:
    pattern = re.compile(slow)
    assert fault(pattern, pattern.search)


@pytest.mark.parametrize("quick", [r"(?<!\s)\s++$", r"^\s*+(?::\s*+)?$", r"<a[^>]{0,50}>", r"\w+"])
def test_a_quick_pattern_is_left_alone(quick: str) -> None:
    pattern = re.compile(quick)
    assert fault(pattern, pattern.search) == ""


@pytest.mark.parametrize("name", [name for name in PATTERNS if name not in BOUNDED])
def test_a_pattern_costs_time_in_proportion_to_the_text(name: str) -> None:
    pattern, methods = PATTERNS[name]
    assert fault(pattern, _as_used(pattern, methods)) == "", pattern.pattern


def test_what_is_bounded_is_bounded() -> None:
    """The functions before these patterns refuse what is longer; the spaces of a byline are single
    before it is split."""
    line = "Jane Roe, John Doe"
    assert authors.split(line) and authors.split(line + " " * 9_999) == authors.split(line)
    assert authors.split(line * 30) == () and authors.without_tail("Jane Roe " * 50) == ""
    assert authors.clean([line * 30]) == []
    assert boilerplate._judged(True, "share")[0] and not boilerplate._judged(True, "share " * 60)[0]
    assert page_metadata._MEND_CHARS <= 60_000 and "{0,1000}" in page_metadata._VALUE.pattern
