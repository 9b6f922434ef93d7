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
    "purge",
    "put_domains",
    "quarantine",
    "renew",
    "reserve",
    "restarted",
    "set_clock",
    "step",
)


#: What the configuration replaces, in the scripts that need it: it is part of their text, as decoding it from an
#: argument took longer than everything else that a call needs before its work.
CONFIG = "--@config\n"


@dataclass(frozen=True)
class Script:
    name: str
    text: str
    sha: str


@cache
def load(name: str) -> str:
    """The text with its parts. Read through importlib.resources, as an egg is a zip."""
    seen: set[str] = set()

    def read(part: str) -> str:
        text = (resources.files("newscrawler.frontier") / "lua" / f"{part}.lua").read_text(encoding="utf-8")

        def include(match: re.Match[str]) -> str:
            if match[1] in seen:
                return ""
            seen.add(match[1])
            return read(match[1])

        return re.sub(r"^--@include (\w+)\n", include, text, flags=re.MULTILINE)

    return read(name)


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
        self._config = None if config is None else f"local C = {literal(config)}\n"
        self._made: dict[str, Script] = {}

    def script(self, name: str) -> Script:
        """:raises LookupError: it needs the configuration, which is not known here"""
        made = self._made.get(name)
        if made is None:
            text = load(name)
            if CONFIG in text:
                if self._config is None:
                    raise LookupError(f"{name}.lua needs the frontier's configuration")
                text = text.replace(CONFIG, self._config)
            made = self._made[name] = Script(name, text, hashlib.sha1(text.encode()).hexdigest())
        return made

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
