"""The pages for people: rendered here, complete without JavaScript, nothing loaded
from elsewhere."""

from __future__ import annotations

import hashlib
import importlib.resources
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import jinja2
from fastapi import Depends, FastAPI, HTTPException, Path, Request
from fastapi import Query as Parameter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from newscrawler.api import text
from newscrawler.api.access import COOKIE, TokenError
from newscrawler.api.data import DataReader, plain
from newscrawler.fleet.freshness import span
from newscrawler.items import FIELDS, Article, Field
from newscrawler.store import citation
from newscrawler.store.base import COUNT_CAP, DEEPEST, Query, SearchResult
from newscrawler.store.labels import FACETED, KEYS, folded, labels_of

PACKAGE = importlib.resources.files("newscrawler.api")
#: How our own files are called: no path, no hidden file, no sign that a file system takes amiss.
_STATIC_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: Facets that are shown; the rest is behind the search itself.
SITES_SHOWN = 12
LABELS_SHOWN = 12
DAYS_SHOWN = 14
#: Stored articles whose whole text would make the diff of two versions slow are cut
#: here, characters.
DIFF_MOST = 60_000

_LABELLED = tuple(f for f in FIELDS if f.label)
#: What the page of an article shows of a change: what makes a version, and the lists beside it; the
#: text comes last.
_CHANGES_SHOWN = tuple(
    f for f in _LABELLED if f.versioned or (f.compared and f.type == "texts") if f.name != "content"
)
ArticleId = Annotated[
    str, Path(pattern=r"^[0-9a-fA-F]{8,64}$", description="the article's id, hexadecimal")
]


def wants_page(request: Request) -> bool:
    path = request.url.path
    return not path.startswith(
        ("/api/", "/metrics", "/healthz", "/openapi")
    ) and "text/html" in request.headers.get("accept", "")


def read_static(name: str) -> bytes:
    return PACKAGE.joinpath("static", name).read_bytes()  # also from inside an egg


@cache
def static_url(name: str) -> str:
    """With a digest of the content, so that a new version is never hidden by a browser's cache."""
    return f"/static/{name}?v={hashlib.blake2b(read_static(name), digest_size=6).hexdigest()}"


