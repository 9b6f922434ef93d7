"""The Lua scripts of the selector sets, by name."""

from __future__ import annotations

from newscrawler.utils.lua_scripts import LuaScripts

_SCRIPTS = LuaScripts("newscrawler.selectorsets")
run, source = _SCRIPTS.run, _SCRIPTS.source
