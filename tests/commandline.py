"""Whether a line of shell that a document, an alert or a unit gives is one that the program takes: the
command is there, its verb is one, its options are its own. By the program's own parsers; nothing is
run.
"""

from __future__ import annotations

import functools
import importlib
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from scrapy.cmdline import ScrapyArgumentParser, _get_commands_dict
from scrapy.settings import Settings

#: Where a command ends: what follows is another one's, or a file's name.
_ENDS = re.compile(r"[|&;<>()]+")
#: Where one begins: not in the middle of a word, and not as the name of something else.
_SCRAPY = re.compile(r"(?:(?<=^)|(?<=[\s(`/\"']))scrapy (?=\S)", re.M)
#: Stands for what somebody puts in: `start N`, `--day YYYY-MM-DD`, `scrapy fleet VERB`, `...`.
_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_-]*|…|\.\.\.|<.*>|\{.*\}")


class _Refused(Exception):
    pass


class _Parser(ScrapyArgumentParser):
    def error(self, message: str) -> Any:
        raise _Refused(message)


@functools.cache
def _commands() -> Mapping[str, Any]:
    settings = Settings()
    settings.setmodule("newscrawler.settings", priority="project")
    found: dict[str, Any] = _get_commands_dict(settings, inproject=True)
    for command in found.values():
        command.settings = settings
    return found


@functools.cache
def _parser(name: str) -> _Parser:
    parser = _Parser(conflict_handler="resolve", allow_abbrev=False, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    _commands()[name].add_options(parser)
    for action in parser._actions:  # "N" may stand for a number, and an option alone for its value
        action.type, action.choices = None, None
        if action.nargs is None:
            action.nargs = "?"
    return parser


def _verbs(name: str) -> Mapping[str, Any]:
    module = importlib.import_module(type(_commands()[name]).__module__)
    return getattr(module, "VERBS", {})


def words_of(text: str) -> list[str]:
    """Of a command without its name `scrapy`, to where it ends; [] = the quotes of the line are not
    closed on it."""
    text = re.split(r"\s{3,}", text, maxsplit=1)[0]  # a table: the command, and what it does
    # A usage: "list|show [--every 5m]"; in a table of Markdown the bar has a sign before it.
    text = re.sub(r"(?<=\w)\\?\|(?=[\w…-])", "/", text).replace("[", "").replace("]", "")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    try:
        for word in lexer:
            if _ENDS.fullmatch(word):
                break
            words.append(word)
    except ValueError:
        return []
    if words and words[-1].isdigit() and re.search(rf"\b{words[-1]}>", text):
        words.pop()  # of "2> log"
    return words


def commands_in(text: str) -> Iterator[list[str]]:
    """The words of each `scrapy ...` in lines of shell."""
    joined = text.replace("\\\n", " ")
    for match in _SCRAPY.finditer(joined):
        line = re.split(r"[\n`]", joined[match.end() :], maxsplit=1)[0]
        if words := words_of(line):
            yield words


def fault_of(words: list[str]) -> str:
    """What is wrong with a command; "" = nothing."""
    name, *rest = words
    if _PLACEHOLDER.fullmatch(name) or name in ("-h", "--help"):
        return ""
    if name not in _commands():
        return f"there is no command {name!r}"
    try:
        options = [part for word in rest for part in re.split(r"(?<=\w)/(?=--)", word)]
        _, args = _parser(name).parse_known_args(options)
    except _Refused as exc:
        return f"{name}: {exc}"
    strange = [word for word in args if word.startswith("-") and len(word) > 1]
    if strange:
        return f"{name} has no option {strange[0]}"
    verbs = _verbs(name)
    verb = next((word for word in args if word != "--"), "")
    for one in verb.split("/"):  # "sites enable/disable SITE"
        if verbs and one and one not in verbs and not _PLACEHOLDER.fullmatch(one):
            return f"{name} has no verb {one!r}"
    return ""
