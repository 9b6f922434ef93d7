"""How dense the package is: the figures that a rebuild of it was to bring down.

    python -m benchmarks.house [FOLDER ...]      FOLDER: checkouts; this one when none is named

A column for each checkout. ``ways`` of a function: 1, and 1 more for each if, loop, except, case,
and, or, conditional expression and condition of a comprehension in it, functions in it included.
``circles``: groups of modules that import one another where they are loaded, imports for type
checks included.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

WAYS = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.match_case,
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)


class House:
    """The package of one checkout."""

    def __init__(self, root: Path) -> None:
        self.package = root / "newscrawler"
        paths = sorted(self.package.rglob("*.py"))
        self.texts = {self._name(path): path.read_text(encoding="utf-8") for path in paths}
        self.trees = {name: ast.parse(text) for name, text in self.texts.items()}

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.package.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def figures(self) -> dict[str, str]:
        lines = [line for text in self.texts.values() for line in text.splitlines()]
        nodes = [node for tree in self.trees.values() for node in ast.walk(tree)]
        functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
        conditional = sum(isinstance(node, ast.IfExp) for node in nodes)
        all_ways = sorted(map(ways, functions))
        flat = [path for path in self.package.glob("*.py") if path.name != "__init__.py"]
        return {
            "modules": f"{len(self.texts):,}",
            "modules at the top": f"{len(flat)}",
            "lines": f"{len(lines):,}",
            "tokens of code, without comments and docstrings": f"{sum(map(tokens, self.texts.values())):,}",
            "circles of imports": f"{len(self.circles())}",
            "functions": f"{len(functions):,}",
            "functions with more than 10 ways": f"{sum(n > 10 for n in all_ways)}",
            "functions with more than 12 ways": f"{sum(n > 12 for n in all_ways)}",
            "most ways of a function": f"{all_ways[-1]}",
            "conditional expressions per 1,000 lines": f"{1000 * conditional / len(lines):.1f}",
            "conditional expressions inside another": f"{nested(nodes)}",
            "lines over 100 columns": f"{sum(len(line) > 100 for line in lines)}",
            "type: ignore": f"{sum('type: ignore' in line for line in lines)}",
            "noqa of complexity": f"{sum('noqa' in line and 'C901' in line for line in lines)}",
            "settings": f"{len(self.settings())}",
        }

    def settings(self) -> set[str]:
        tree = self.trees["newscrawler.settings"]
        names = [
            target.id
            for node in tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        ]
        return {name for name in names if name.isupper() and name[0] != "_"}

    def circles(self) -> list[set[str]]:
        """Groups of modules each of which is reached from each other one."""
        reached = {name: self._reached(name) for name in self.trees}
        groups = {
            frozenset(other for other in seen if name in reached[other])
            for name, seen in reached.items()
            if name in seen
        }
        return [set(group) for group in groups if len(group) > 1]

    def _reached(self, start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for found in self._imports(waiting.pop()) - seen:
                seen.add(found)
                waiting.append(found)
        return seen

    def _imports(self, name: str) -> set[str]:
        found: set[str] = set()
        for node in at_load(self.trees[name]):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {f"{node.module}.{one.name}" for one in node.names} & self.trees.keys()
                found |= named or ({node.module} & self.trees.keys())
            elif isinstance(node, ast.Import):
                found |= {one.name for one in node.names} & self.trees.keys()
        return found - {name}


def at_load(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from at_load(child)


def ways(function: ast.AST) -> int:
    count = 1
    for node in ast.walk(function):
        count += isinstance(node, WAYS)
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += len(node.ifs)
    return count


def nested(nodes: list[ast.AST]) -> int:
    outer = [node for node in nodes if isinstance(node, ast.IfExp)]
    return sum(
        isinstance(inner, ast.IfExp)
        for node in outer
        for part in (node.test, node.body, node.orelse)
        for inner in [part]
    )


def tokens(text: str) -> int:
    """A text that is a statement by itself is a docstring."""
    count, is_begin = 0, True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in NO_CODE:
            is_begin = is_begin or token.type in (tokenize.NEWLINE, tokenize.INDENT)
            continue
        count += not (token.type == tokenize.STRING and is_begin)
        is_begin = False
    return count


def main() -> None:
    roots = [Path(name) for name in sys.argv[1:]] or [Path(__file__).resolve().parents[1]]
    columns = [House(root).figures() for root in roots]
    print("| |", " | ".join(root.resolve().name for root in roots), "|")
    print("|---|" + "---|" * len(roots))
    for name in columns[0]:
        print(f"| {name} |", " | ".join(column[name] for column in columns), "|")


if __name__ == "__main__":
    main()
