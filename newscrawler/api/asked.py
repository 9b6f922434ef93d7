"""What a page was asked for: the parameters of a search, and the addresses that change one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Path
from fastapi import Query as Parameter

from newscrawler.items import Field
from newscrawler.store.labels import FACETED, KEYS, WITHOUT, folded

ArticleId = Annotated[
    str, Path(pattern=r"^[0-9a-fA-F]{8,64}$", description="the article's id, hexadecimal")
]


def _label_parameters() -> Callable[..., tuple[tuple[str, str], ...]]:
    """A dependency of routes with one parameter for each field that is a facet:
    ``keyword=a&keyword=b``."""

    def chosen(**values: list[str] | None) -> tuple[tuple[str, str], ...]:
        return tuple((key, v.strip()) for key, of in values.items() for v in of or () if v.strip())

    def parameter(field: Field) -> inspect.Parameter:
        said = f"{field.label.lower()} that an article must have, all of them, compared folded"
        if field is WITHOUT:
            said = "what an article must lack: date"
        kind = Annotated[list[str] | None, Parameter(description=said)]
        return inspect.Parameter(
            field.key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
        )

    # FastAPI reads the names of parameters from the signature.
    signature = inspect.Signature([parameter(f) for f in FACETED])
    vars(chosen)["__signature__"] = signature
    return chosen


chosen_labels = _label_parameters()


@dataclass(frozen=True, slots=True)
class Asked:
    """The search form as it was sent; builds the links that change one thing of it."""

    q: str = ""
    sort: str = "best"
    sites: tuple[str, ...] = ()
    after: str = ""
    before: str = ""
    page: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    copies: str = ""  # "apart": each copy of an article is a hit of its own

    @property
    def filters(self) -> tuple[str, ...]:
        """Names of the parameters that restrict a search."""
        return ("site", *KEYS, "after", "before")

    @property
    def together(self) -> bool:
        return self.copies != "apart"

    def of(self, key: str) -> tuple[str, ...]:
        """The values that are asked for of a field that is a facet, or of the site."""
        if key == "site":
            return self.sites
        return tuple(value for name, value in self.labels if name == key)

    def without(self, key: str, value: str) -> str:
        """The address of this search without one of these values."""
        left = tuple(v for v in self.of(key) if folded(v) != folded(value))
        return self.link(**{key: left})

    def widened(self) -> str:
        """The address of this search without any filter."""
        return self.link(**dict.fromkeys(self.filters, ""))

    def fields(self) -> Iterator[tuple[str, str]]:
        """Names and values of all that was sent, for a form that changes one of them; without the
        page."""
        for name, value in self._values().items():
            for one in (value,) if isinstance(value, str) else value:
                yield name, one

    def _values(self, **changes: Any) -> dict[str, Any]:
        values: dict[str, Any] = {
            "q": self.q,
            "sort": self.sort,
            "copies": self.copies,
            **{key: self.of(key) for key in ("site", *KEYS)},
            "after": self.after,
            "before": self.before,
        }
        values |= changes
        default = {"sort": "best"}
        return {
            name: value for name, value in values.items() if value and value != default.get(name)
        }

    def link(self, **changes: Any) -> str:
        """The address of this search with ``changes``; page 0 unless it is changed itself."""
        kept = self._values(**changes)
        return "/?" + urlencode(kept, doseq=True) if kept else "/"

    def feed(self, form: str) -> str:
        """The address of this search as a feed: rss, atom or json. A feed has no range of days."""
        return self.at(f"/feed.{form}", after="", before="")

    def at(self, path: str, **more: str) -> str:
        """The same search at another address, without its order and page."""
        query = urlencode(self._values(**({"sort": "", "copies": ""} | more)), doseq=True)
        return path + (f"?{query}" if query else "")

    @property
    def is_narrowed(self) -> bool:
        return bool(self.sites or self.labels or self.after or self.before)

    @property
    def is_empty(self) -> bool:
        return not (self.q or self.is_narrowed)
