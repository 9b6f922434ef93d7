"""Answering from the SQLite store: plans as FTS5 expressions, the bounded ranking, facets, hits."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import numpy as np

from newscrawler.items import Article
from newscrawler.store import codec, highlight
from newscrawler.store.base import COUNT_CAP, Hit, Query, SearchResult
from newscrawler.store.local import correct
from newscrawler.store.local.rank import BOUND, IN_A_ROW, NAME, WHOLE, Rank, idf, recency
from newscrawler.store.local.schema import EVERY, SEQUENCE_BITS, site_word, snapshot
from newscrawler.store.search import FEW, QUOTATION, Ask, Correct, Count, Frequencies, Plan, Term, ladder, parse

#: Frequencies are those among this many of the newest articles, kept for so many seconds.
SAMPLE, KEEP_S = 5_000, 60.0
FACET_DAYS = 31
#: Above any other score.
FIRST_OF_ALL = 10_000.0
_MINUTE_MS = 60_000
_LAST = (1 << 62) - 1
_ARTICLE = "a.data, a.version, a.gone, a.cluster"


def phrase(words: Iterable[str]) -> str:
    return '"' + " ".join(words) + '"'


def expression(plan: Plan, terms: Iterable[Term] | None = None, columns: str = "") -> str:
    """The plan as an FTS5 expression; its scored terms are its first phrases. ``terms`` and ``columns``
    put others in the place of the plan's terms."""
    exact = plan.is_exact
    columns = columns or ("{t b}" if exact else "- m")
    parts = []
    wanted = plan.terms if terms is None else tuple(terms)
    if every := [phrase(t.words(exact)) for t in wanted if t.words(exact)]:
        parts.append(f"{columns} : ({' AND '.join(every)})")
    if some := [phrase(t.words(exact)) for t in plan.any_of if t.words(exact)]:
        parts.append(f"{columns} : ({' OR '.join(some)})")
    parts += [f"{'{t}' if exact else '{ft}'} : {phrase(t.words(exact))}" for t in plan.title if t.words(exact)]
    parts += [f"{{m}} : {phrase(t.folded)}" for t in plan.authors if t.folded]
    if plan.sites:
        parts.append(f"{{m}} : ({' OR '.join(phrase([site_word(s)]) for s in plan.sites)})")
    if not parts:
        parts = [f"{{m}} : {phrase([EVERY])}"]
    match = " AND ".join(parts)
    if without := [
        f"({'{t b}' if t.has_diacritics else '- m'} : {phrase(t.words(t.has_diacritics))})" for t in plan.exclude
    ]:
        match = f"({match}) NOT ({' OR '.join(without)})"
    return match


