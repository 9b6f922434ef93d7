"""The Lua scripts of the fleet, by name."""

from __future__ import annotations

from newscrawler.utils.lua_scripts import LuaScripts

_SCRIPTS = LuaScripts("newscrawler.fleet")
run, source = _SCRIPTS.run, _SCRIPTS.source
