"""The fleet's Lua scripts by name. redis-py sends EVALSHA and loads a script again after
NOSCRIPT."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from functools import cache
from typing import Any


@cache
def source(name: str) -> str:
    """Read through importlib.resources, as an egg is a zip."""
    return (importlib.resources.files("newscrawler.fleet") / "lua" / f"{name}.lua").read_text(
        encoding="utf-8"
    )


async def run(client: Any, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
    return await client.register_script(source(name))(keys=list(keys), args=list(args))
