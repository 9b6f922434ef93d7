"""The store's Lua scripts by name. redis-py sends EVALSHA and loads a script again
after NOSCRIPT."""

from __future__ import annotations

import importlib.resources
from functools import cache
from typing import Any


@cache
def source(name: str) -> str:
    return (
        importlib.resources.files("newscrawler.selectorsets") / "lua" / f"{name}.lua"
    ).read_text()


async def run(client: Any, name: str, keys: list[str], args: list[Any]) -> Any:
    return await client.register_script(source(name))(keys=keys, args=args)
