"""Reads the answers of our own processes. A pickle can name any function and have it called; these
may name classes that hold values, and nothing else.

The process that reads pages is the one that a hostile page may take over. It has no business with
the crawl's process, which holds the connections to Redis and the stores.
"""

from __future__ import annotations

import enum
import io
import pickle
from dataclasses import is_dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

#: Of the standard library: values that fields have.
_PLAIN = frozenset(
    {
        ("builtins", "bytearray"),
        ("builtins", "complex"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("collections", "Counter"),
        ("collections", "OrderedDict"),
        ("datetime", "date"),
        ("datetime", "datetime"),
        ("datetime", "timedelta"),
        ("datetime", "timezone"),
        ("zoneinfo", "ZoneInfo"),
    }
)
#: Parts whose dataclasses and enumerations are answers: they hold values and do nothing when made.
_PARTS = (
    "newscrawler.items",
    "newscrawler.extraction.",
    "newscrawler.discovery.",
    "newscrawler.crawl.parse_process",
    "newscrawler.store.",
)


def _refused(name: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(f"{name} is no part of an answer")


def _of_zone(owner: Any, name: str) -> Any:
    """In the place of getattr: a time of a named zone is pickled as a call of
    ``ZoneInfo._unpickle``, which has no other name."""
    if owner is not ZoneInfo or name != "_unpickle":
        raise _refused("builtins.getattr")
    return ZoneInfo._unpickle  # type: ignore[attr-defined]  # no stub has what is private


@lru_cache(maxsize=256)  # each answer names the same ten classes
def _value_class(module: str, name: str) -> Any:
    if (module, name) == ("builtins", "getattr"):
        return _of_zone
    is_plain = (module, name) in _PLAIN
    # A dot in the name would reach what a module imported ("os.system").
    if is_plain or (module.startswith(_PARTS) and "." not in name):
        found = getattr(import_module(module), name)
        is_class = isinstance(found, type) and found.__module__ == module
        if is_plain or (is_class and (is_dataclass(found) or issubclass(found, enum.Enum))):
            return found
    raise _refused(f"{module}.{name}")


class _Answers(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _value_class(module, name)


def loads(frame: bytes) -> Any:
    """:raises Exception: it is no pickle, or names what is no value"""
    return _Answers(io.BytesIO(frame)).load()
