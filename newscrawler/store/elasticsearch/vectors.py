"""Vectors of articles in Elasticsearch: an index a model beside that of the articles, which can be
deleted at any time, and the task that fills it.

A document has the vector (``dense_vector``, int8 in an HNSW graph, cosine) and what a search may be
restricted to. The graph is asked for twice as many as are wanted; these are compared again without
the mean of the model's vectors (see store.semantic.matrix), so that both stores order alike.

One process of the fleet makes what is missing (a claim in ``<index>-vectors``). It follows the
sequence numbers of the articles' shards, as the outbox does: what was written again comes again
with a greater number, so the mark is a number a shard, and a kill costs one batch at most.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xxhash

from newscrawler.store import codec
from newscrawler.store.base import StoreError
from newscrawler.store.elasticsearch import query as dsl
from newscrawler.store.elasticsearch.connection import Server
from newscrawler.store.elasticsearch.notes import Notes
from newscrawler.store.elasticsearch.outbox import shards_of
from newscrawler.store.labels import labels_of
from newscrawler.store.semantic.embedder import (
    Embedder,
    EmbedderError,
    Model,
    checked,
    cleaned,
    passage_text,
)
from newscrawler.store.semantic.matrix import centred, mean_of
from newscrawler.store.semantic.meaning import NoVectors

log = logging.getLogger(__name__)

#: Articles of one batch, whose vectors a kill costs.
BATCH = 20
#: Seconds between two looks when nothing is to be done, when another process is at it, and
#: after a failure.
PERIOD_S, BUSY_S, RETRY_S = 1.0, 5.0, 10.0
#: So many times what is wanted is asked of the graph, and so many times that are looked at in it.
_WIDER, _CANDIDATES = 2, 4
#: Vectors that the mean is made of, and seconds after which it is made anew: often while there are
#: few.
_SAMPLE, _OLD_S, _OLD_OF_FEW_S = 1_000, 600.0, 5.0
_MARK = "mark"


def mapping(dimension: int) -> dict[str, Any]:
    return {
        "dynamic": "strict",
        "_meta": {"schema": 1},
        "_source": {"excludes": ["vector"]},
        "properties": {
            "vector": {
                "type": "dense_vector",
                "dims": dimension,
                "similarity": "cosine",
                "index": True,
                "index_options": {"type": "int8_hnsw", "m": 16, "ef_construction": 100},
            },
            "data": {"type": "keyword", "index": False, "doc_values": False},  # float16, base64
            "digest": {"type": "keyword", "index": False, "doc_values": False},
            "site": {"type": "keyword"},
            "at": {"type": "date", "format": "epoch_millis"},
            **{name: one for name, one in dsl.LABEL_FIELDS.items() if name.startswith("label_")},
        },
    }


def index_of(server: Server, model: Model) -> str:
    name = f"{model.name}\n{model.version}\n{model.dimension}"
    return f"{server.index}-vectors-{hashlib.sha1(name.encode()).hexdigest()[:10]}"


class Vectors:
    """Those of one model. Raises StoreError."""

    def __init__(self, server: Server, model: Model) -> None:
        self._server, self._model = server, model
        self.index = index_of(server, model)
        self._is_made = False
        self._mean: tuple[float, int, Any] | None = None  # when, of how many, the mean

    async def make(self) -> None:
        if not self._is_made:
            await self._server.make(self.index, mapping(self._model.dimension))
            self._is_made = True

    async def count(self) -> int:
        await self.make()
        await self._server.ask(lambda es: es.indices.refresh(index=self.index))
        found = await self._server.ask(lambda es: es.count(index=self.index))
        return int(found["count"])

    async def kept(self, ids: Sequence[str]) -> dict[str, tuple[str, Any]]:
        """Digest of the text and vector of those that have one."""
        await self.make()
        docs = await self._server.look(self.index, list(ids), ["digest", "data"])
        return {d["_id"]: (d["_source"]["digest"], _read(d["_source"]["data"])) for d in docs}

    @staticmethod
    def document(vector: Any, digest: str) -> dict[str, Any]:
        """``digest``: of the text that was embedded."""
        numbers = [round(float(number), 6) for number in vector]
        return {"digest": digest, "vector": numbers, "data": _written(vector)}

    async def put(self, docs: dict[str, dict[str, Any]], gone: Sequence[str]) -> None:
        """:raises EmbedderError: the index refuses a vector"""
        names = list(docs)
        for start in range(0, len(names), BATCH):  # a large request blocks the loop
            operations: list[dict[str, Any]] = []
            for name in names[start : start + BATCH]:
                operations += [{"index": {"_id": name}}, docs[name]]
            for status, reason in await self._server.bulk(self.index, operations):
                if status >= 300:
                    raise EmbedderError(f"{self.index} refuses a vector: {reason}")
        if gone:
            lines = [{"delete": {"_id": name}} for name in gone]
            await self._server.ask(lambda es: es.bulk(index=self.index, operations=lines))

    async def nearest(
        self, vector: Any, limit: int, conditions: Sequence[dict[str, Any]] = ()
    ) -> list[tuple[str, float]]:
        """(id, cosine of what is left without the mean), the nearest first.

        :raises NoVectors: no article has one of this model yet
        """
        mean = await self.mean()
        if mean is None:
            raise NoVectors("no article has a vector of this model yet")
        asked = centred(np.asarray(vector, np.float32)[None, :], mean)[0]
        wanted = _WIDER * limit
        knn = {
            "field": "vector",
            # Without the mean: the vectors of the graph have it, but nearly the same share of it
            # each, so that their order is the one that is wanted.
            "query_vector": [float(number) for number in (asked if asked.any() else vector)],
            "k": wanted,
            "num_candidates": min(10_000, _CANDIDATES * limit),
            "filter": list(conditions),
        }
        body = {"size": wanted, "_source": ["data"], "knn": knn, "track_total_hits": False}
        found = await self._server.ask(lambda es: es.search(index=self.index, body=body))
        hits = found["hits"]["hits"]
        if not hits:
            return []
        rows = centred(np.stack([_read(hit["_source"]["data"]) for hit in hits]), mean)
        scores = rows @ asked
        order = np.argsort(-scores, kind="stable")[:limit]
        return [(hits[i]["_id"], float(scores[i])) for i in order]

    async def mean(self) -> Any:
        """None: there are no vectors yet."""
        now = time.monotonic()
        if self._mean is not None:
            at, many, mean = self._mean
            if now - at < (_OLD_S if many >= _SAMPLE else _OLD_OF_FEW_S):
                return mean
        await self.make()
        chance: dict[str, Any] = {"function_score": {"random_score": {}}}
        body = {"size": _SAMPLE, "_source": ["data"], "query": chance}
        found = await self._server.ask(lambda es: es.search(index=self.index, body=body))
        rows = [_read(hit["_source"]["data"]) for hit in found["hits"]["hits"]]
        if not rows:
            return None
        mean = mean_of(np.stack(rows))
        self._mean = (now, len(rows), mean)
        return mean


class Meaning:
    """The search by meaning of one store. ``deadline_s``: how long a search waits for the vector of
    its query."""

    def __init__(
        self, server: Server, embedder: Embedder, now_ms: Callable[[], int], deadline_s: float
    ) -> None:
        self.embedder = embedder
        self.vectors = Vectors(server, embedder.model)
        self._server, self._deadline_s = server, deadline_s
        self._follower = Follower(server, embedder, self.vectors, now_ms)

    async def follow(self, *, for_queries: bool) -> None:
        self._follower.start()
        if for_queries:
            await self.embedder.start()

    async def close(self) -> None:
        await self._follower.close()
        await self.embedder.close()

    async def ask(self, text: str) -> Any:
        """The vector of a query. Raises NoVectors."""
        try:
            async with asyncio.timeout(self._deadline_s):
                return checked(await self.embedder.query(cleaned(text)), self.embedder.model)
        except TimeoutError as exc:
            raise NoVectors(
                f"the vector of the query was not there within {self._deadline_s * 1000:.0f} ms"
            ) from exc
        except EmbedderError as exc:
            raise NoVectors(str(exc)) from exc

    async def near(self, article_id: str, limit: int) -> list[tuple[str, float]]:
        """The articles nearest to an article. Raises NoVectors."""
        kept = await self.vectors.kept([article_id])
        if article_id not in kept:
            raise NoVectors("this article has no vector yet")
        near = await self.vectors.nearest(kept[article_id][1], limit + 1)
        return [(other, score) for other, score in near if other != article_id]

    async def state(self) -> dict[str, int | str | None]:
        """For the statistics of the store."""
        return {
            "vectors": await self.vectors.count(),
            "vectors_behind": await self._follower.behind(),
            "vectors_model": str(self.embedder.model),
            "vectors_problem": self._follower.problem,
        }


class Follower:
    """``start`` it in a process that stays."""

    def __init__(
        self, server: Server, embedder: Embedder, vectors: Vectors, now_ms: Callable[[], int]
    ) -> None:
        self._server, self._embedder, self._vectors = server, embedder, vectors
        self._notes = Notes(server, f"{server.index}-vectors", now_ms)
        self._mark_name = f"{_MARK}:{vectors.index}"
        self._task: asyncio.Task[None] | None = None
        self.problem = ""
        self._tidied = False

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        await self._notes.let_go()

    async def behind(self) -> int:
        """Writes that are not followed yet, about as many as articles."""
        shards, _ = await self._mark()
        ends = await shards_of(self._server)
        return sum(max(0, end - shards.get(key, -1)) for key, _, _, end in ends)

    async def _run(self) -> None:
        while True:
            pause_s = PERIOD_S
            try:
                pause_s = await self.step()
                self.problem = ""
            except (EmbedderError, StoreError) as exc:
                pause_s = self._failed(str(exc))
            except Exception as exc:  # a fault of an embedder must not end the search page
                log.exception("vectors %s", self._vectors.index)
                pause_s = self._failed(f"{exc.__class__.__name__}: {exc}")
            await asyncio.sleep(pause_s)

    def _failed(self, why: str) -> float:
        if why != self.problem:
            log.warning(
                "vectors %s: %s; articles are stored and found by words until this is mended",
                self._vectors.index,
                why,
            )
        self.problem = why
        return RETRY_S

    async def step(self) -> float:
        """One batch; seconds until the next one."""
        if not await self._notes.hold():
            return BUSY_S
        await self._vectors.make()
        marks, version = await self._mark()
        for key, index, number, checkpoint in await shards_of(self._server):
            told = marks.get(key, -1)
            if checkpoint <= told:
                continue
            await self._server.ask(lambda es: es.indices.refresh(index=[self._server.index]))
            docs = await self._changed(index, number, told, checkpoint)
            await self._take(docs)
            marks[key] = docs[-1]["_seq_no"] if len(docs) == BATCH else checkpoint
            await self._notes.write(self._mark_name, {"shards": marks}, _MARK, version + 1)
            return 0.0
        await self._forget_others()
        return PERIOD_S

    async def _mark(self) -> tuple[dict[str, int], int]:
        """Per shard the sequence number up to which vectors are made; version of the note."""
        found = await self._notes.get(self._mark_name)
        if found is None:
            return {}, 0
        return dict(found["_source"]["body"]["shards"]), int(found["_version"])

    async def _changed(
        self, index: str, number: str, told: int, checkpoint: int
    ) -> list[dict[str, Any]]:
        body = {
            "size": BATCH,
            "seq_no_primary_term": True,
            "_source": ["data", "version", "gone", "at"],
            "query": {"range": {"_seq_no": {"gt": told, "lte": checkpoint}}},
            "sort": [{"_seq_no": "asc"}],
        }
        return await self._server.hits(body, index=index, preference=f"_shards:{number}")

    async def _take(self, docs: Sequence[dict[str, Any]]) -> None:
        alive = [doc for doc in docs if not doc["_source"]["gone"]]
        kept = await self._vectors.kept([doc["_id"] for doc in alive]) if alive else {}
        made: dict[str, dict[str, Any]] = {}
        for doc in alive:
            source = doc["_source"]
            article = codec.from_dict(
                source["data"], version=source["version"], cluster=None, gone=False
            )
            text = passage_text(article)
            digest = xxhash.xxh3_128_hexdigest(text.encode())
            known, vector = kept.get(doc["_id"], ("", None))
            if known != digest:
                vector = checked(await self._embedder.passage(text), self._embedder.model)
            fields: dict[str, Any] = {"site": article.site.lower(), "at": source["at"]}
            for label in labels_of(article):
                fields.setdefault(f"label_{label.key}", []).append(label.folded)
            made[doc["_id"]] = fields | self._vectors.document(vector, digest)
        await self._vectors.put(made, [d["_id"] for d in docs if d["_source"]["gone"]])
        # An article may be purged while its vector is made: after it was looked for in vain.
        there = {d["_id"] for d in await self._server.look(self._server.index, list(made), [])}
        await self._vectors.put({}, [name for name in made if name not in there])

    async def _forget_others(self) -> None:
        """Vectors of other models, once those of this one are complete."""
        if self._tidied:
            return
        own, pattern = self._vectors.index, f"{self._server.index}-vectors-*"
        found = await self._server.ask(lambda es: es.indices.get_alias(index=pattern))
        for index, of_index in dict(found).items():
            aliases = set(of_index["aliases"])
            if own in aliases or not any(_is_vectors(self._server, name) for name in aliases):
                continue
            # Called before the loop goes on.
            await self._server.ask(lambda es: es.indices.delete(index=index))  # noqa: B023
            log.info("vectors %s: those of another model are forgotten", index)
        self._tidied = True


def _is_vectors(server: Server, alias: str) -> bool:
    rest = alias.removeprefix(f"{server.index}-vectors-")
    return rest != alias and len(rest) == 10 and all(char in "0123456789abcdef" for char in rest)


def _written(vector: Any) -> str:
    return base64.b64encode(np.asarray(vector, np.float16).tobytes()).decode()


def _read(text: str) -> Any:
    return np.frombuffer(base64.b64decode(text), dtype=np.float16).astype(np.float32)
