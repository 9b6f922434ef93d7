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

from newscrawler.frontier import schema

#: Everything that can be run. The files that begin with "_" are parts, joined in by "--@include".
NAMES = (
    "add",
    "crawl_page",
    "domain",
    "forget",
    "found",
    "free",
    "give_back",
    "layout",
    "look",
    "purge",
    "put_domains",
    "quarantine",
    "renew",
    "reserve",
    "restarted",
    "set_clock",
    "step",
    "take_down",
    "isolated_retry",
    "unwant",
    "want",
)

#: What the configuration replaces, in the scripts that need it: it is part of their text, as
#: decoding it from an argument took longer than everything else that a call needs before its work.
CONFIG = "--@config\n"
_INCLUDE = re.compile(r"^--@include (\w+)\n", re.MULTILINE)
#: Begin of the error by which a script refuses a caller with an old layout (_base.lua).
MOVED = "LAYOUT "


@dataclass(frozen=True)
class Script:
    name: str
    text: str
    sha: str


def _text(name: str) -> str:
    """Read through importlib.resources, as an egg is a zip."""
    return (resources.files("newscrawler.frontier") / "lua" / f"{name}.lua").read_text(
        encoding="utf-8"
    )


@cache
def load(name: str) -> str:
    """The text with its parts, and what schema.py declares put in."""
    text = _INCLUDE.sub(lambda part: _with_records(_text(part[1])), _with_records(_text(name)))
    return _with_places(text)


# ---------------------------------------------------------------- records
_RECORDS = {record.name: record for record in schema.RECORDS}
_NAMES = "|".join(_RECORDS)


def with_schema(text: str) -> str:
    """A script whose records are those of schema.py.

    ========================  ============================================================
    ``LEASE.pack{ a = x }``   the record, of a value for each of its fields
    ``LEASE.pack(e)``         the same of a list that has them, see below
    ``LEASE.list{ a = x }``   the values in the record's order
    ``LEASE.zeros``           the same, of zeros and ""
    ``LEASE.unpack(raw)``     the values, and where the record ended
    ``LEASE.size``            bytes up to the end of the first text's length
    ``LEASE.at.fence``        the field's first byte, counted from 1
    ``OUT.DONE``              a number of schema.NUMBERS or a format of schema.FORMATS
    ``--@fields e a @LEASE``  e is a list: ``a``, then the fields of LEASE
    ``e.fence``               its place in that list: e[2]
    ========================  ============================================================

    :raises ValueError: a name that was not declared, or a value that is missing
    """
    return _with_places(_with_records(text))


@cache  # of a part: most of them are in many scripts, and each worker waits for them at its start
def _with_records(text: str) -> str:
    """All but the places in lists, which a part may declare for what it is joined to."""
    text = _with_values(text)
    text = re.sub(rf"\b({_NAMES})\.pack\((\w+)\)", lambda m: _pack_list(m[1], m[2]), text)
    text = re.sub(
        rf"\b({_NAMES})\.unpack\(", lambda m: f'struct.unpack("{_RECORDS[m[1]].lua_format}", ', text
    )
    text = re.sub(rf"\b({_NAMES})\.(\w+)(?:\.(\w+))?", _place, text)
    constants = schema.NUMBERS | schema.FORMATS
    return re.sub(rf"\b(?<!\.)({'|'.join(constants)})\.(\w+)", _constant, text)


def _with_places(text: str) -> str:
    """``e.fence`` -> ``e[2]``."""
    lists = _lists(text)
    text = re.sub(r"^--@fields .*\n", "", text, flags=re.MULTILINE)

    def index(match: re.Match[str]) -> str:
        fields = lists[match[1]]
        if match[2] not in fields:
            raise ValueError(f"{match[0]} is not declared")
        return f"{match[1]}[{fields.index(match[2]) + 1}]"

    return re.sub(rf"\b(?<!\.)({'|'.join(lists)})\.(\w+)", index, text) if lists else text


def _lists(text: str) -> dict[str, list[str]]:
    """What is declared by --@fields: name of the list -> its fields in order."""
    found: dict[str, list[str]] = {}
    for name, declared in re.findall(r"^--@fields (\w+) (.*)$", text, flags=re.MULTILINE):
        found[name] = []
        for word in declared.split():
            found[name] += _RECORDS[word[1:]].names if word.startswith("@") else [word]
        twice = [field for field in found[name] if found[name].count(field) > 1]
        if twice:
            raise ValueError(f"{name} has two fields {twice[0]}")
    return found


