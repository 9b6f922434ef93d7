"""Scripts of a package are found by name, and run on a real server."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from newscrawler.fleet import scripts as fleet_scripts
from newscrawler.selectorsets import scripts as set_scripts
from newscrawler.utils.lua_scripts import LuaScripts


def test_each_package_has_its_own_scripts() -> None:
    assert "KEYS[1]" in fleet_scripts.source("lead")
    assert "KEYS[1]" in set_scripts.source("budget")
    with pytest.raises(FileNotFoundError, match="budget"):
        fleet_scripts.source("budget")


async def test_a_script_runs_again_after_the_server_forgot_it(r: Redis) -> None:
    scripts = LuaScripts("newscrawler.selectorsets")
    assert await scripts.run(r, "due_job", ["jobs"], []) is None
    await r.script_flush()
    assert await scripts.run(r, "due_job", ["jobs"], []) is None
