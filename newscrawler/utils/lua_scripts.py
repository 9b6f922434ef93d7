"""The Lua scripts in a package's folder ``lua/``, by name.

The scripts of the frontier are put together of parts and have a loader of their own
(newscrawler.frontier.scripts).
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from functools import cache
from typing import Any


class LuaScripts:
    def __init__(self, package: str) -> None:
        self._folder = importlib.resources.files(package) / "lua"  # of an egg, too, which is a zip
        self.source = cache(self._read)

    def _read(self, name: str) -> str:
        return (self._folder / f"{name}.lua").read_text(encoding="utf-8")

    async def run(self, client: Any, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """:param client: of redis.asyncio; it sends EVALSHA, and the script again after NOSCRIPT"""
        return await client.register_script(self.source(name))(keys=list(keys), args=list(args))
