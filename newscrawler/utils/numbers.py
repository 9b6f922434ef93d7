"""Numbers that come from outside: a header, an address, a form, a command line. Pure.

``str.isdigit`` says yes to "²" and "①", on which ``int`` raises, and to digits of every script;
``int`` itself raises over 4,300 digits. What a protocol calls a digit is one of 0-9.
"""

from __future__ import annotations


def share(part: float, whole: float, of_nothing: float = 0.0) -> float:
    """``part / whole``; of nothing, what the caller takes it for."""
    return part / whole if whole else of_nothing


def is_digits(text: str) -> bool:
    """One or more of 0-9 and nothing else."""
    return text.isascii() and text.isdigit()


def whole_number(text: str, most: int = 2**63 - 1) -> int | None:
    """The number that the digits 0-9 write; None for anything else, and above ``most``."""
    if not is_digits(text):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)) or (number := int(digits)) > most:
        return None
    return number