def bounds(plan: Plan) -> tuple[int, int]:
    """First and last rowid of the plan's dates; minutes are the finest grain."""
    first = last = None
    if plan.after is not None:
        first = int(plan.after.timestamp() * 1000) // _MINUTE_MS << SEQUENCE_BITS
    if plan.before is not None:
        last = (-(-int(plan.before.timestamp() * 1000) // _MINUTE_MS) << SEQUENCE_BITS) - 1
    return (0 if first is None else max(0, first)), (_LAST if last is None else last)


class Reader:
    """One reading connection, used by one thread at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._db = connection
        self._rank = Rank(connection)
        self._shares: dict[tuple[str, bool], float] = {}
        self._sampled_at = float("-inf")
        self._sample_from, self._sample_size, self._newest = 0, 0, 0

    # ------------------------------------------------------------------ search
    def search(self, query: Query) -> SearchResult:
        started = time.perf_counter()
        first = parse(query)
        with snapshot(self._db):
            self._take_sample()
            plan = self.settle(first)
            result = SearchResult([], 0, relaxed=plan.relaxed, corrections=dict(plan.corrections))
            rows = self._page(plan, query, first, result)
            result.hits = self._hits(rows, plan)
            if query.facets:
                result.facets = self.facets(plan)
        result.took_ms = (time.perf_counter() - started) * 1000
        return result

    def settle(self, plan: Plan) -> Plan:
        """Walk the ladder until something is found."""
        steps = ladder(plan)
        answer: object = None
        try:
            while True:
                answer = self._answer(steps.send(answer))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def _answer(self, ask: Ask) -> object:
        if isinstance(ask, Count):
            return len(self._rows(ask.plan, ask.enough))
        if isinstance(ask, Frequencies):
            return {t: self._share(phrase(t.folded), False) for t in ask.terms}
        assert isinstance(ask, Correct)
        return correct.best(self._db, ask.words)

    def _page(self, plan: Plan, query: Query, first: Plan, result: SearchResult) -> list[tuple[int, float]]:
        """Rowids and scores of the page asked for; sets the total."""
        start, end = query.page * query.size, (query.page + 1) * query.size
        if query.collapse or (query.sort == "relevance" and not plan.is_filter_only):
            ranked, full = self._ranked(plan, query, first)
            if query.collapse:
                before = len(ranked)
                ranked = self._collapsed(ranked)
                self._total(plan, full, before, result)
                if not full:
                    result.total = len(ranked)
                return ranked[start:end]
            self._total(plan, full, len(ranked), result)
            page = ranked[start:end]
            if full and len(page) < query.size:
                page += self._beyond(plan, ranked, start - len(ranked) + len(page), query.size - len(page))
            return page
        rows = self._rows(plan, query.size, start)
        full = len(rows) == query.size or (not rows and start > 0)
        self._total(plan, full, start + len(rows), result)
        return [(row, 0.0) for row in rows]

    def _ranked(self, plan: Plan, query: Query, first: Plan) -> tuple[list[tuple[int, float]], bool]:
        """The newest ``BOUND`` matches, those in titles, those with all words in a row, best first. The
        flag says that there may be more matches."""
        if plan.is_filter_only or query.sort == "date":
            rows = self._rows(plan, BOUND)
            return [(row, 0.0) for row in rows], len(rows) == BOUND
        terms = [t for t in plan.terms + plan.any_of + plan.title if t.words(plan.is_exact)]
        column = "{t b}" if plan.is_exact else "- m"
        shares = [self._share(phrase(t.words(plan.is_exact)), plan.is_exact, column) for t in terms]
        self._rank.weigh([idf(s) for s in shares], [len(t.words(plan.is_exact)) for t in terms])
        scores = self._scored(plan, expression(plan), BOUND)
        full = len(scores) == BOUND
        if full:
            in_title = expression(plan, columns="{t}" if plan.is_exact else "{t ft}")
            scores |= self._scored(plan, in_title, BOUND)
        firsts: list[set[int]] = []
        if plan.whole is not None and not plan.any_of:
            whole = f"({expression(plan)}) AND ({column} : {phrase(plan.whole.words(plan.is_exact))})"
            in_a_row = self._scored(plan, whole, IN_A_ROW)
            gain = WHOLE * sum(idf(s) for s in shares)
            scores |= {row: score + gain for row, score in in_a_row.items()}
            if len(plan.whole.words(plan.is_exact)) >= QUOTATION:
                firsts.append(set(in_a_row))
        if first.is_exact and not plan.is_exact and not plan.relaxed:
            # Shown folded because few have it as typed: those few come first.
            firsts.append(set(self._rows(first, FEW)))
        at = np.fromiter(scores, dtype=np.int64, count=len(scores))
        values = np.fromiter(scores.values(), dtype=np.float64, count=len(scores)) * recency(at, self._newest)
        for group in firsts:
            values += np.isin(at, list(group)) * FIRST_OF_ALL
        order = np.lexsort((at, values))[::-1]
        return list(zip(at[order].tolist(), values[order].tolist(), strict=True)), full

    def _scored(self, plan: Plan, match: str, limit: int) -> dict[int, float]:
        return dict(
            self._db.execute(
                f"SELECT rowid, {NAME}(fts) FROM fts WHERE fts MATCH ? AND rowid BETWEEN ? AND ? "
                "ORDER BY rowid DESC LIMIT ?",
                (match, *bounds(plan), limit),
            )
        )

    def _beyond(self, plan: Plan, ranked: list[tuple[int, float]], skip: int, count: int) -> list[tuple[int, float]]:
        """Matches older than the ranked ones, newest first."""
        known = {row for row, _ in ranked}
        rows = [r for r in self._rows(plan, skip + count + len(known)) if r not in known]
        return [(row, 0.0) for row in rows[skip : skip + count]]

    def _rows(self, plan: Plan, limit: int, offset: int = 0) -> list[int]:
        cursor = self._db.execute(
            "SELECT rowid FROM fts WHERE fts MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ? OFFSET ?",
            (expression(plan), *bounds(plan), limit, offset),
        )
        return [row for (row,) in cursor]

    def _total(self, plan: Plan, may_be_more: bool, seen: int, result: SearchResult) -> None:
        result.total = seen
        if may_be_more:
            counted = self._count(expression(plan), *bounds(plan), COUNT_CAP + 1)
            result.total, result.total_is_capped = min(counted, COUNT_CAP), counted > COUNT_CAP

    def _count(self, match: str, first: int, last: int, limit: int) -> int:
        return self._db.execute(  # type: ignore[no-any-return]
            "SELECT count(*) FROM (SELECT 1 FROM fts WHERE fts MATCH ? AND rowid BETWEEN ? AND ? "
            "ORDER BY rowid DESC LIMIT ?)",
            (match, first, last, limit),
        ).get

    # ------------------------------------------------------------------ frequencies
    def _take_sample(self) -> None:
        now = time.monotonic()
        if now - self._sampled_at < KEEP_S and self._sample_size >= SAMPLE:
            return
        self._shares.clear()
        self._sampled_at = now
        rows: tuple[Any, ...] = self._db.execute(
            "SELECT min(row), max(row), count(*) FROM (SELECT row FROM doc ORDER BY row DESC LIMIT ?)", (SAMPLE,)
        ).fetchall()[0]
        self._sample_from, self._newest, self._sample_size = rows[0] or 0, rows[1] or 0, rows[2]

    def _share(self, words: str, is_exact: bool, column: str = "- m") -> float:
        """Share of the articles with a phrase: of the sample, or a small estimate when the sample has none."""
        key = (words, is_exact)
        if key not in self._shares:
            match = f"{column} : {words}"
            found: float = self._count(match, self._sample_from, _LAST, SAMPLE)
            if not found and self._sample_size >= SAMPLE:
                found = 0.5 * min(1, self._count(match, 0, self._sample_from, 1))
            self._shares[key] = found / max(1, self._sample_size)
        return self._shares[key]

    # ------------------------------------------------------------------ facets, hits
    def facets(self, plan: Plan) -> dict[str, dict[str, int]]:
        sites: dict[str, int] = {}
        days: dict[int, int] = {}
        cursor = self._db.execute(
            f"SELECT f.rowid >> {SEQUENCE_BITS}, d.site FROM (SELECT rowid FROM fts WHERE fts MATCH ? "
            "AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?) f JOIN doc d ON d.row = f.rowid",
            (expression(plan), *bounds(plan), COUNT_CAP),
        )
        for minute, site in cursor:
            sites[site] = sites.get(site, 0) + 1
            day = minute // 1440
            days[day] = days.get(day, 0) + 1
        names = dict(self._db.execute("SELECT n, id FROM site"))
        return {
            "site": {names[n]: c for n, c in sorted(sites.items(), key=lambda i: (-i[1], names[i[0]]))},
            "day": {_day(d): c for d, c in sorted(days.items(), reverse=True)[:FACET_DAYS]},
        }

    def _collapsed(self, ranked: list[tuple[int, float]]) -> list[tuple[int, float]]:
        seen: set[int] = set()
        kept = []
        for row, score in ranked:
            cluster = self._db.execute(
                "SELECT a.cluster FROM doc d JOIN article a ON a.n = d.n WHERE d.row = ?", (row,)
            ).get
            if cluster is None or cluster not in seen:
                kept.append((row, score))
                seen.add(cluster)
        return kept

    def _hits(self, rows: list[tuple[int, float]], plan: Plan) -> list[Hit]:
        hits = []
        for row, score in rows:
            stored = self._db.execute(
                f"SELECT {_ARTICLE} FROM doc d JOIN article a ON a.n = d.n WHERE d.row = ?", (row,)
            ).get
            article = self.article(stored)
            text, marks = highlight.snippet(article.content, plan)
            others = 0
            if stored[3] is not None:
                others = self._db.execute("SELECT count(*) - 1 FROM article WHERE cluster = ?", (stored[3],)).get
            hits.append(Hit(article, round(score, 4), text, marks, highlight.title_marks(article.title, plan), others))
        return hits

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
        row = self._db.execute(f"SELECT {_ARTICLE} FROM article a WHERE {where} LIMIT 1", (value,)).fetchone()
        return None if row is None else self.article(row)

    def versions(self, article_id: str) -> list[Article]:
        with snapshot(self._db):
            current = self.get(article_id)
            if current is None:
                return []
            older = self._db.execute(
                "SELECT v.data, v.version FROM version v JOIN article a ON a.n = v.n WHERE a.id = ? ORDER BY v.version",
                (article_id,),
            )
            return [codec.unpack(d, version=v, cluster=current.cluster, gone=False) for d, v in older] + [current]

    def cluster(self, canonical_id: str) -> list[Article]:
        rows = self._db.execute(
            f"SELECT {_ARTICLE} FROM article a JOIN article c ON c.id = ? AND a.cluster = c.cluster "
            "ORDER BY a.order_ms, a.n",
            (canonical_id,),
        ).fetchall()
        return [self.article(row) for row in rows]

    def batch(self, after_n: int, since_ms: int, count: int) -> tuple[list[Article], int]:
        """The next articles of a scan and where to go on; an empty list ends it."""
        rows: list[Any] = self._db.execute(
            f"SELECT {_ARTICLE}, a.n FROM article a WHERE a.n > ? AND a.gone = 0 AND a.stored_ms >= ? "
            "ORDER BY a.n LIMIT ?",
            (after_n, since_ms, count),
        ).fetchall()
        return [self.article(r[:4]) for r in rows], (rows[-1][4] if rows else after_n)

    def stats(self) -> dict[str, int | str | None]:
        one = self._db.execute
        count, gone = one("SELECT count(*) FROM doc").get, one("SELECT count(*) FROM article WHERE gone = 1").get
        newest = one("SELECT a.order_ms FROM doc d JOIN article a ON a.n = d.n ORDER BY d.row DESC LIMIT 1").get
        pages, free, size = one("PRAGMA page_count").get, one("PRAGMA freelist_count").get, one("PRAGMA page_size").get
        return {
            "kind": "sqlite",
            "articles": count,
            "gone": gone,
            "versions": count + gone + one("SELECT count(*) FROM version").get,
            "clusters": one("SELECT count(DISTINCT cluster) FROM article WHERE cluster IS NOT NULL").get,
            "bytes": (pages - free) * size,
            "newest": None if newest is None else datetime.fromtimestamp(newest / 1000, UTC).isoformat(),
        }


def _day(days_since_1970: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days_since_1970)).date().isoformat()
