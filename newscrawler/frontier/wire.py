"""redis-py's connections, writing without a task of its own for each command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection


class _Direct:
    """What redis-py sends, it sends under ``asyncio.wait_for``, which in Python 3.11 starts a task and wakes the loop
    twice. A command is small and the kernel takes it at once: only where it does not, there is something to wait for.
    """

    async def send_packed_command(self: Any, command: Any, check_health: bool = True) -> None:
        """:raises redis.exceptions.RedisError: as redis-py's; a broken connection may be told by the answer"""
        writer = self._writer
        if writer is None or not self.is_connected or self.health_check_interval or isinstance(command, (str, bytes)):
            await super().send_packed_command(command, check_health)  # type: ignore[misc]
            return
        parts: Iterable[bytes] = command
        writer.writelines(parts)
        if writer.transport.get_write_buffer_size():
            await super().send_packed_command([], check_health)  # type: ignore[misc]


class _Unix(_Direct, UnixDomainSocketConnection):
    pass


class _Tcp(_Direct, Connection):
    pass


class _Tls(_Direct, SSLConnection):
    pass


_DIRECT: dict[type[Any], type[Any]] = {UnixDomainSocketConnection: _Unix, Connection: _Tcp, SSLConnection: _Tls}


def direct(client: Redis) -> Redis:
    """The same client; nothing may have been sent yet."""
    pool: Any = client.connection_pool
    pool.connection_class = _DIRECT.get(pool.connection_class, pool.connection_class)
    return client
