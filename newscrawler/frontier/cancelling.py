"""Connections of redis-py that do not lose a cancellation.

redis-py sends within asyncio.wait_for. That of Python 3.11 drops a cancellation which comes when
the inner task is done already (python/cpython#86296, mended in 3.12): a task that was to end went
on, and who waited for its end waited for ever.
"""

from __future__ import annotations

import asyncio
import sys
from functools import cache
from typing import Any


@cache
def cancellable(connection: type[Any]) -> type[Any]:
    """The same kind of connection; itself where Python has the mend."""
    if sys.version_info >= (3, 12):
        return connection

    class Cancellable(connection):  # type: ignore[misc]  # the class is known at run time only
        async def send_packed_command(self, *args: Any, **kwargs: Any) -> None:
            task = asyncio.current_task()
            before = task.cancelling() if task is not None else 0
            await super().send_packed_command(*args, **kwargs)
            if task is not None and task.cancelling() > before:
                await self.disconnect(nowait=True)  # nobody will read the answer
                raise asyncio.CancelledError

    return Cancellable
