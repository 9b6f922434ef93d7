"""The connection to Elasticsearch 9: the only module that imports its client. Errors leave
as StoreUnavailable."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from elastic_transport import TlsError
from elasticsearch import ApiError, AsyncElasticsearch, TransportError

from newscrawler.store.base import SearchTimeout, StoreUnavailable
from newscrawler.store.elasticsearch import query as dsl
from newscrawler.utils.display import url_shown

logger = logging.getLogger(__name__)

T = TypeVar("T")
_TIMEOUT_S = 30
#: Waits before the server is asked again after "too many requests"; then the batch goes back.
_PAUSES_S = (0.2, 0.5, 1.0)
#: A request body stays under the megabyte from which on aiohttp warns that sending it
#: blocks the loop.
_BULK_CHARS = 500_000
#: Above those of Elasticsearch's own templates (100) and of most others.
_PRIORITY = 300
_READ_ONLY = "cluster_block_exception"


class Busy(StoreUnavailable):
    """The server has too much to do; the same request may pass a moment later."""


class Server:
    """Connects, and creates the two indices that are missing, at the first request."""

    def __init__(self, uri: str, index: str, api_key: str | None, ca_file: str = "") -> None:
        """Raises ValueError where ``ca_file`` is no file of certificates."""
        self.index, self.old_versions = index, f"{index}-versions"
        #: Alias for other programs: without articles that are gone.
        self.readers = f"{index}-news"
        #: For messages: without user and password.
        self.name = f"article store {url_shown(uri)}"
        self._uri, self._api_key = uri, api_key
        self._tls: dict[str, Any] = {}
        if ca_file and uri.startswith("https://"):
            self._tls["ssl_context"] = _trusting(ca_file)
        self._client: AsyncElasticsearch | None = None
        self._ready = False
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        async with self._opening:
            if self._ready:
                return
            if self._client is None:
                # Each failure leaves as StoreUnavailable: a warning beside it tells it twice.
                logging.getLogger("elastic_transport.node_pool").setLevel(logging.ERROR)
                self._client = AsyncElasticsearch(
                    self._uri,
                    api_key=self._api_key,
                    request_timeout=_TIMEOUT_S,
                    max_retries=0,
                    retry_on_timeout=False,
                    **self._tls,
                )
            with self._translated():
                await self._create(self.index, dsl.ARTICLES, self._make_articles)
                await self._create(self.old_versions, dsl.VERSIONS)
            self._ready = True

    async def make(self, alias: str, mapping: dict[str, Any]) -> None:
        """One more index beside the two, where it is missing."""
        await self.open()
        with self._translated():
            await self._create(alias, mapping)

    async def _create(
        self,
        alias: str,
        mapping: dict[str, Any],
        make: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """Behind ``alias``, if missing. ``make`` makes it, else it is as ``mapping`` says."""
        assert self._client is not None
        if await self._client.indices.exists_alias(name=alias):
            found = await self._client.indices.get_mapping(index=alias)
            schema = max(_schema(one) for one in found.values())
            if schema > dsl.SCHEMA:
                raise StoreUnavailable(
                    f"{self.name}: index {alias} is of a newer version ({schema}) of this program"
                )
            await self._extend(alias, mapping, found)
            return
        try:
            if make is not None:
                await make(f"{alias}-{dsl.SCHEMA}")
            else:
                await self._client.indices.create(
                    index=f"{alias}-{dsl.SCHEMA}",
                    mappings=mapping,
                    settings=dsl.SETTINGS,
                    aliases={alias: {}},
                )
        except ApiError as exc:
            if exc.error != "resource_already_exists_exception":  # another worker was first
                raise

    async def _make_articles(self, name: str) -> None:
        await self.make_from_template(name, {self.index: {}, self.readers: dsl.NOT_GONE})

    async def make_from_template(self, name: str, aliases: dict[str, Any]) -> None:
        """An index of articles, made as the templates say where this program may keep some."""
        assert self._client is not None
        body: dict[str, Any] = {"aliases": aliases}
        with self._translated():
            if not await self._keep_templates():
                body |= {"mappings": dsl.ARTICLES, "settings": dsl.SETTINGS}
            try:
                await self._client.indices.create(index=name, **body)
            except ApiError as exc:
                if exc.error != "resource_already_exists_exception":  # another worker was first
                    raise

    async def _keep_templates(self) -> bool:
        """The composable template of the indices of articles: mapping and settings of this program,
        then those of ``<index>@custom`` where somebody has made that component."""
        assert self._client is not None
        base, custom = f"{self.index}@newscrawler", f"{self.index}@custom"
        try:
            await self._client.cluster.put_component_template(
                name=base, template={"mappings": dsl.ARTICLES, "settings": dsl.SETTINGS}
            )
            await self._client.indices.put_index_template(
                name=self.index,
                index_patterns=[f"{self.index}-{dsl.SCHEMA}", f"{self.index}-{dsl.SCHEMA}-*"],
                composed_of=[base, custom],
                ignore_missing_component_templates=[custom],
                priority=_PRIORITY,
                meta={"schema": dsl.SCHEMA, "made_by": "newscrawler"},
            )
        except ApiError as exc:
            if exc.status_code != 403:
                raise
            logger.warning("Index template may not be made alias=%s", self.index)
            return False
        return True

    async def _extend(self, alias: str, mapping: dict[str, Any], found: Any) -> None:
        """Adds the fields that an index of an earlier program does not have. Doing it
        twice changes nothing. Its old documents do not have them: see reindex.py."""
        assert self._client is not None
        known = set.intersection(
            *(set(one["mappings"].get("properties", ())) for one in found.values())
        )
        missing = {k: v for k, v in mapping["properties"].items() if k not in known}
        old = min(_schema(one) for one in found.values()) < mapping["_meta"]["schema"]
        if not missing and not old:
            return
        change: dict[str, Any] = {"properties": missing}
        if old:  # a program that cannot read what is written now says so, and leaves it alone
            change["meta"] = mapping["_meta"] | {"extended": True}
        try:
            await self._client.indices.put_mapping(index=alias, **change)
        except ApiError as exc:
            if exc.status_code != 403:
                raise
            # A key that may only read: such a reader finds all there is, and no value
            # of the new fields.
            logger.warning("Index may not be extended alias=%s missing=%s", alias, sorted(missing))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client, self._ready = None, False

    async def refresh(self, *indices: str) -> None:
        names = list(indices) or [self.index, self.old_versions]
        await self.ask(lambda es: es.indices.refresh(index=names))

    async def search(self, body: dict[str, Any], limit_s: float | None = None) -> Any:
        """Raises SearchTimeout where the server had to stop after ``limit_s``: half
        an answer is none."""
        body = body | {"_source": _wanted(body.get("_source"))} if "_source" in body else body
        if limit_s is not None:
            body = body | {"timeout": f"{max(1, round(limit_s * 1000))}ms"}
        found = await self.ask(lambda es: es.search(index=self.index, body=body))
        if limit_s is not None and found["timed_out"]:
            raise SearchTimeout(limit_s)
        return _whole(found)

    async def look(
        self, index: str, ids: list[str], fields: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """The documents that exist, as they are now (also those that search does not find yet)."""
        if not ids:
            return []
        wanted = _wanted(fields)
        found = await self.ask(lambda es: es.mget(index=index, ids=ids, source_includes=wanted))
        docs = [d for d in found["docs"] if d.get("found")]
        return [d | {"_source": dsl.with_data(d["_source"])} for d in docs]

    async def found(self, body: dict[str, Any], **more: Any) -> Any:
        """Of a view that ``body`` names (``pit``), or of ``index=``."""
        body = body | {"_source": _wanted(body.get("_source"))}
        return _whole(await self.ask(lambda es: es.search(body=body, **more)))

    async def hits(self, body: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = (await self.found(body, **more))["hits"]["hits"]
        return hits

    async def bulk(self, index: str, operations: list[dict[str, Any]]) -> list[tuple[int, str]]:
        """Status and reason of each document; 2xx, 409 and 4xx for a faulty document. What the
        server has no room for now is offered again a few times. Raises StoreUnavailable.

        :param operations: action and document by turns"""
        answers: list[tuple[int, str]] = []
        part: list[dict[str, Any]] = []
        chars = 0
        for action, document in zip(operations[::2], operations[1::2], strict=True):
            size = sum(len(v) for v in document.values() if isinstance(v, str)) + len(
                str(document.get("data"))
            )
            if part and chars + size > _BULK_CHARS:
                answers += await self._bulk(index, part)
                part, chars = [], 0
            part += [action, document]
            chars += size
        return answers + (await self._bulk(index, part) if part else [])

    async def _bulk(self, index: str, operations: list[dict[str, Any]]) -> list[tuple[int, str]]:
        answers: dict[int, tuple[int, str]] = {}
        open_ = list(range(len(operations) // 2))
        for pause in (*_PAUSES_S, None):
            if not open_:
                break
            lines = [operations[2 * i + k] for i in open_ for k in (0, 1)]
            again = []
            reason = "too many requests"
            try:
                got = await self.ask(
                    # Called before the loop goes on.
                    lambda es: es.bulk(index=index, operations=lines)  # noqa: B023
                )
            except Busy as exc:
                again, reason = open_, str(exc)
            else:
                for i, item in zip(open_, got["items"], strict=True):
                    status, error = item["index"]["status"], item["index"].get("error") or {}
                    self._refuse_if_blocked(error)
                    if status == 429 or status >= 500:
                        again.append(i)
                        reason = error.get("type", reason)
                    else:
                        answers[i] = (
                            status,
                            (
                                f"{error.get('type')}: {str(error.get('reason'))[:200]}"
                                if error
                                else ""
                            ),
                        )
            open_ = again
            if open_ and pause is None:
                raise StoreUnavailable(
                    f"{self.name}: has no room for {len(open_)} article(s) now ({reason})"
                )
            if open_ and pause is not None:
                await asyncio.sleep(pause)
        return [answers[i] for i in range(len(operations) // 2)]

    async def ask(self, request: Callable[[AsyncElasticsearch], Awaitable[T]]) -> T:
        if not self._ready:
            await self.open()
        assert self._client is not None
        with self._translated():
            return await request(self._client)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except ApiError as exc:
            body = exc.body if isinstance(exc.body, dict) else {}
            error = body.get("error")
            error = error if isinstance(error, dict) else {}
            self._refuse_if_blocked(error)
            if exc.status_code == 429:
                raise Busy(f"{self.name}: overloaded ({_status(exc)}); try again later") from exc
            if exc.status_code in (401, 403):
                raise StoreUnavailable(
                    f"{self.name}: refused ({_status(exc)}); is"
                    " ARTICLE_STORE_API_KEY, or user and password in ARTICLE_STORE, set and right?"
                ) from exc
            raise StoreUnavailable(f"{self.name}: answered {_status(exc)}: {exc.message}") from exc
        except TlsError as exc:
            raise StoreUnavailable(
                f"{self.name}: its certificate is not trusted: {_why_not(exc)} (an authority of"
                " your own: ARTICLE_STORE_CA_FILE)"
            ) from exc
        except TransportError as exc:
            raise StoreUnavailable(
                f"{self.name}: cannot be reached: {_line(exc)}{self._hint(exc)}"
            ) from exc

    def _hint(self, error: TransportError) -> str:
        # A server that speaks TLS hangs up on a request that does not.
        hung_up = "disconnected" in str(error.message)
        return " (does it want https://?)" if hung_up and self._uri.startswith("http://") else ""

    def _refuse_if_blocked(self, error: dict[str, Any]) -> None:
        # The same status (429) as overload, but waiting does not help: somebody has to make room.
        if error.get("type") == _READ_ONLY:
            raise StoreUnavailable(
                f"{self.name}: read-only, its disk is nearly full: {error.get('reason')}"
            )


def _trusting(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise ValueError(
            f"ARTICLE_STORE_CA_FILE={ca_file} is not a readable PEM file: {exc}"
        ) from exc


def _why_not(error: TlsError) -> str:
    """What is wrong with a certificate, in OpenSSL's words; the client gives the text alone."""
    _, is_said, reason = str(error.message).partition("certificate verify failed: ")
    return reason.partition(" (_ssl")[0].rstrip(".") if is_said else _line(error)


def _status(error: ApiError) -> str:
    # The answer to a HEAD has no body; the client's name of its error is "None" then.
    return f"{error.status_code} {error.error}" if error.body else str(error.status_code)


def _line(error: TransportError) -> str:
    return " ".join(str(error.message).split())


def _schema(index: Any) -> int:
    found: int = index["mappings"].get("_meta", {}).get("schema", 0)
    return found


def _wanted(fields: Any) -> Any:
    """``data`` is an article: with the fields of it that stand beside ``data``."""
    if isinstance(fields, list) and "data" in fields:
        return [*fields, *dsl.READABLE]
    return fields


def _whole(found: Any) -> Any:
    for hit in found["hits"]["hits"]:
        if "_source" in hit:
            hit["_source"] = dsl.with_data(hit["_source"])
    return found
