"""A real S3 server (moto's, over HTTP), a process of its own on loopback, behind an
address that can go away.

The server keeps its objects in memory, so it is not killed to be away: a relay before it
refuses connections.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import Deadline

BUCKET = "raw-pages"
START_S = 60
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test-secret"}


class Relay:
    """Passes bytes from its port to another; away, the port is closed and what was open is cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.comes_back()

    def comes_back(self) -> None:
        self._listener = listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def goes_away(self) -> None:
        if self._listener is None:
            return
        # close() alone would leave the thread in accept(), and the port listening with it
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target), 10)
            except OSError:
                return
            self._open += [client, server]
            threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    @staticmethod
    def _pass(client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        with client, server, contextlib.suppress(OSError, ValueError):
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    other[ready].sendall(data)


class S3Server:
    def __init__(self, log: Path) -> None:
        import boto3  # slow, and few tests need it
        from botocore.config import Config

        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
                stdout=file,
                stderr=file,
            )
        self.relay: Relay | None = None
        try:
            port = self._port(log)
            self.relay = Relay(port)
        except BaseException:
            self.stop()
            raise
        self.url = f"http://127.0.0.1:{self.relay.port}"
        #: What a user sets beside RAW_STORE.
        self.env = {**KEYS, "AWS_ENDPOINT_URL": self.url}
        # The server's own port: what a test looks at is there while the crawler's address is away.
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="us-east-1",
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            config=Config(proxies={}),
        )
        self.client.create_bucket(Bucket=BUCKET)

    def _port(self, log: Path) -> int:
        deadline = Deadline(START_S)
        while not deadline.is_over() and self._process.poll() is None:
            if found := re.search(r"Running on http://127\.0\.0\.1:(\d+)", log.read_text()):
                return int(found[1])
            time.sleep(0.05)
        raise AssertionError(f"moto's server does not start: {log.read_text()[-2000:]}")

    def objects(self, prefix: str = "", bucket: str = BUCKET) -> dict[str, bytes]:
        """Key -> content."""
        listed = self.client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
        return {
            entry["Key"]: self.client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
            for entry in listed
        }

    def buckets(self) -> list[str]:
        return sorted(entry["Name"] for entry in self.client.list_buckets()["Buckets"])

    def goes_away(self) -> None:
        assert self.relay is not None
        self.relay.goes_away()

    def comes_back(self) -> None:
        assert self.relay is not None
        self.relay.comes_back()

    def stop(self) -> None:
        if self.relay is not None:
            self.relay.goes_away()
        self._process.terminate()
        self._process.wait(10)


@pytest.fixture
def s3_server(tmp_path: Path) -> Iterator[S3Server]:
    """One bucket, BUCKET, and empty."""
    server = S3Server(tmp_path / "s3.log")
    yield server
    server.stop()
