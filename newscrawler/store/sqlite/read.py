"""Reading the SQLite store: single articles, and the hits of a search of the index beside it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import apsw

from newscrawler.items import Article
from newscrawler.store import codec, cursor, highlight
from newscrawler.store.base import (
    LEAST_RELATED,
    MOST_COPIES,
    RELATED_LOOKED_AT,
    Hit,
    Portion,
    Query,
    SearchResult,
    SearchTimeout,
    StoreUnavailable,
)
from newscrawler.store.fulltext.engine import is_of_the_machine
from newscrawler.store.fulltext.folder import Unreadable, View
from newscrawler.store.fulltext.index import FullText
from newscrawler.store.fulltext.search import Search
from newscrawler.store.labels import KEYS
from newscrawler.store.query_language import Plan, parse
from newscrawler.store.semantic.hybrid import Hybrid
from newscrawler.store.semantic.meaning import Meaning, NoVectors
from newscrawler.store.sqlite import whole
from newscrawler.store.sqlite.changes import Feed
from newscrawler.store.sqlite.schema import snapshot

T = TypeVar("T")
#: Changes that come in while a commit of the index is made, in a busy crawl.
FAR_BEHIND = 2_000
#: In a cursor; greater than any number of an article.
_KIND, _ABOVE_ALL = "sqlite", 1 << 62
#: Steps of SQLite's machine between two looks at the clock: a millisecond or less.
_STEPS = 20_000
_CLUSTER = "SELECT cluster FROM article WHERE n = ? AND gone = 0"
_ARTICLE = "a.data, a.version, a.gone, a.cluster"
_BY_NUMBER = f"SELECT {_ARTICLE} FROM article a WHERE a.n = ? AND a.gone = 0"
_MEMBERS = "SELECT n FROM article WHERE cluster = ? AND gone = 0 ORDER BY order_ms, n LIMIT ?"


class StoreReader:
    """One reading connection, used by one thread at a time."""

    def __init__(self, connection: apsw.Connection, index: FullText) -> None:
        self._db = connection
        self._index = index
        self._feed = Feed(connection)
        self._is_late = lambda: False  # whether the search that runs has used its time

    @property
    def connection(self) -> apsw.Connection:
        return self._db

    def inspect(self, meaning: Meaning | None) -> list[str]:
        """See WholeStore.inspect."""
        lines = whole.faults(self._db)
        self.refresh()
        view = self._index.view(self._feed)
        stored = self._db.execute("SELECT count(*) FROM article WHERE gone = 0").get
        indexed = view.articles if view is not None else 0
        behind = self._feed.last() - (view.mark.done if view is not None else 0)
        if indexed != stored and not behind:
            lines.append(f"the full-text index has {indexed:,} articles, the file {stored:,}")
        if meaning is not None:
            vectors = meaning.state(self._feed)["vectors"] or 0
            assert isinstance(vectors, int)
            if vectors < stored:
                lines.append(f"{stored - vectors:,} of {stored:,} articles have no vector yet")
            elif vectors > stored:
                lines.append(f"{vectors - stored:,} vectors belong to no article")
        return lines

    # ------------------------------------------------------------------ search
    def search(
        self, query: Query, meaning: Meaning | None = None, ask: Callable[[str], Any] | None = None
    ) -> SearchResult:
        """``ask`` gives the vector of a text, where there are any."""
        started = time.perf_counter()
        first = parse(query)

        def answer(view: View | None) -> SearchResult:
            result = SearchResult([], 0)
            behind = self._feed.last() - (view.mark.done if view else 0)
            result.behind = behind if behind > FAR_BEHIND else 0
            if view is None:
                result.facets = _NO_FACETS if query.facets else {}
                return result
            search = self._searching(view, new_gains=query.sort == "best")
            plan = first if query.strict else search.settle(first)
            found = None
            if meaning is not None and ask is not None and query.mode != "keyword":
                found = Hybrid(
                    search, meaning, ask, self.clusters_of, self.members_of, query, first
                ).page(plan)
                result.mode, result.meaning = found.mode, found.used
            page = search.page(plan, query, first) if found is None else found.page
            result.total, result.total_is_capped = page.total, page.total_is_capped
            if page.total and not query.collapse:
                result.in_a_row = search.in_a_row(plan)
            result.relaxed, result.corrections = plan.relaxed, dict(plan.corrections)
            result.read_as, result.notes = plan.read_as, plan.notes
            if query.facets:
                result.facets = search.facets(plan, query.zone)
            with snapshot(self._db):
                only_near = found.only_near if found else frozenset()
                of_clusters = (
                    self._first_published(page.hits, plan, search) if query.collapse else {}
                )
                result.hits = self._hits(page.hits, plan, only_near, of_clusters)
            return result

        with self.limited(query.limit_s):
            result = self._answered(answer, query.limit_s)
        result.took_ms = (time.perf_counter() - started) * 1000
        return result

    def facets(self, query: Query) -> dict[str, dict[str, int]]:
        first = parse(query)

        def answer(view: View | None) -> dict[str, dict[str, int]]:
            if view is None:
                return dict(_NO_FACETS)
            search = self._searching(view)
            return search.facets(search.settle(first), query.zone)

        return self._answered(answer, None)

    def portion(self, query: Query, text: str, size: int) -> Portion:
        """See WholeStore.portion. The order is that of storing, the newest first: an article keeps
        its number when it changes, and new ones have greater ones."""

        def answer(view: View | None) -> Portion:
            if view is None:
                return Portion([], "", 0)
            search = self._searching(view)
            if text:
                plan, place, total = cursor.read(_KIND, text)
                before = place[0] if place and isinstance(place[0], int) else 0
            else:
                plan, before = search.settle(parse(query)), _ABOVE_ALL
                total = search.count(plan)
            numbers = search.portion(plan, before, size)
            with snapshot(self._db):
                found = [self._numbered(n) for n in numbers]
            more = cursor.written(_KIND, plan, [numbers[-1]], total) if numbers else ""
            return Portion(
                [article for article in found if article is not None],
                more if len(numbers) == size else "",
                total,
                plan.relaxed,
                plan.read_as,
            )

        with self.limited(query.limit_s):
            return self._answered(answer, query.limit_s)

    def days(self, query: Query) -> dict[str, dict[str, int]]:
        first = parse(query)

        def answer(view: View | None) -> dict[str, dict[str, int]]:
            if view is None:
                return {}
            search = self._searching(view)
            return search.days(search.settle(first), query.zone)

        with self.limited(query.limit_s):
            return self._answered(answer, query.limit_s)

    def values(self, query: Query, key: str, within: str) -> dict[str, int]:
        first = parse(query)

        def answer(view: View | None) -> dict[str, int]:
            if view is None:
                return {}
            search = self._searching(view)
            return search.values(search.settle(first), key, within)

        with self.limited(query.limit_s):
            return self._answered(answer, query.limit_s)

    def _numbered(self, n: int) -> Article | None:
        stored = self._db.execute(
            f"SELECT {_ARTICLE} FROM article a WHERE a.n = ? AND a.gone = 0", (n,)
        ).fetchone()
        return None if stored is None else self.article(stored)

    def refresh(self) -> None:
        """Waits until a search finds everything that is stored now."""
        self._index.wait_for(self._feed.last(), self._feed)

    def _searching(self, view: View, *, new_gains: bool = True) -> Search:
        return Search(
            view, lambda: self._index.dictionary(view), self._check_time, new_gains=new_gains
        )

    def _answered(self, answer: Callable[[View | None], T], limit_s: float | None) -> T:
        """Returns what the index answers. One that turns out to be damaged is made anew and asked
        again."""
        wait_s = None if limit_s is None else limit_s / 2
        for _ in range(2):
            self._check_time()
            view = self._index.view(self._feed, wait_s)
            try:
                return answer(view)
            except Unreadable as exc:
                if is_of_the_machine(exc.cause):
                    raise StoreUnavailable(f"full-text index {self._index.path}: {exc}") from exc
                self._index.mark_damaged(exc)
        raise StoreUnavailable(f"full-text index {self._index.path}: is being made anew")

    @contextmanager
    def limited(self, limit_s: float | None) -> Iterator[None]:
        """Gives up what is done inside after so many seconds. Raises SearchTimeout."""
        if limit_s is None:
            yield
            return
        end = time.monotonic() + limit_s
        self._is_late = lambda: time.monotonic() > end
        self._db.set_progress_handler(self._is_late, _STEPS)
        try:
            yield
        except apsw.InterruptError as exc:
            raise SearchTimeout(limit_s) from exc
        finally:
            self._db.set_progress_handler(None)
            self._is_late = lambda: False

    def _check_time(self) -> None:
        if self._is_late():
            raise apsw.InterruptError("the time of the search is over")

    def _first_published(
        self, found: list[tuple[int, float]], plan: Plan, search: Search
    ) -> dict[int, list[int]]:
        """Of each hit that has copies: those of them that match, itself among them, the first
        published first."""
        clusters = self.clusters_of([n for n, _ in found])
        members = self.members_of({c for c in clusters.values() if c is not None})
        matching = search.among(plan, [n for of_one in members.values() for n in of_one])
        copies = {}
        for n, cluster in clusters.items():
            if cluster is not None and (kept := [m for m in members[cluster] if m in matching]):
                copies[n] = kept
        return copies

    def members_of(self, clusters: Iterable[int]) -> dict[int, list[int]]:
        """The articles with each of these labels that are not gone, the first published first."""
        return {
            cluster: [n for (n,) in self._db.execute(_MEMBERS, (cluster, 2 * MOST_COPIES))]
            for cluster in clusters
        }

    def _hits(
        self,
        found: list[tuple[int, float]],
        plan: Plan,
        only_near: frozenset[int],
        of_clusters: dict[int, list[int]],
    ) -> list[Hit]:
        """The articles of a page. One that went since the index saw it is left out."""
        hits = []
        for found_n, score in found:
            n, *others_n = of_clusters.get(found_n, [found_n])
            stored = self._db.execute(_BY_NUMBER, (n,)).get
            if stored is None:
                continue
            article = self.article(stored)
            text, marks = highlight.snippet(article.content, plan)
            others = 0
            if stored[3] is not None:
                others = self._db.execute(
                    "SELECT count(*) - 1 FROM article WHERE cluster = ?", (stored[3],)
                ).get
            title = highlight.title_marks(article.title, plan)
            copies = [
                self.article(row)
                for copy in others_n[:MOST_COPIES]
                if (row := self._db.execute(_BY_NUMBER, (copy,)).fetchone()) is not None
            ]
            hits.append(
                Hit(article, round(score, 4), text, marks, title, others, n in only_near, copies)
            )
        return hits

    def clusters_of(self, numbers: Sequence[int]) -> dict[int, int | None]:
        """Label of the near-duplicates of each of these articles that is not gone;
        None: it is alone."""
        one = self._db.execute
        rows = ((n, one(_CLUSTER, (n,)).fetchone()) for n in numbers)
        return {n: row[0] for n, row in rows if row is not None}

    def related(self, article_id: str, size: int, meaning: Meaning) -> list[Article]:
        """See ArticleStore.related."""
        row: Any = self._db.execute(
            "SELECT n, cluster FROM article WHERE id = ?", (article_id,)
        ).fetchone()
        if row is None:
            return []
        try:
            near = meaning.near(row[0], RELATED_LOOKED_AT)
        except NoVectors:
            return []
        clusters = self.clusters_of([n for n, _ in near])
        seen = {row[1]} - {None}
        found: list[Article] = []
        for n, score in near:
            if score < LEAST_RELATED or len(found) == size:
                break
            if n not in clusters or clusters[n] in seen:
                continue
            seen |= {clusters[n]} - {None}
            stored = self._db.execute(
                f"SELECT {_ARTICLE} FROM article a WHERE a.n = ?", (n,)
            ).fetchone()
            found.append(self.article(stored))
        return found

    # ------------------------------------------------------------------ single articles
    def article(self, stored: Any) -> Article:
        data, version, gone, cluster = stored
        canonical = None
        if cluster is not None:
            canonical = self._db.execute(
                "SELECT id FROM article WHERE cluster = ? ORDER BY order_ms, n LIMIT 1", (cluster,)
            ).get
        return codec.unpack(data, version=version, cluster=canonical, gone=bool(gone))

    def get(self, article_id: str) -> Article | None:
        return self._one("a.id = ?", article_id)

    def find_url(self, url: str) -> Article | None:
        return self._one("a.url = ? ORDER BY a.gone, a.n DESC", url) or self._one(
            "a.canonical = ? ORDER BY a.gone, a.n DESC", url
        )

    def _one(self, where: str, value: str) -> Article | None:
        row = self._db.execute(
            f"SELECT {_ARTICLE} FROM article a WHERE {where} LIMIT 1", (value,)
        ).fetchone()
        return None if row is None else self.article(row)

    def versions(self, article_id: str) -> list[Article]:
        with snapshot(self._db):
            current = self.get(article_id)
            if current is None:
                return []
            older = self._db.execute(
                "SELECT v.data, v.version FROM version v JOIN article a ON a.n = v.n WHERE a.id = ?"
                " ORDER BY v.version",
                (article_id,),
            )
            return [
                codec.unpack(d, version=v, cluster=current.cluster, gone=False) for d, v in older
            ] + [current]

    def cluster(self, canonical_id: str) -> list[Article]:
        rows = self._db.execute(
            f"SELECT {_ARTICLE} FROM article a JOIN article c ON c.id = ? AND a.cluster = c.cluster"
            " ORDER BY a.order_ms, a.n",
            (canonical_id,),
        ).fetchall()
        return [self.article(row) for row in rows]

    def batch(self, after_n: int, since_ms: int, count: int) -> tuple[list[Article], int]:
        """The next articles of a scan and where to go on; an empty list ends it."""
        rows: list[Any] = self._db.execute(
            f"SELECT {_ARTICLE}, a.n FROM article a WHERE a.n > ? AND a.gone = 0 AND a.stored_ms >="
            " ? ORDER BY a.n LIMIT ?",
            (after_n, since_ms, count),
        ).fetchall()
        return [self.article(r[:4]) for r in rows], (rows[-1][4] if rows else after_n)

    def stats(self, meaning: Meaning | None = None) -> dict[str, int | str | None]:
        one = self._db.execute
        count, gone = (
            one("SELECT count(*) FROM article WHERE gone = 0").get,
            one("SELECT count(*) FROM article WHERE gone = 1").get,
        )
        newest = one("SELECT max(order_ms) FROM article WHERE gone = 0").get
        pages, free, size = (
            one("PRAGMA page_count").get,
            one("PRAGMA freelist_count").get,
            one("PRAGMA page_size").get,
        )
        index = self._index.state(self._feed)
        return {
            "kind": "sqlite",
            "articles": count,
            "gone": gone,
            "versions": count + gone + one("SELECT count(*) FROM version").get,
            "clusters": one(
                "SELECT count(DISTINCT cluster) FROM article WHERE cluster IS NOT NULL"
            ).get,
            "bytes": (pages - free) * size + index_bytes(self._index.path),
            "newest": None
            if newest is None
            else datetime.fromtimestamp(newest / 1000, UTC).isoformat(),
            "index_behind": index.behind,
            "index_problem": index.problem,
            **({} if meaning is None else meaning.state(self._feed)),
        }


_NO_FACETS: dict[str, dict[str, int]] = {"site": {}, "day": {}, **{key: {} for key in KEYS}}


def index_bytes(path: Path) -> int:
    total = 0
    for file in path.glob("*"):
        with contextlib.suppress(OSError):  # the engine deletes what it has merged
            total += file.stat().st_size
    return total