def _load(name: str) -> str | None:
    try:
        return PACKAGE.joinpath("templates", name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


@cache
def environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FunctionLoader(_load),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(static_url=static_url)
    env.filters.update(
        moment=text.moment,
        web_url=text.web_url,
        size=text.size_text,
        thousands=lambda n: "–" if n is None else f"{n:,}",
        seconds=lambda s: f"{s:.0f} s" if s >= 10 else f"{s:.1f} s",
    )
    return env


def render(name: str, status_code: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(environment().get_template(name).render(**values), status_code=status_code)


def error_page(status: int, message: str) -> Response:
    return render("error.html", status, status=status, message=message)


# ---------------------------------------------------------------- search


def _label_parameters() -> Callable[..., tuple[tuple[str, str], ...]]:
    """A dependency of routes with one parameter for each field that is a facet:
    ``keyword=a&keyword=b``."""

    def chosen(**values: list[str] | None) -> tuple[tuple[str, str], ...]:
        return tuple((key, v.strip()) for key, of in values.items() for v in of or () if v.strip())

    def parameter(field: Field) -> inspect.Parameter:
        said = f"{field.label.lower()} that an article must have, all of them, compared folded"
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
    sort: str = "relevance"
    sites: tuple[str, ...] = ()
    after: str = ""
    before: str = ""
    page: int = 0
    labels: tuple[tuple[str, str], ...] = ()

    def of(self, key: str) -> tuple[str, ...]:
        """The values that are asked for of a field that is a facet."""
        return tuple(value for name, value in self.labels if name == key)

    def without(self, key: str, value: str) -> str:
        """The address of this search without one of these values."""
        left = tuple(v for v in self.of(key) if folded(v) != folded(value))
        return self.link(**{key: left})

    def widened(self) -> str:
        """The address of this search without any filter."""
        return self.link(site=(), after="", before="", **dict.fromkeys(KEYS, ()))

    def link(self, **changes: Any) -> str:
        """The address of this search with ``changes``; page 0 unless it is changed itself."""
        values: dict[str, Any] = {
            "q": self.q,
            "sort": self.sort,
            "site": self.sites,
            **{key: self.of(key) for key in KEYS},
            "after": self.after,
            "before": self.before,
        }
        values |= {"page": 0, **changes}
        default = {"sort": "relevance", "page": 0}
        kept = {
            name: value for name, value in values.items() if value and value != default.get(name)
        }
        return "/?" + urlencode(kept, doseq=True) if kept else "/"

    def feed(self, form: str) -> str:
        """The address of this search as a feed: rss, atom or json."""
        values = {"q": self.q, "site": self.sites, **{key: self.of(key) for key in KEYS}}
        kept = {name: value for name, value in values.items() if value}
        return f"/feed.{form}" + ("?" + urlencode(kept, doseq=True) if kept else "")

    def at(self, path: str, **more: str) -> str:
        """The same search at another address, without its order and page."""
        return path + "?" + self.link(sort="", **more).partition("?")[2]

    @property
    def is_narrowed(self) -> bool:
        return bool(self.sites or self.labels or self.after or self.before)

    @property
    def is_empty(self) -> bool:
        return not (self.q or self.is_narrowed)


def _hits(result: SearchResult, reader: DataReader) -> list[dict[str, Any]]:
    rows = []
    for hit in result.hits:
        article = hit.article
        rows.append(
            {
                "id": article.id,
                "title": text.highlighted(article.title, hit.title_marks),
                "snippet": text.highlighted(hit.snippet, hit.snippet_marks),
                "url": text.web_url(article.url),
                "similar": hit.similar,
                "by_meaning": hit.by_meaning,
                **_byline(article, reader),
            }
        )
    return rows


def _byline(article: Article, reader: DataReader) -> dict[str, Any]:
    facts = reader.deps.sites.get(article.site)
    zone = text.zone_of(facts.zone) if facts else None
    published = article.published
    return {
        "site": article.site,
        "site_name": facts.name if facts else article.site,
        "published": published,
        "published_text": text.moment(published, zone),
        "published_iso": plain(published),
        "ago": text.ago(published, reader.now()),
        "authors": article.authors or article.credits,
        "section": article.section,
        "lang": article.language or (facts.language if facts else ""),
        "rtl": text.is_right_to_left(article.language),
    }


def _facets(result: SearchResult, asked: Asked, reader: DataReader) -> dict[str, Any]:
    sites = result.facets.get("site", {})
    rows = []
    for site, count in list(sites.items())[:SITES_SHOWN]:
        facts = reader.deps.sites.get(site)
        name = facts.name if facts else site
        rows.append(
            {
                "name": name,
                "count": count,
                "link": asked.link(site=(site,)),
                "on": site in asked.sites,
            }
        )
    days = sorted(result.facets.get("day", {}).items(), reverse=True)[:DAYS_SHOWN]
    top = max((count for _, count in days), default=1)
    day_rows = []
    for day, count in days:
        start = datetime.fromisoformat(day)
        after = (start + timedelta(days=1)).date().isoformat()
        is_on = (asked.after, asked.before) == (day, after)
        row = {
            "name": f"{start:%a} {start.day} {start:%b}",
            "count": count,
            "width": max(1, round(100 * count / top)),
        }
        day_rows.append(row | {"link": asked.link(after=day, before=after), "on": is_on})
    return {
        "sites": rows,
        "more_sites": max(0, len(sites) - SITES_SHOWN),
        "days": day_rows,
        "labels": [_label_facet(field, result, asked) for field in FACETED],
    }


def _label_facet(field: Field, result: SearchResult, asked: Asked) -> dict[str, Any]:
    key, on = field.key, {folded(value) for value in asked.of(field.key)}
    rows = []
    for value, count in list(result.facets.get(key, {}).items())[:LABELS_SHOWN]:
        is_on = folded(value) in on
        link = asked.without(key, value) if is_on else asked.link(**{key: (*asked.of(key), value)})
        rows.append({"name": value, "count": count, "link": link, "on": is_on})
    return {"label": field.label, "rows": rows}


def _labels(article: Article) -> list[dict[str, Any]]:
    """The values of an article by which others are found, each with that search."""
    return [
        {"name": label.text, "link": Asked(labels=((label.key, label.text),)).link()}
        for label in labels_of(article)
    ]


def _pages(query: Query, result: SearchResult, asked: Asked) -> dict[str, Any]:
    last = max(0, min(result.total, DEEPEST) - 1) // query.size
    numbers: list[dict[str, Any] | None] = []
    for n in text.page_numbers(min(query.page, last), last):
        if n is None:
            numbers.append(None)  # a gap
        else:
            numbers.append({"number": n + 1, "link": asked.link(page=n), "on": n == query.page})
    return {
        "numbers": numbers if last else [],
        "previous": asked.link(page=query.page - 1) if query.page else "",
        "next": asked.link(page=query.page + 1) if query.page < last else "",
    }


# ---------------------------------------------------------------- article


def _fields(article: Article) -> list[dict[str, Any]]:
    """Where each field came from, best known first."""
    rows: list[dict[str, Any]] = []
    for field in _LABELLED:
        name, label = field.name, field.label
        origin = article.origins.get(name, "")
        value = getattr(article, name)
        if not origin and not value:
            rows.append({"name": label, "origin": "not found", "confidence": None})
            continue
        confidence = article.confidence.get(name)
        percent = None if confidence is None else round(100 * confidence)
        rows.append({"name": label, "origin": origin or "unknown", "confidence": percent})
    return rows


def _changes(versions: list[Article], zone: Any) -> list[dict[str, Any]]:
    """What each version changed against the one before it, newest first."""
    rows = []
    for old, new in pairwise(versions):
        changes = []
        for field in _CHANGES_SHOWN:
            before, after = getattr(old, field.name), getattr(new, field.name)
            if before != after:
                words = text.changed_words(_line(before, zone), _line(after, zone))
                changes.append(text.Change(field.label, words))
        for part in text.changed_paragraphs(old.content[:DIFF_MOST], new.content[:DIFF_MOST]):
            changes.append(text.Change("Text", part))
        rows.append(
            {"version": new.version, "fetched": text.moment(new.fetched, zone), "changes": changes}
        )
    rows.reverse()
    return rows


def _line(value: Any, zone: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return value if isinstance(value, str) else text.moment(value, zone)


async def _article_page(article_id: str, reader: DataReader) -> Response:
    store = reader.deps.store
    article = await store.get(article_id.lower())
    if article is None:
        return error_page(404, "There is no article with this id.")
    byline = _byline(article, reader)
    facts = reader.deps.sites.get(article.site)
    zone = text.zone_of(facts.zone) if facts else text.UTC
    versions = await store.versions(article.id) if article.version > 1 else [article]
    near = (
        [a for a in await store.cluster(article.cluster) if a.id != article.id]
        if article.cluster
        else []
    )
    return render(
        "article.html",
        article=article,
        byline=byline,
        url=text.web_url(article.url),
        paragraphs=[p for p in article.content.split("\n\n") if p.strip()],
        modified=text.moment(article.modified, zone),
        discovered=text.moment(article.discovered, zone),
        fetched=text.moment(article.fetched, zone),
        fields=_fields(article),
        labels=_labels(article),
        citation=citation.cite(article, "apa", byline["site_name"], zone),
        styles=citation.STYLES[1:],
        versions=_changes(versions, zone),
        near=[{"id": a.id, "title": a.title, **_byline(a, reader)} for a in near],
        related=[
            {"id": a.id, "title": a.title, **_byline(a, reader)}
            for a in await store.related(article.id)
        ],
        is_first=article.cluster == article.id,
        asked=Asked(),
    )


# ---------------------------------------------------------------- routes


def add_pages(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    _add_search(app, reader, build_query)
    _add_crawl_pages(app, reader)
    _add_static(app)
    _add_login(app, reader)


def _add_search(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    @app.get("/", include_in_schema=False)
    async def search_page(
        q: Annotated[str, Parameter(max_length=2_000)] = "",
        page: Annotated[int, Parameter(ge=0, le=DEEPEST)] = 0,
        sort: Literal["relevance", "date"] = "relevance",
        site: Annotated[list[str] | None, Parameter()] = None,
        after: str = "",
        before: str = "",
        labels: Annotated[tuple[tuple[str, str], ...], Depends(chosen_labels)] = (),
    ) -> Response:
        query = build_query(
            q,
            page=page,
            sort=sort,
            site=site,
            after=after,
            before=before,
            labels=labels,
            zone=reader.deps.zone,
        )
        asked = Asked(query.text, sort, query.sites, after.strip(), before.strip(), page, labels)
        result = await reader.search(query)
        return render(
            "search.html",
            asked=asked,
            result=result,
            hits=_hits(result, reader),
            facets=_facets(result, asked, reader),
            pages=_pages(query, result, asked),
            first=page * query.size + 1,
            cap=COUNT_CAP,
            zone=str(reader.deps.zone),
            status=await reader.status(),
        )

    @app.get("/article/{article_id}", include_in_schema=False)
    async def article_page(article_id: ArticleId) -> Response:
        return await _article_page(article_id, reader)


def _add_crawl_pages(app: FastAPI, reader: DataReader) -> None:
    @app.get("/sites", include_in_schema=False)
    async def sites_page() -> Response:
        now = reader.now()
        rows = await reader.sites()
        for row in rows:
            for name in ("last_fetch", "last_new"):
                when = datetime.fromisoformat(row[name]) if row[name] else None
                row[f"{name}_text"] = text.ago(when, now)
            fresh = row["freshness"]
            row["fresh_text"] = (
                f"{span(fresh['p50_s'])} / {span(fresh['p95_s'])}" if fresh["articles"] else ""
            )
        return render("sites.html", rows=rows, status=await reader.status(), asked=Asked())

    @app.get("/frontier", include_in_schema=False)
    async def frontier_page() -> Response:
        report, problem = await reader.frontier()
        workers, _ = await reader.workers()
        for worker in workers:
            started = text.from_ms(worker.get("started_ms", 0))
            worker["started_text"] = text.ago(started, reader.now())
        domains = sorted(
            report.get("domains", []),
            key=lambda row: (-row.get("queued", 0), row.get("domain", "")),
        )
        return render(
            "frontier.html",
            report=report,
            counts=report.get("counts", {}),
            domains=domains,
            problem=problem,
            workers=workers,
            status=await reader.status(),
            asked=Asked(),
        )

    @app.get("/docs", include_in_schema=False)
    async def docs_page() -> Response:
        routes = [
            {
                "path": path,
                "method": method.upper(),
                "summary": route.get("summary", ""),
                "parameters": _parameters(route),
            }
            for path, methods in app.openapi()["paths"].items()
            for method, route in methods.items()
        ]
        return render("docs.html", routes=routes, asked=Asked())


def _parameters(route: dict[str, Any]) -> list[dict[str, Any]]:
    """What /docs shows of an OpenAPI operation's parameters."""
    rows = []
    for parameter in route.get("parameters", []):
        schema = parameter["schema"]
        values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
        rows.append(
            {
                "name": parameter["name"],
                "required": parameter.get("required", False),
                "description": parameter.get("description", ""),
                "choices": " | ".join(str(value) for value in values),
                "default": schema.get("default"),
            }
        )
    return rows


def _add_static(app: FastAPI) -> None:
    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        media = MEDIA.get(name.rpartition(".")[2])
        if media is None or not _STATIC_NAME.fullmatch(name):
            raise HTTPException(404, "there is no such file")
        try:
            body = read_static(name)
        except (FileNotFoundError, IsADirectoryError):
            raise HTTPException(404, "there is no such file") from None
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(body, media_type=media, headers=headers)

    @app.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> Response:
        return Response(read_static("favicon.svg"), media_type=MEDIA["svg"])


def _safe_next(target: str) -> str:
    """Where to go after the login: a path of this server, never another host
    ("//evil", "https:")."""
    parts = urlsplit(target)
    is_ours = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc
    return quote(target, safe="/?&=%+-._~:,") if is_ours else "/"


def _add_login(app: FastAPI, reader: DataReader) -> None:
    access = reader.deps.access

    def form(message: str = "", target: str = "/", status: int = 200) -> Response:
        return render(
            "login.html", status, message=message, target=_safe_next(target), asked=Asked()
        )

    @app.get("/login", include_in_schema=False)
    async def login_page(next: str = "/") -> Response:
        return form(target=next) if access.secret else RedirectResponse("/", 303)

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        if not access.secret:
            return RedirectResponse("/", 303)
        # Read by hand: a form would need python-multipart for one field.
        fields = form_fields((await request.body()).decode("utf-8", "replace"))
        token, target = fields.get("token", "").strip(), fields.get("next", "/")
        try:
            access.principal(token, clock=reader.deps.clock)
        except TokenError as exc:
            return form(f"Not accepted: {exc}.", target, 401)
        answer = RedirectResponse(_safe_next(target), 303)
        answer.set_cookie(
            COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return answer


def form_fields(body: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=10))
    except ValueError:  # more fields than our form has
        return {}


__all__ = ["add_pages", "error_page", "render", "wants_page"]