def _with_values(text: str) -> str:
    """NAME.pack{...} and NAME.list{...}."""
    opening = re.compile(rf"\b({_NAMES})\.(pack|list)\{{")
    begin = 0
    while match := opening.search(text, begin):
        begin = match.start()  # a value may have records in it
        parts, end = _split(text, match.end())
        given = dict(part.strip().split(" = ", 1) for part in parts)
        record = _RECORDS[match[1]]
        if list(given) != record.names:
            raise ValueError(
                f"{match[0]}: {', '.join(given)} are not the fields {', '.join(record.names)}"
            )
        if match[2] == "list":
            made = ", ".join(given.values())
        else:
            made = _packed(record, list(given.values()))
        text = text[: match.start()] + made + text[end:]
    return text


def _split(text: str, start: int) -> tuple[list[str], int]:
    """The parts between commas up to the brace that closes, and the place behind it."""
    parts: list[str] = []
    depth, begin = 0, start
    for at in range(start, len(text)):
        char = text[at]
        if char == "}" and depth == 0:
            return [*parts, text[begin:at]], at + 1
        if char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
        depth += (char in "({[") - (char in ")}]")
    raise ValueError("a brace is not closed")


def _packed(record: schema.Record, values: list[str]) -> str:
    arguments: list[str] = []
    for field, value in zip(record.fields, values, strict=True):
        if field.is_text:
            arguments.append(f"#{value}")  # a text stands behind its length
        arguments.append(value)
    return f'struct.pack("{record.lua_format}", {", ".join(arguments)})'


def _pack_list(name: str, variable: str) -> str:
    record = _RECORDS[name]
    return _packed(record, [f"{variable}.{field}" for field in record.names])


def _place(match: re.Match[str]) -> str:
    record, what, field = _RECORDS[match[1]], match[2], match[3]
    if what == "at" and field in record.names:
        return str(record.at(field) + 1)
    if what == "size" and not field:
        return str(record.size)
    if what == "zeros" and not field:
        return ", ".join(one.lua_zero for one in record.fields)
    raise ValueError(f"{match[0]} is not declared")


def _constant(match: re.Match[str]) -> str:
    if match[2] in schema.NUMBERS.get(match[1], {}):
        return str(schema.NUMBERS[match[1]][match[2]])
    if match[2] in schema.FORMATS.get(match[1], {}):
        return f'"{schema.FORMATS[match[1]][match[2]]}"'
    raise ValueError(f"{match[0]} is not declared")


# ---------------------------------------------------------------- configuration
def literal(value: Any) -> str:
    """Numbers, truth values, and lists and dictionaries of them, as Lua writes them.

    :raises TypeError: anything else, a text above all: what comes from outside
        is no part of a script
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
    """Runs scripts through one client. ``reloads`` counts the times that Redis had
    forgotten them; ``is_cut``: a call ended in an error that is no answer, so that another
    process may answer the next; ``is_moved``: the frontier's layout is not the one that ``word``
    stands for, so that the caller is to read it again (layout.py).

    :param config: C of the scripts that name it (packing.config); None: those cannot be run
    """

    def __init__(self, client: Redis, config: Mapping[str, Any] | None = None) -> None:
        self.client = client
        self.reloads = 0
        self.is_cut = False
        self.is_moved = False
        self.word = "0"
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
                text = text.replace(CONFIG, f"local C = {literal(self._config)}\n")
            made = self._made[name] = Script(name, text, hashlib.sha1(text.encode()).hexdigest())
        return made

    def configure(self, config: Mapping[str, Any]) -> None:
        """Another C: the scripts that name it are made anew."""
        self._config = config
        self._made.clear()

    async def load_all(self) -> None:
        for name in NAMES:
            await self.client.script_load(self.script(name).text)

    async def run(self, name: str, prefix: str, *args: Any) -> Any:
        """:param args: ARGV of the script, which gets the layout's number behind them"""
        script = self.script(name)
        args = (*args, self.word)
        try:
            return await self.client.execute_command("EVALSHA", script.sha, 1, prefix, *args)
        except NoScriptError:
            # A restart or SCRIPT FLUSH: nothing of the script has run, so it is safe to repeat.
            self.reloads += 1
            await self.client.script_load(script.text)
            return await self.client.execute_command("EVALSHA", script.sha, 1, prefix, *args)
        except ResponseError as exc:
            self.is_moved = self.is_moved or MOVED in f"{type(exc).__name__} {exc}"
            raise
        except Exception:
            self.is_cut = True
            raise
