"""Answers of Redis, as the fleet's parts take them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

from redis.exceptions import RedisError


async def answered(answer: Any, error: type[Exception], what: str = "Redis") -> Any:
    """:param answer: of a command of redis.asyncio
    :raises error: ``what`` does not answer
    """
    try:
        return await cast(Awaitable[Any], answer)
    except (RedisError, OSError) as exc:
        raise error(f"{what} does not answer: {exc}") from exc


def text_of(value: bytes | str) -> str:
    """Of a client that may decode, or not."""
    return value.decode() if isinstance(value, bytes) else value
