"""Text from strangers costs time in proportion to its length: public functions,
found by introspection.

Judged is the growth of CPU time when the text is four times as long, never a time by itself; what
is below a floor is too fast to be measured, and is fast enough.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

import newscrawler
from tests.measured import least

PACKAGES = (
    "extraction",
    "web",
    "discovery",
    "selectorsets",
    "store",
    "store.elasticsearch",
    "utils",
    "fetch",
)

FLOOR_S = 0.01
LENGTHS = (2_000, 8_000)
#: Four times the length: 4 in linear time, 16 in quadratic.
WORST_RATIO = 9.0
PARTS = (
    " ", "\u00a0", "\n", "1", "1 ", ",", ", ", "(", "[", "{", "<", "a", "a ", "A ", "é", "-", "- ", "/", '"', ":", ". ", "a,", "a.", "<a",
    "&", "#", "?a=", "a@", "12:", "ngày ", "lúc ", "am ", "by ", "theo ", "\\a", "1/", "20", "))", "]]", "%4",
)  # fmt: skip


def text_functions() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Every public function of these packages that can be called with one text."""
    for package in PACKAGES:
        path = importlib.import_module(f"newscrawler.{package}").__path__
        for found in pkgutil.iter_modules(path):
            module = importlib.import_module(f"newscrawler.{package}.{found.name}")
            for name, function in vars(module).items():
                if name.startswith("_") or getattr(function, "__module__", "") != module.__name__:
                    continue
                plain = getattr(function, "__wrapped__", function)  # what a cache stands before
                if inspect.isfunction(plain) and _takes_one_text(plain):
                    yield f"{package}.{found.name}.{name}", plain


def _takes_one_text(function: Callable[..., object]) -> bool:
    asked = [
        p for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]  # fmt: skip
    return (
        len(asked) == 1
        and asked[0].annotation in ("str", "str | None", "Any")
        and not inspect.iscoroutinefunction(function)
    )


FUNCTIONS = dict(text_functions())


def _cpu_s(function: Callable[[str], object], text: str, best_of: int) -> float:
    took = []
    for _ in range(best_of):
        started = time.process_time()
        try:
            function(text)
        except Exception as exc:  # a refusal; what it costs is what counts
            assert str(exc) is not None
        took.append(time.process_time() - started)
    return min(took)


def _ratio(function: Callable[[str], object], short: str, long: str) -> float:
    return _cpu_s(function, long, 3) / max(_cpu_s(function, short, 3), 1e-5)


def test_the_functions_are_found() -> None:
    assert len(FUNCTIONS) > 60 and newscrawler.__name__ == "newscrawler"
    assert {
        "extraction.authors.without_tail",
        "extraction.authors.split",
        "extraction.safe_css.css_problem",
    } <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_text_costs_time_in_proportion_to_its_length(name: str) -> None:
    function = FUNCTIONS[name]
    for part in PARTS:
        for before, behind in (("", ""), ("a", "\x00"), ("1", "x")):
            short, long = (before + part * (length // len(part)) + behind for length in LENGTHS)
            if _cpu_s(function, long, 1) < FLOOR_S:
                continue
            ratio = least(partial(_ratio, function, short, long), WORST_RATIO)
            assert ratio < WORST_RATIO, (
                f"{part!r}: {ratio:.1f} times the time for {LENGTHS[1] // LENGTHS[0]} times the text"
            )
