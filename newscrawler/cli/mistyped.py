"""Slips of the keyboard in a command line: an option that the command does not have, a setting that
nobody declares. Each is answered with the nearest known name."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from newscrawler import settings as own_settings

#: An argument that was meant as an option; "-" alone and a negative number are values.
_OPTION = re.compile(r"-(?!\d)\S.*", re.DOTALL)
_LONG_OPTION = re.compile(r"--[A-Za-z].*", re.DOTALL)

#: Of names with common prefixes (CLOSESPIDER_, DOWNLOAD_): a letter or two of a dozen.
_NEAR_SETTING = 0.85


def unknown_option(args: Sequence[str], parser: argparse.ArgumentParser, *, is_query: bool) -> str:
    """What to say of the first argument that is no option of the parser; "" = there is none.

    Scrapy's parser leaves options that it does not know among the arguments. What stands behind
    ``--`` is an argument, whatever it begins with.

    :param is_query: the arguments are words of a query, in which one dash excludes a word
    """
    pattern = _LONG_OPTION if is_query else _OPTION
    before = args[: args.index("--")] if "--" in args else args
    arg = next((arg for arg in before if pattern.fullmatch(arg)), None)
    if arg is None:
        return ""
    known = [name for action in parser._actions for name in action.option_strings]
    near = nearest(arg.partition("=")[0], known)
    text = f"unknown option {arg}" + (f"; did you mean {near}?" if near else "")
    return f"{text}; a query with such a word goes after --" if is_query else text


def unknown_settings(settings: BaseSettings) -> list[str]:
    """A line for each setting that the command line gave, that nobody declares and that is near a
    known one. A name far from all known ones is a setting of somebody's own."""
    known = [name for name in {**vars(default_settings), **vars(own_settings)} if name.isupper()]
    given = [
        str(name)
        for name in settings
        if settings.getpriority(name) == SETTINGS_PRIORITIES["cmdline"] and name not in known
    ]
    found = ((name, nearest(name, known, _NEAR_SETTING)) for name in given)
    return [f"unknown setting {name}; did you mean {near}?" for name, near in found if near]


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known name that is most like this one; "" = none is near."""
    return next(iter(get_close_matches(name, list(known), 1, cutoff)), "")
