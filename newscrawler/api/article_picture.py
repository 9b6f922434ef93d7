"""The picture of an article, where API_PICTURES shows it: one address of this server, so that a
reader's browser asks nobody else, and no other picture than that of a stored article."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import Response
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Receive, Scope, Send

from newscrawler.api import text
from newscrawler.api.asked import ArticleId
from newscrawler.api.data import DataReader
from newscrawler.crawl.article_pictures import PictureUnavailable
from newscrawler.items import Article

#: Seconds that a browser keeps one.
_KEPT_S = 86_400


def picture_of(article: Article, reader: DataReader, *, in_hit: bool = False) -> dict[str, Any]:
    """What a page shows of it: ``src``, "" = nothing is shown, ``caption`` and ``credit``."""
    pictures = reader.deps.pictures
    url = _address(article)
    if pictures is None or not url or (in_hit and not pictures.in_hits):
        return {"src": "", "caption": "", "credit": ""}
    said = next((one for one in article.pictures if one.get("url") == url), {})
    return {
        "src": f"/article/{article.id}/picture",
        "caption": said.get("caption", ""),
        "credit": said.get("credit", ""),
    }


def _address(article: Article) -> str:
    """The one that the page names as its own, else the first with a caption; "" of an article that
    its site has taken down."""
    if article.gone:
        return ""
    named = [article.image, *(one.get("url") for one in article.pictures)]
    return next((url for url in map(text.web_url, named) if url), "")


def add_picture(app: FastAPI, reader: DataReader) -> None:
    @app.get("/article/{article_id}/picture", include_in_schema=False)
    async def picture(article_id: ArticleId) -> Response:
        pictures = reader.deps.pictures
        article = await reader.deps.store.get(article_id.lower()) if pictures else None
        url = _address(article) if article else ""
        if pictures is None or not url:
            raise HTTPException(404, "There is no picture of this article.")
        try:
            found = await pictures.get(url)
        except PictureUnavailable as exc:
            if exc.is_for_now:
                raise HTTPException(503, str(exc), {"Retry-After": "30"}) from exc
            raise HTTPException(404, str(exc)) from exc
        headers = {"Cache-Control": f"private, max-age={_KEPT_S}"}
        return Response(found.body, media_type=found.media, headers=headers)


class CompressText(GZipMiddleware):
    """Pictures are compressed already."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/picture"):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
