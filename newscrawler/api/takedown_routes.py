"""/api/takedown: an article or a domain goes out of everything, as by `scrapy takedown`.

It takes seconds to minutes, so it runs beside the page, in a thread with an event loop of its own,
and is asked after. One at a time; a server that ends in the midst of it leaves what the same
request, or the command, goes on with.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import Field

from newscrawler.api import guard, models
from newscrawler.api.access import Principal
from newscrawler.api.audit import AuditLog, AuditUnavailable
from newscrawler.api.data import DataReader
from newscrawler.api.operator_routes import Body, settings_of
from newscrawler.api.taking_down import carried_out
from newscrawler.crawl import services, takedown
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.store.base import StoreError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

T = TypeVar("T")
#: Take-downs of this server that are told of.
_KEPT = 20
_FAILS = (
    FrontierError, StoreError, RawStoreUnavailable, RawNotFound, AuditUnavailable,
    services.StartRefused, OSError,
)  # fmt: skip


class TakeDownBody(Body):
    target: Annotated[str, Field(min_length=4, max_length=2_000, description="a URL or a domain")]
    reason: Annotated[
        str, Field(min_length=1, max_length=1_000, pattern=r"\S", description="kept in the audit")
    ]
    copies: Annotated[bool, Field(description="with its copies at other addresses of the site")] = (
        False
    )
    dry_run: Annotated[bool, Field(description="say what would go, change nothing")] = False


class _Ending(Exception):
    """The server ends."""


@dataclass(slots=True)
class Run:
    target: str
    reason: str
    by: str
    began: str
    state: str = "running"
    said: str = ""
    ended: str | None = None
    report: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        names = ("target", "reason", "by", "began", "state", "said", "ended")
        return {name: getattr(self, name) for name in names} | {"report": self.report or None}


class Runs:
    """Take-downs of one server. Used inside its event loop."""

    def __init__(self) -> None:
        self.known: deque[Run] = deque(maxlen=_KEPT)
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, settings: BaseSettings, run: Run, who: Principal, copies: bool) -> None:
        log = AuditLog(services.data_dir(settings), time.time)
        self.known.appendleft(run)

        def say(text: str) -> None:
            run.said = text
            if self._is_ending:
                raise _Ending

        async def work(parts: takedown.TakeDown) -> None:
            plan = await parts.plan(run.target, run.reason, who.id, with_copies=copies)
            report, removed = await carried_out(parts, plan, who, log)
            run.report = report.plain()
            run.state = "left" if report.left else "done"
            run.said = removed or "nothing was stored"

        async def beside() -> None:
            try:
                await asyncio.to_thread(_in_own_loop, settings, say, work)
            except (takedown.TakeDownRefused, SitesError) as exc:
                run.state, run.said = "refused", str(exc)
            except _Ending:
                run.state, run.said = "interrupted", "the server ended; ask again, it goes on"
            except _FAILS as exc:
                run.state, run.said = "failed", f"{exc}; ask again, it goes on where it stopped"
            finally:
                if run.state == "running":
                    run.state = "failed"
                run.ended = _now()

        self._task = asyncio.ensure_future(beside())

    async def close(self) -> None:
        self._is_ending = True
        if self._task is not None:
            await asyncio.wait([self._task])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _in_own_loop(
    settings: BaseSettings,
    say: Callable[[str], None],
    work: Callable[[takedown.TakeDown], Awaitable[T]],
) -> T:
    async def run() -> T:
        async with takedown.opened(settings, say) as parts:
            return await work(parts)

    return asyncio.run(run())


def add_takedown(app: FastAPI, reader: DataReader) -> Runs:
    runs = Runs()

    @app.post(
        "/api/takedown",
        summary="Remove an article or a domain everywhere, and block it for good (role admin)",
        tags=["crawl"],
        status_code=202,
        response_model=models.TakeDownAnswer,
        responses=models.errors(409, 422, 503),
    )
    async def begin(request: Request, response: Response, body: TakeDownBody) -> dict[str, Any]:
        who = guard.principal_of(request, "admin")
        settings = settings_of(reader)
        try:
            target, _ = takedown.target_of(body.target)
        except takedown.TakeDownRefused as exc:
            raise HTTPException(422, str(exc)) from exc
        run = Run(target, body.reason.strip(), who.id, _now())
        if body.dry_run:
            response.status_code = 200
            run.report = await _planned(settings, run, body.copies)
            run.state, run.ended = "planned", _now()
        elif runs.is_busy:
            raise HTTPException(409, f"{runs.known[0].target} is being taken down; one at a time")
        else:
            runs.begin(settings, run, who, body.copies)
        return run.plain()

    @app.get(
        "/api/takedown",
        summary="Take-downs that this server began, newest first: how far, what was found (admin)",
        tags=["crawl"],
        response_model=list[models.TakeDownAnswer],
        responses=models.errors(),
    )
    async def begun(request: Request) -> list[dict[str, Any]]:
        guard.principal_of(request, "admin")
        return [run.plain() for run in runs.known]

    @app.get(
        "/api/takedown/blocked",
        summary="What was taken down, by whom and why, as `scrapy takedown --list` (role admin)",
        tags=["crawl"],
        response_model=list[models.BlockedRow],
        responses=models.errors(503),
    )
    async def blocked(request: Request) -> list[dict[str, Any]]:
        guard.principal_of(request, "admin")
        registry = reader.deps.registry
        if registry is None:
            raise HTTPException(503, reader.deps.redis_error or "no Redis")
        return takedown.listed(await takedown.Taken(registry.client, 1).all())

    return runs


async def _planned(settings: BaseSettings, run: Run, copies: bool) -> dict[str, Any]:
    async def work(parts: takedown.TakeDown) -> dict[str, Any]:
        plan = await parts.plan(run.target, run.reason, run.by, with_copies=copies)
        return takedown.Report(plan).plain()

    try:
        return await asyncio.to_thread(_in_own_loop, settings, lambda text: None, work)
    except takedown.TakeDownRefused as exc:
        raise HTTPException(422, str(exc)) from exc
    except (SitesError, *_FAILS) as exc:
        raise HTTPException(503, str(exc)) from exc
