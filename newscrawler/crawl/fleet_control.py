"""What the operator asks of the fleet: the wishes are written down, then the rounds of the watch
are waited for, or done here where nobody watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from newscrawler.crawl.fleet import Teller
from newscrawler.fleet.judgement import Fate
from newscrawler.fleet.ledger import FleetState, JobState, Wanted
from newscrawler.fleet.watch import (
    FULL_MARK,
    ROUND_S,
    Look,
    Watch,
    backoff_s,
    crash_text,
    waits,
)
from newscrawler.utils.numbers import is_digits

#: Crashes in a row on each node that can start workers after which a command no longer waits.
MOST_CRASHES = 3
#: What is asked rests on what all nodes have, so that a slow one is waited for longer than by a
#: round of the watch, seconds.
PATIENCE_S = 15.0


class FleetRefused(Exception):
    """What was asked would harm the fleet, or cannot be done; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Span:
    """``scale 4`` is 4 to 4, ``scale 2-8`` by the queue."""

    least: int
    most: int


class Control:
    """
    :param tell: is handed a line for each thing that happens
    :param wait_s: a command waits for what it asked for at most so long; 0 = not at all
    """

    def __init__(self, watch: Watch, tell: Callable[[str], None], wait_s: float) -> None:
        self.watch = watch
        self.tell = tell
        self.wait_s = wait_s
        self._teller = Teller(self._tell_message)

    # ------------------------------------------------------------ verbs
    async def start(self, more: int, args: list[list[str]]) -> Look:
        """:param args: of with_args. What workers were started with before is forgotten"""
        look = await self.watch.look(PATIENCE_S)
        wanted = look.state.wanted
        span = Span(wanted.least + more, wanted.most + more)
        return await self._set(look, span, args)

    async def scale(self, span: Span) -> Look:
        return await self._set(await self.watch.look(PATIENCE_S), span, [])

    async def _set(self, look: Look, span: Span, args: list[list[str]]) -> Look:
        wanted = look.state.wanted
        if span.most:
            wanted.version = self._version(look)
            self._refuse_mix(look, wanted.version)
        wanted.least, wanted.most = span.least, span.most
        args = args or wanted.args or with_args([])
        if look.state.jobs and (left := [arg for arg in wanted.args if arg not in args]):
            said = " ".join(f"-s {b}" if a == "setting" else f"-a {a}={b}" for a, b in left)
            self.tell(f"workers are started without {said} from now on")
        wanted.args = args
        await self.watch.ledger.want(wanted, look.state.now_ms)
        return await self._reach(_is_complete, look.state)

    async def stop(self) -> Look:
        look = await self.watch.look(PATIENCE_S)
        wanted = look.state.wanted
        wanted.least = wanted.most = 0
        wanted.args = []
        await self.watch.ledger.want(wanted, look.state.now_ms)
        return await self._reach(lambda now: not now.state.jobs, look.state)

    async def restart(self, version: str) -> Look:
        """:raises FleetRefused: a node lacks the version, or it was rolled back"""
        look = await self.watch.look(PATIENCE_S)
        wanted = look.state.wanted
        if not look.state.jobs and not wanted.most:
            raise FleetRefused("no worker of the fleet runs: `scrapy fleet start N`")
        version = version or wanted.deployed or wanted.version
        self._refuse_missing(look, version)
        if version != wanted.version:
            wanted.previous, wanted.failed = wanted.version, 0
        wanted.version = version
        wanted.generation += 1
        await self.watch.ledger.want(wanted, look.state.now_ms)
        done = await self._reach(_is_renewed(wanted.generation), look.state)
        if done.state.wanted.version != version:
            raise FleetRefused(
                f"no worker of version {version} came up; the fleet is back at"
                f" {done.state.wanted.version}. {_last_failure(done.state, version)}"
            )
        return done

    async def drain(self, node: str, is_drained: bool) -> Look:
        look = await self.watch.look(PATIENCE_S)
        await self.watch.ledger.drain(node, is_drained)
        wanted = look.state.wanted
        await self.watch.ledger.want(wanted, look.state.now_ms)
        if not is_drained:
            return await self.watch.round()
        return await self._reach(
            lambda now: all(job.node != node for job in now.state.jobs.values()), look.state
        )

    async def note_deployed(self, version: str) -> None:
        look = await self.watch.look(PATIENCE_S)
        wanted = look.state.wanted
        wanted.deployed = version
        if not look.state.jobs:
            wanted.version = version
        await self.watch.ledger.want(wanted, look.state.now_ms)

    # ------------------------------------------------------------ versions
    def _version(self, look: Look) -> str:
        """That workers are started with: the one that runs, or the newest that was deployed."""
        wanted = look.state.wanted
        if look.state.jobs and wanted.version:
            return wanted.version
        if wanted.deployed:
            return wanted.deployed
        newest = {view.versions[-1] for view in look.views.values() if view.versions}
        if len(newest) == 1:
            return newest.pop()
        raise FleetRefused(
            "the nodes have eggs of different versions: `scrapy fleet deploy`"
            if newest
            else "nothing is deployed yet: `scrapy fleet deploy`"
        )

    def _refuse_mix(self, look: Look, version: str) -> None:
        self._refuse_missing(look, version)
        others = sorted(
            row["id"]
            for row in look.rows.values()
            if row["alive"] and row.get("version", "") not in ("", version)
        )
        known = {job.worker for job in look.state.jobs.values()}
        strange = [name for name in others if name not in known]
        if strange:
            raise FleetRefused(
                f"worker {strange[0]} runs another version than {version} on this Redis, and the"
                " fleet did not start it; two versions on one queue are refused: end it first"
            )

    def _refuse_missing(self, look: Look, version: str) -> None:
        usable = {
            name: view
            for name, view in look.views.items()
            if not view.error and name not in look.state.drained
        }
        if not usable:
            away = "; ".join(view.error for view in look.views.values() if view.error)
            raise FleetRefused(f"no node can take workers: {away or 'all are drained'}")
        for name, view in usable.items():
            if version not in view.versions:
                has = view.versions[-1] if view.versions else "none"
                raise FleetRefused(
                    f"node {name} has no egg of version {version} (its newest: {has}); a mix of"
                    " versions is refused: `scrapy fleet deploy`"
                )

    # ------------------------------------------------------------ waiting
    async def _reach(self, is_done: Callable[[Look], bool], before: FleetState) -> Look:
        """Rounds until it is so.

        :raises FleetRefused: it is not within ``wait_s``, or no worker stays up
        """
        end = time.monotonic() + self.wait_s
        told = {ended.id for ended in before.ended}
        counts = ""
        while True:
            look = await self.watch.round()
            self._tell_ends(look, told)
            self._teller.look(look, self.watch.ledger.name)
            if is_done(look) or not self.wait_s:
                return look
            counts = self._tell_counts(look, counts)
            self._refuse_crashes(look)
            _refuse_full(look)
            if time.monotonic() > end:
                raise FleetRefused(
                    f"not reached within {self.wait_s:.0f} s ({_counts(look)}); it stays wanted:"
                    " see `scrapy fleet status`"
                )
            await asyncio.sleep(ROUND_S / 2)

    def _tell_message(self, message: str) -> None:
        if not message.startswith(("leads", "stands by")):
            self.tell(message)

    def _tell_ends(self, look: Look, told: set[str]) -> None:
        for ended in reversed(look.state.ended):
            if ended.id not in told:
                told.add(ended.id)
                self.tell(f"job {ended.id} on node {ended.node}: {ended.how}: {ended.why}")

    def _tell_counts(self, look: Look, before: str) -> str:
        now = _counts(look)
        if now != before:
            self.tell(now)
        return now

    def _refuse_crashes(self, look: Look) -> None:
        """Every node that could start a worker waits, as the last ones ended at once."""
        state = look.state
        usable = [
            state.node(name)
            for name, view in look.views.items()
            if not view.error and name not in state.drained
        ]
        runs = any(verdict.fate is Fate.RUNNING for verdict in look.verdicts.values())
        is_hopeless = all(
            waits(node, state) and node.crashes >= MOST_CRASHES - (len(usable) > 1)
            for node in usable
        )
        if usable and is_hopeless and not runs and not state.wanted.previous:
            raise FleetRefused(
                f"no worker stays up. {crash_text(usable[0], state.now_ms)}. It is tried again at"
                f" longer and longer intervals (at most {backoff_s(99):.0f} s) while"
                " `scrapy fleet watch` runs; `scrapy fleet stop` gives up"
            )


