"""Generation jobs in Redis: who runs one, for how long, and what it may spend."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from newscrawler.selectorsets import keys, scripts

LOCK_MS = 120_000
#: Pauses after the first, second and third failed attempt; after that an operator decides.
COOL_DOWN_MS = (15 * 60_000, 2 * 3_600_000, 24 * 3_600_000)


@dataclass(frozen=True)
class ModelBudget:
    """What the fleet may spend on models; 0 forbids every call. Money in the currency of the
    prices, which are per million tokens; with prices of 0 the limits of money never bite."""

    calls_per_domain_per_day: int = 6
    calls_per_day: int = 200
    tokens_per_day: int = 3_000_000
    calls_per_minute: int = 10
    tokens_per_domain_per_day: int = 300_000
    money_per_day: float = 5.0
    money_per_domain_per_day: float = 0.5
    price_in: float = 0.0
    price_out: float = 0.0

    def micro(self, tokens_in: int, tokens_out: int) -> int:
        """The cost of these tokens in millionths, rounded up: a million tokens at a
        price of 0.1 are 100,000."""
        return math.ceil(tokens_in * self.price_in + tokens_out * self.price_out)


class BudgetSpent(RuntimeError):
    """A call that would go over a limit; it was not made."""


class LockLost(RuntimeError):
    """The lock ran out while the holder was away: another worker may be at work."""


@dataclass
class Job:
    domain: str
    token: str
    fence: int
    #: When the domain may be tried again; None takes it out of the queue. Set by the one
    #: who ran the job.
    again_in_ms: int | None = None


class Jobs:
    """``client`` is a redis.asyncio client."""

    def __init__(
        self,
        client: Any,
        limits: ModelBudget,
        *,
        lock_ms: int = LOCK_MS,
        clock: Callable[[], float] = time.time,
    ):
        self.client = client
        self.limits = limits
        self.lock_ms = lock_ms
        self._clock = clock

    async def queue(self, domain: str) -> None:
        """Now, whatever pause it was in."""
        await self.client.hdel(keys.domain(domain), "cool_until")
        await self.client.zadd(keys.JOBS, {domain: 0})

    async def queue_after(self, domain: str, ms: int) -> None:
        """In ``ms`` by this worker's clock, or earlier where it was due earlier; a pause after a
        failure still holds."""
        await self.client.zadd(keys.JOBS, {domain: round(self._clock() * 1000) + ms}, lt=True)

    async def due(self) -> str | None:
        raw = await scripts.run(self.client, "due_job", [keys.JOBS], [])
        return keys.text(raw)

    async def begin(self, domain: str, *, forced: bool = False) -> Job | str:
        """The job, or why it is not ours to run now ("busy", "cooling", "disabled" ...)."""
        token = secrets.token_hex(8)
        found = [keys.lock(domain), keys.domain(domain), keys.FENCE, keys.JOBS]
        verdict, value = await scripts.run(
            self.client, "begin", found, [token, self.lock_ms, domain, "1" if forced else "0"]
        )
        word = keys.text(verdict)
        if word == "go":
            return Job(domain, token, int(value))
        if word == "deny":
            await self.client.zrem(keys.JOBS, domain)
            return value.decode() if isinstance(value, bytes) else str(value)
        await self.client.zadd(
            keys.JOBS, {domain: round(self._clock() * 1000) + int(value)}, gt=True
        )
        return f"not before {int(value)} ms from now"

    @asynccontextmanager
    async def held(self, job: Job) -> AsyncIterator[None]:
        """Renews the lock while the body runs, and gives it back with what
        ``job.again_in_ms`` says then."""
        renewing = asyncio.create_task(self._renew(job))
        try:
            yield
        finally:
            renewing.cancel()
            again = "" if job.again_in_ms is None else job.again_in_ms
            await self._call(job, 0, again)

    async def _renew(self, job: Job) -> None:
        while True:
            await asyncio.sleep(self.lock_ms / 4000)
            if not await self._call(job, self.lock_ms, ""):
                return  # the fencing number keeps the late result out

    async def _call(self, job: Job, lock_ms: int, again: int | str) -> bool:
        found = [keys.lock(job.domain), keys.JOBS, keys.domain(job.domain)]
        return bool(
            await scripts.run(self.client, "renew", found, [job.token, job.domain, lock_ms, again])
        )

    # ------------------------------------------------------------ budget
    async def reserve(self, domain: str, tokens_in: int, tokens_out: int = 0) -> None:
        """Before each HTTP attempt. :raises BudgetSpent:"""
        limits = self.limits
        minute = f"{keys.TAG}:minute:{int(self._clock() // 60)}"
        args = [
            domain,
            tokens_in + tokens_out,
            limits.micro(tokens_in, tokens_out),
            limits.calls_per_domain_per_day,
            limits.calls_per_day,
            limits.tokens_per_domain_per_day,
            limits.tokens_per_day,
            round(limits.money_per_domain_per_day * 1e6),
            round(limits.money_per_day * 1e6),
            limits.calls_per_minute,
        ]
        reason = await scripts.run(self.client, "budget", [keys.budget(self._day()), minute], args)
        if reason:
            text = keys.text(reason)
            raise BudgetSpent(f"the budget of the model is spent: {text}")

    async def settle(self, domain: str, reserved: tuple[int, int], used: tuple[int, int]) -> None:
        """Puts what the server counted in the place of what was reserved: both (tokens in, tokens
        out). A failed call keeps its reservation."""
        if any(used):
            await self._replace(domain, reserved, used)

    async def give_back(self, domain: str, reserved: tuple[int, int]) -> None:
        """The tokens of a call that the server refused before a model read it: the call counts,
        nothing was spent."""
        await self._replace(domain, reserved, (0, 0))

    async def _replace(self, domain: str, reserved: tuple[int, int], used: tuple[int, int]) -> None:
        tokens = sum(used) - sum(reserved)
        micro = self.limits.micro(*used) - self.limits.micro(*reserved)
        key = keys.budget(self._day())
        for name, change in (("tokens", tokens), ("micro", micro)):
            await self.client.hincrby(key, name, change)
            await self.client.hincrby(key, f"{name}:{domain}", change)

    async def spent(self) -> dict[str, int]:
        """Today's calls, tokens and micro (millionths of money), in all and by domain
        ("calls:<domain>")."""
        rows = await self.client.hgetall(keys.budget(self._day()))
        return {keys.text(k): int(v) for k, v in rows.items()}

    def _day(self) -> str:
        return time.strftime("%Y%m%d", time.gmtime(self._clock()))
