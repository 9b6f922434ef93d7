"""The package that the index is made with: imported when it is first needed, its errors by name."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from newscrawler.store.base import StoreUnavailable

#: What the engine says of the machine, not of the index: by errno or by words.
_OF_THE_MACHINE = re.compile(
    r"(?:os error|code:) (?:1|5|12|13|23|24|27|28|30|122)\b|StorageFull|PermissionDenied"
    r"|ReadOnlyFilesystem|QuotaExceeded|FileTooLarge|OutOfMemory"
)
#: What the system said, inside of what the engine makes of it.
_SYSTEM = re.compile(r'message: "([^"]+)"')


@cache
def tantivy() -> Any:
    """:raises StoreUnavailable: the package cannot be imported"""
    try:
        import tantivy as engine
    except ImportError as exc:
        raise StoreUnavailable(
            f"full-text index: the package tantivy cannot be imported ({exc}): "
            "pip install -r requirements.txt"
        ) from exc
    return engine


def is_engine_error(exc: BaseException) -> bool:
    """A panic of the engine (a damaged file) is no Exception, by PyO3's choice."""
    return isinstance(exc, (ValueError, OSError)) or type(exc).__name__ == "PanicException"


def is_of_the_machine(exc: BaseException) -> bool:
    """A full disk, no right to write, no memory: the index itself may be well."""
    if isinstance(exc, OSError) and exc.errno is not None:
        return True
    return _OF_THE_MACHINE.search(str(exc)) is not None


def one_line(exc: BaseException) -> str:
    if found := _SYSTEM.search(str(exc)):
        return found[1]
    return " ".join(str(exc).split())[:200] or type(exc).__name__
