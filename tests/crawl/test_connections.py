"""One fetch is one request: what the gate does not know of must not be sent, whatever
becomes of a connection."""

from __future__ import annotations

import asyncio

import pytest

from newscrawler.fetch import address_guard
from newscrawler.fetch.client import FetchError, FetchRules, HttpClient

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"


async def test_a_kept_connection_that_drops_is_not_asked_a_second_time() -> None:
    """aiohttp would repeat the request by itself, at once, on a new connection."""
    asked: list[str] = []
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            asked.append(head.split(b" ")[1].decode())
            if asked[-1] == "/drops":
                break
            writer.write(PAGE)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = HttpClient(
        FetchRules(timeout_s=10, allowed=address_guard.parse_networks("127.0.0.0/8"))
    )
    try:
        assert (await client.fetch(f"{base}/first", [])).body == b"ok"
        with pytest.raises(FetchError) as caught:
            await client.fetch(f"{base}/drops", [])
        assert caught.value.reason == "connect"
        assert connections == 1, "the connection was to be kept, or nothing was tried"
        assert asked == ["/first", "/drops"]
        assert (await client.fetch(f"{base}/next", [])).body == b"ok"
    finally:
        await client.close()
        server.close()
