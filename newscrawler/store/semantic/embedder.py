"""What makes vectors of texts: the contract, and the text that is handed over."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from newscrawler.items import Article

#: Characters of an article's text beside its title: 1,000 cost 3.5 times as much and find little
#: more (docs/search.md).
BEGINNING = 300
#: Characters of a title, and of a query: a call cannot be interrupted.
LONGEST = 500


class EmbedderError(Exception):
    """There is no vector of this text now; the text says why. Waiting may help."""


class WrongModel(EmbedderError):
    """What answers is not the model that is declared (another dimension): waiting
    brings nothing."""


@dataclass(frozen=True, slots=True)
class Model:
    """Vectors of two models are never compared, nor are those of two versions of one."""

    name: str
    version: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.dimension})".replace("  ", " ")


class Embedder(Protocol):
    """Named by the setting EMBEDDER. Vectors are sequences of ``model.dimension`` numbers,
    of any length (norm)."""

    model: Model

    async def passage(self, text: str) -> Sequence[float]:
        """Of an article, in the background. Raises EmbedderError."""
        ...

    async def query(self, text: str) -> Sequence[float]:
        """Of what somebody asks, who waits for it. Raises EmbedderError."""
        ...

    async def start(self) -> None:
        """Gets ready, so that the first query does not wait. Raises nothing."""
        ...

    async def close(self) -> None: ...


def passage_text(article: Article) -> str:
    """The text of an article that is embedded."""
    return cleaned(f"{article.title[:LONGEST]}\n{article.content[:BEGINNING]}")


def cleaned(text: str) -> str:
    """A decomposed spelling (NFD) has another vector; a NUL ends the text for a model in C, and
    half a surrogate pair is no text at all."""
    text = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", text).strip()


def checked(vector: Any, model: Model) -> Any:
    """As float32 of length 1. Raises WrongModel."""
    import numpy as np

    found = np.asarray(vector, dtype=np.float32)
    if found.shape != (model.dimension,):
        raise WrongModel(
            f"{model.name}: answers with vectors of {found.size} numbers, {model.dimension} are"
            " declared"
        )
    length = float(np.linalg.norm(found))
    if not np.isfinite(length) or length == 0.0:
        raise EmbedderError(f"{model.name}: answers with a vector that has no direction")
    return found / length
