"""The Lua scripts: read from the package, sent once, called by their digest."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, ResponseError

#: Everything that can be run. The files that begin with "_" are parts, joined in by "--@include".
NAMES = (
    "add",
    "domain",
    "forget",
    "free",
    "give_back",
    "look",
    "purge",
    "put_domains",
    "quarantine",
    "renew",
    "reserve",
    "restarted",
    "set_clock",
    "step",
    "trial",
)

#: What the configuration replaces, in the scripts that need it: it is part of their text, as decoding it from an
#: argument took longer than everything else that a call needs before its work.
CONFIG = "--@config\n"
#: The part whose locals all others use.
BASE = "_base"


@dataclass(frozen=True)
class Script:
    name: str
    text: str
    sha: str


def _text(name: str) -> str:
    """Read through importlib.resources, as an egg is a zip."""
    return (resources.files("newscrawler.frontier") / "lua" / f"{name}.lua").read_text(encoding="utf-8")


def _declared(text: str) -> list[str]:
    """The locals of a part that stand at the beginning of a line."""
    found: list[str] = []
    for line in text.splitlines():
        if function := re.match(r"local function (\w+)", line):
            found.append(function[1])
        elif names := re.match(r"local (\w+(?:, \w+)*)(?: =|$)", line):
            found += names[1].split(", ")
    return list(dict.fromkeys(found))


def _with_numbers(texts: dict[str, str]) -> dict[str, str]:
    """Names that stand for numbers become numbers, as Lua has no constants and builds each table anew in each call.

    ``local OUT = { DONE = 1 }`` (numbers only, named in capitals) goes, and ``OUT.DONE`` becomes 1. ``--@fields d raw
    tail`` says that what is called d is a list: ``d.tail`` becomes d[2].

    :raises ValueError: a name that was not declared
    """
    numbers: dict[str, dict[str, str]] = {}

    def declare(match: re.Match[str]) -> str:
        numbers[match[1]] = dict(re.findall(r"(\w+) = (\d+)", match[2]))
        return ""

    def number(match: re.Match[str]) -> str:
        if match[2] not in numbers[match[1]]:
            raise ValueError(f"{match[0]} is not declared")
        value = numbers[match[1]][match[2]]
        return f"{match[1]}[{value}]" if match[1].islower() else value

    table = re.compile(r"^local ([A-Z]\w*) = \{((?:\s*\w+ = \d+,?)+\s*)\}\n", re.MULTILINE)
    texts = {part: table.sub(declare, text) for part, text in texts.items()}
    for text in texts.values():
        for name, listed in re.findall(r"^--@fields (\w+) (.*)$", text, flags=re.MULTILINE):
            known = numbers.setdefault(name, {})
            known.update({field: str(len(known) + i) for i, field in enumerate(listed.split(), start=1)})
    if not numbers:
        return texts
    use = re.compile(rf"(?<![\w.])({'|'.join(numbers)})\.(\w+)")
    return {part: use.sub(number, text) for part, text in texts.items()}


@cache
def load(name: str) -> str:
    """The text with its parts.

    Each part but the first becomes a function that is called at once and returns what the others use of it. Lua finds
    a local of the function that it is in by walking over all that are in use, for each time a function inside names it:
    with all the parts in one function that took a third of an idle call.

    :raises ValueError: a part changes a local that others use: they would not see it
    """
    main = _text(name)
    parts = {part: _text(part) for part in re.findall(r"^--@include (\w+)\n", main, flags=re.MULTILINE)}
    parts = _with_numbers({**parts, "": main})
    main = parts.pop("")
    code = {part: re.sub(r'--.*|"[^"\n]*"', "", text) for part, text in {**parts, "": main}.items()}

    def include(match: re.Match[str]) -> str:
        part = match[1]
        if part == BASE:
            return parts[part]
        used = set(
            re.findall(r"(?<![.\w])[A-Za-z_]\w*", " ".join(text for other, text in code.items() if other != part))
        )
        names = [x for x in _declared(code[part]) if x in used]
        for text in code.values():  # a line that ends in a comma or a closing brace is one of a table
            changed = [x for x in names if re.search(rf"^\s+{x}(, \w+)* = (?!.*(,| }})$)", text, re.MULTILINE)]
            if changed:
                raise ValueError(f"{part}.lua: {changed[0]} is used by other parts and changed; keep it in shared")
        return f"local {', '.join(names)} = (function()\n{parts[part]}return {', '.join(names)}\nend)()\n"

    return re.sub(r"^--@include (\w+)\n", include, main, flags=re.MULTILINE)


def literal(value: Any) -> str:
    """Numbers, truth values, and lists and dictionaries of them, as Lua writes them.

    :raises TypeError: anything else, a text above all: what comes from outside is no part of a script
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)) and math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {literal(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return "{ " + ", ".join(literal(item) for item in value) + " }"
    raise TypeError(f"{value!r} cannot be part of a script")


class Scripts:
    """Runs scripts through one client. ``reloads`` counts the times that Redis had forgotten them; ``is_cut``: a call
    ended in an error that is no answer, so that another process may answer the next.

    :param config: C of the scripts that name it (packing.config); None: those cannot be run
    """

    def __init__(self, client: Redis, config: Mapping[str, Any] | None = None) -> None:
        self.client = client
        self.reloads = 0
        self.is_cut = False
        self._config = config
        self._made: dict[str, Script] = {}

    def script(self, name: str) -> Script:
        """:raises LookupError: it needs the configuration, which is not known here"""
        made = self._made.get(name)
        if made is None:
            text = load(name)
            if CONFIG in text:
                if self._config is None:
                    raise LookupError(f"{name}.lua needs the frontier's configuration")
                text = self._configured(text)
            made = self._made[name] = Script(name, text, hashlib.sha1(text.encode()).hexdigest())
        return made

    def _configured(self, text: str) -> str:
        """Single values stand where they are used; only lists are in C."""
        assert self._config is not None
        lists = {key: value for key, value in self._config.items() if not isinstance(value, (bool, int, float))}
        text = text.replace(CONFIG, f"local C = {literal(lists)}\n")

        def value(match: re.Match[str]) -> str:
            assert self._config is not None
            found = self._config.get(match[1])
            return match[0] if found is None or match[1] in lists else f"({literal(found)})"

        return re.sub(r"(?<![\w.])C\.(\w+)", value, text)

    async def load_all(self) -> None:
        for name in NAMES:
            await self.client.script_load(self.script(name).text)

    async def run(self, name: str, prefix: str, *args: Any) -> Any:
        script = self.script(name)
        try:
            return await self.client.execute_command("EVALSHA", script.sha, 1, prefix, *args)
        except NoScriptError:
            # A restart or SCRIPT FLUSH: nothing of the script has run, so it is safe to repeat.
            self.reloads += 1
            await self.client.script_load(script.text)
            return await self.client.execute_command("EVALSHA", script.sha, 1, prefix, *args)
        except ResponseError:
            raise
        except Exception:
            self.is_cut = True
            raise
