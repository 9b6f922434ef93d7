"""/api/takedown: an article or a domain goes out of everything, as by `scrapy takedown`.

It takes seconds to minutes, so it runs beside the page, in a thread with an event loop of its own,
and is asked after. One at a time, whichever process of the server (`--processes`) is asked: who
carries one out holds a lock on a file of DATA_DIR, which the kernel lets go of when it dies, and
alone writes the file of those that were begun. A server that ends in the midst of it leaves what
the same request, or the command, goes on with.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import Field

from newscrawler.api import guard, models
from newscrawler.api.access import Principal
from newscrawler.api.audit import AuditLog, AuditUnavailable
from newscrawler.api.data import DataReader
from newscrawler.api.operator_routes import Body, settings_of
from newscrawler.api.taking_down import carried_out
from newscrawler.crawl import opening, takedown
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.store.base import StoreError
from newscrawler.utils import files

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")
#: Take-downs that are told of, for a day. `takedown-*.p*` is what the proof leaves out.
_KEPT = 20
_FILE, _LOCK = "takedown-runs.pending", "takedown-runs.lock"
_INTERRUPTED = "the server ended; ask again, it goes on"
_FAILS = (
    FrontierError, StoreError, RawStoreUnavailable, RawNotFound, AuditUnavailable,
    opening.StartRefused, OSError,
)  # fmt: skip


class TakeDownBody(Body):
    target: Annotated[str, Field(min_length=4, max_length=2_000, description="a URL or a domain")]
    reason: Annotated[
        str, Field(min_length=1, max_length=1_000, pattern=r"\S", description="kept in the audit")
    ]
    copies: Annotated[bool, Field(description="with its copies at other addresses of the site")] = (
        False
    )
    confirm: Annotated[bool, Field(description="needed for a whole domain, as --yes is")] = False
    dry_run: Annotated[bool, Field(description="say what would go, change nothing")] = False


class Busy(Exception):
    """Another one is at work."""


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
    """Take-downs of the servers of one DATA_DIR. ``begin`` is used inside the event loop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False

    def begin(self, settings: BaseSettings, run: Run, who: Principal, copies: bool) -> None:
        """:raises Busy: another one is at work, by whichever process
        :raises OSError: it cannot be written down"""
        folder = opening.data_dir(settings)
        log = AuditLog(folder, time.time)
        lock = _lock(folder)
        try:
            before = begun(folder, is_held=True)
            _write(folder, run, before)
        except BaseException:
            lock.close()
            raise

        def say(text: str) -> None:
            run.said = text
            if self._is_ending:
                raise _Ending
            _write(folder, run, before)

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
                run.state, run.said = "interrupted", _INTERRUPTED
            except _FAILS as exc:
                run.state, run.said = "failed", f"{exc}; ask again, it goes on where it stopped"
            finally:
                if run.state == "running":
                    run.state = "failed"
                run.ended = _now()
                try:
                    _write(folder, run, before)
                except OSError as exc:
                    logger.error("End of a take-down is not written down error=%s", exc)
                lock.close()

        self._task = asyncio.ensure_future(beside())

    async def close(self) -> None:
        self._is_ending = True
        if self._task is not None:
            await asyncio.wait([self._task])


def begun(folder: Path, *, is_held: bool = False) -> list[dict[str, Any]]:
    """Newest first. One whose process was killed has been interrupted.

    :param is_held: the caller has the lock
    """
    try:
        rows: list[dict[str, Any]] = json.loads((folder / _FILE).read_bytes())
    except FileNotFoundError:
        return []
    except ValueError:
        return []  # nobody writes parts of it: put there by hand
    oldest = (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="seconds")
    rows = [row for row in rows if row["began"] > oldest or row["state"] == "running"]
    if any(row["state"] == "running" for row in rows) and (is_held or _is_free(folder)):
        for row in rows:
            if row["state"] == "running":
                row |= {"state": "interrupted", "said": _INTERRUPTED, "ended": row["began"]}
    return rows


def _write(folder: Path, run: Run, before: list[dict[str, Any]]) -> None:
    data = json.dumps([run.plain(), *before][:_KEPT], ensure_ascii=False)
    files.write_whole(folder / _FILE, data.encode("utf-8", "replace"), mode=0o600, is_durable=False)


def _lock(folder: Path) -> IO[bytes]:
    """:raises Busy: another one has it"""
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / _LOCK).open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise Busy from None
    return file


def _is_free(folder: Path) -> bool:
    try:
        _lock(folder).close()
    except Busy:
        return False
    return True


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
        responses={
            **models.errors(400, 409, 422, 503),
            200: {"model": models.TakeDownAnswer, "description": "What would go: dry_run"},
        },
    )
    async def begin(request: Request, response: Response, body: TakeDownBody) -> dict[str, Any]:
        who = guard.principal_of(request, "admin")
        settings = settings_of(reader)
        try:
            target, is_domain = takedown.target_of(body.target)
        except takedown.TakeDownRefused as exc:
            raise HTTPException(422, str(exc)) from exc
        run = Run(target, body.reason.strip(), who.id, _now())
        if body.dry_run:
            response.status_code = 200
            run.report = await _planned(settings, run, body.copies)
            run.state, run.ended = "planned", _now()
        elif is_domain and not body.confirm:
            raise HTTPException(
                422, f"{target} is a whole domain: look by dry_run first, then repeat with confirm"
            )
        else:
            _begin(runs, settings, run, who, body.copies)
        return run.plain()

    @app.get(
        "/api/takedown",
        summary="Take-downs that were begun in the last day: how far, what was found (admin)",
        tags=["crawl"],
        response_model=list[models.TakeDownAnswer],
        responses=models.errors(),
    )
    async def told(request: Request) -> list[dict[str, Any]]:
        guard.principal_of(request, "admin")
        settings = reader.deps.settings
        return [] if settings is None else begun(opening.data_dir(settings))

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


def _begin(runs: Runs, settings: BaseSettings, run: Run, who: Principal, copies: bool) -> None:
    try:
        runs.begin(settings, run, who, copies)
    except Busy:
        at_work = [
            row["target"] for row in begun(opening.data_dir(settings)) if row["state"] == "running"
        ]
        target = at_work[0] if at_work else "another one"
        raise HTTPException(409, f"{target} is being taken down; one at a time") from None
    except OSError as exc:
        raise HTTPException(503, f"nothing was changed: {exc}") from exc


async def _planned(settings: BaseSettings, run: Run, copies: bool) -> dict[str, Any]:
    async def work(parts: takedown.TakeDown) -> dict[str, Any]:
        plan = await parts.plan(run.target, run.reason, run.by, with_copies=copies)
        return takedown.TakeDownReport(plan).plain()

    try:
        return await asyncio.to_thread(_in_own_loop, settings, lambda text: None, work)
    except takedown.TakeDownRefused as exc:
        raise HTTPException(422, str(exc)) from exc
    except (SitesError, *_FAILS) as exc:
        raise HTTPException(503, str(exc)) from exc
