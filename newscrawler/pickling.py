"""Dataclasses that go from one process of ours to another with every page. Pure."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def by_fields(cls: T) -> T:
    """A dataclass of two or more fields whose pickle is a call with their values, in order.

    What ``dataclass(slots=True)`` and ``object`` do instead goes field by field through names: for what was read on
    a page it takes twice as long, there and back.
    """
    values = attrgetter(*(field.name for field in fields(cls)))

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return cls, values(self)

    cls.__reduce__ = __reduce__  # type: ignore[assignment]
    return cls
