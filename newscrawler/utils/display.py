"""What leaves for people: terminals, logs, tables, spreadsheets. Texts of sites may not steer what
shows them, and addresses of our own services may not show their passwords. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

#: What a terminal obeys instead of showing it: C0 but tab and line feed, DEL, C1 (CSI in one
#: character); what turns the direction of the text around it; separators that are line ends to some
#: programs; half surrogate pairs, which cannot be written at all.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f"
    "\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)
#: A run of white space that holds a line end or a tab, read once from its start: no long
#: run costs its square.
_LINE = re.compile(r"(?<!\s)(?=[^\S\r\n\t]*+[\r\n\t])\s++")
_PASSWORD = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/?#'\"]{1,300}@")
_SECRET_PARAMETER = re.compile(
    r"([?&](?:password|passwd|pass|pwd|token|access_token|api[_-]?key|key|"
    r"secret|sig|signature|auth)=)[^&#\s]+",
    re.IGNORECASE,
)
HIDDEN = "***"
#: With these a spreadsheet begins a formula; the last two only where it cuts white space off.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*")


def number_of(number: int, thing: str) -> str:
    """ "1 page", "1,200 pages": ``thing`` is a noun whose plural ends in s."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def shown(text: str) -> str:
    """``text`` for a terminal or a log: control characters become U+FFFD, lines and tabs stay."""
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if "://" in text and "@" in text:
        text = _PASSWORD.sub(rf"\1{HIDDEN}@", text)
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("\ufffd", text)


def line_shown(text: str) -> str:
    """As :func:`shown`, in one line: for a cell of a table."""
    return shown(_LINE.sub(" ", text))


def json_shown(text: str) -> str:
    r"""JSON with every such character as ``\u....``, which any reader turns back."""
    if text.isascii():
        return text.replace("\x7f", r"\u007f")
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def url_shown(url: str) -> str:
    """The address of a service of ours for people: without user, password and secret parameters.

    A password that holds "/" or "#" is hidden too: everything up to the last "@" goes."""
    head, mark, query = url.partition("?")
    scheme, sep, rest = head.partition("://")
    if sep and "@" in rest:
        head = f"{scheme}://{HIDDEN}@{rest.rpartition('@')[2]}"
    elif sep and "@" in query:  # a password with a question mark
        return shown(f"{scheme}://{HIDDEN}@{query.rpartition('@')[2]}")
    return shown(_SECRET_PARAMETER.sub(rf"\1{HIDDEN}", head + mark + query))


def cell(value: Any) -> Any:
    """A value for CSV that no spreadsheet takes for a formula: quoted as OWASP says, by an
    apostrophe in front.

    Numbers keep their sign."""
    if not isinstance(value, str) or not value:
        return value
    text = shown(value)
    is_formula = text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA)
    return f"'{text}" if is_formula and not _NUMBER.fullmatch(text.strip()) else text


def iso_of(ms: int) -> str:
    """Milliseconds since the epoch as "2026-11-22T08:30:00+00:00"."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def clock_text(seconds: float) -> str:
    """ "01:02:03", whole seconds."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