def _refuse_full(look: Look) -> None:
    """All that can run do: the nodes are full."""
    said = [look.unplaced] if look.leads else look.state.said.get("messages", [])
    text = next((one for one in said if FULL_MARK in one), "")
    is_fresh = look.leads or look.state.said.get("at_ms", 0) > look.state.wanted.asked_ms
    is_calm = all(job.state is JobState.RUNNING for job in look.state.jobs.values())
    if text and is_fresh and is_calm:
        raise FleetRefused(
            f"{text}. It stays wanted: `scrapy fleet scale {len(look.state.jobs)}` is what there is"
            " room for, a larger max_proc or one more node is the other way"
        )


def _is_complete(look: Look) -> bool:
    """Whether all that is wanted runs, and nothing else."""
    jobs = look.state.jobs.values()
    target = _target(look)
    if any(job.state is not JobState.RUNNING for job in jobs):
        return False
    return target is not None and len(jobs) == target


def _target(look: Look) -> int | None:
    """Of this round, or of the last one of the leader, if that came after what was asked."""
    if look.leads:
        return look.target
    said = look.state.said
    is_fresh = said.get("at_ms", 0) > look.state.wanted.asked_ms
    return int(said["target"]) if is_fresh else None


def _is_renewed(generation: int) -> Callable[[Look], bool]:
    def is_done(look: Look) -> bool:
        version = look.state.wanted.version
        return _is_complete(look) and all(
            (job.generation, job.version) == (generation, version)
            for job in look.state.jobs.values()
        )

    return is_done


def _counts(look: Look) -> str:
    words = [str(job.state) for job in look.state.jobs.values()]
    parts = [f"{words.count(state)} {state}" for state in JobState if words.count(state)]
    return f"workers: {', '.join(parts) or 'none'}"


def _last_failure(state: FleetState, version: str) -> str:
    failed = (ended for ended in state.ended if ended.version == version and ended.how != "ended")
    last = next(failed, None)
    return f"The last on node {last.node}: {last.why}" if last else ""


def with_args(given: list[list[str]]) -> list[list[str]]:
    """The arguments that workers are scheduled with: they crawl for ever unless told otherwise."""
    names = {value.partition("=")[0] for kind, value in given if kind == "setting"}
    first = [] if "CRAWL_FOREVER" in names else [["setting", "CRAWL_FOREVER=True"]]
    return [*first, *given]


def span_of(text: str) -> Span:
    """Of "4" or "2-8".

    :raises ValueError: it is none
    """
    least, dash, most = text.partition("-")
    if not is_digits(least) or (dash and not is_digits(most)) or len(text) > 9:
        raise ValueError(f"{text!r} is no number of workers: write 4, or 2-8 for by the queue")
    span = Span(int(least), int(most) if dash else int(least))
    if span.least > span.most:
        raise ValueError(f"{text!r}: the least number is larger than the most")
    return span


__all__ = ["Control", "FleetRefused", "Span", "Wanted", "span_of", "with_args"]
