"""Articles are written in a process of its own: words, hashes and SQLite beside the fetches, not between them."""

from __future__ import annotations

from typing import Any

from newscrawler.children import Child, ChildDied, ChildError

#: CPU seconds of one batch: a million articles are given new keys in 300 (store.local.schema).
_CPU_S = 3600.0


class StoreProcess:
    """``store.local.job.work`` elsewhere. A process that ends fails its batch only: the URLs come back."""

    def __init__(self) -> None:
        self._child = Child("newscrawler.store.local.job:work", cpu_s=_CPU_S)

    async def __call__(self, job: tuple[str, str, Any]) -> tuple[str, Any]:
        try:
            return await self._child.call(job)  # type: ignore[no-any-return]
        except ChildDied as exc:
            return "unavailable", f"article store {job[1]}: the process that writes it ended ({exc})"
        except ChildError as exc:
            raise RuntimeError(f"article store {job[1]}: {exc}") from exc

    async def close(self) -> None:
        await self._child.close()

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def peak_kb(self) -> int:
        """Kilobytes of memory that the process had at most; known when it is closed."""
        return self._child.peak_kb
