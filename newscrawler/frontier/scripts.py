"""The Lua scripts: read from the package, sent once, called by their digest."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

#: Everything that can be run. The files that begin with "_" are parts, joined in by "--@include".
NAMES = (
    "add",
    "domain",
    "free",
    "give_back",
    "purge",
    "put_domains",
    "quarantine",
    "renew",
    "reserve",
    "set_clock",
    "step",
)


@dataclass(frozen=True)
class Script:
    name: str
    text: str
    sha: str


@cache
def load(name: str) -> Script:
    """The script with its parts. Read through importlib.resources, as an egg is a zip."""
    seen: set[str] = set()

    def read(part: str) -> str:
        text = (resources.files("newscrawler.frontier") / "lua" / f"{part}.lua").read_text(encoding="utf-8")

        def include(match: re.Match[str]) -> str:
            if match[1] in seen:
                return ""
            seen.add(match[1])
            return read(match[1])

        return re.sub(r"^--@include (\w+)\n", include, text, flags=re.MULTILINE)

    text = read(name)
    return Script(name, text, hashlib.sha1(text.encode()).hexdigest())


class Scripts:
    """Runs scripts through one client. ``reloads`` counts the times that Redis had forgotten them."""

    def __init__(self, client: Redis) -> None:
        self.client = client
        self.reloads = 0

    async def load_all(self) -> None:
        for name in NAMES:
            await self.client.script_load(load(name).text)

    async def run(self, name: str, prefix: str, *args: Any) -> Any:
        script = load(name)
        try:
            return await self.client.execute_command("EVALSHA", script.sha, 1, prefix, *args)
        except NoScriptError:
            # A restart or SCRIPT FLUSH: nothing of the script has run, so it is safe to repeat.
            self.reloads += 1
            await self.client.script_load(script.text)
            return await self.client.execute_command("EVALSHA", script.sha, 1, prefix, *args)
