"""A real Kafka of one node for tests: its jars from Maven Central, KRaft, no container.

Needs mvn and a JDK of version 21 or newer, as Elasticsearch does (fixtures_elasticsearch); kept in
the same cache.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures_elasticsearch import Missing, _cache, find_java_home
from tests.patience import Deadline

VERSION = "4.1.0"
START_S = 120  # seconds; 5 on an idle machine
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>newscrawler</groupId><artifactId>tests</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{VERSION}</version></dependency></dependencies></project>"""


def _jars() -> Path:
    """The folder with the jars, downloaded once."""
    home = _cache() / f"kafka-{VERSION}"
    if home.is_dir():
        return home
    mvn = shutil.which("mvn")
    if mvn is None:
        raise Missing("mvn")
    work = _cache() / f".kafka-{os.getpid()}"
    work.mkdir(parents=True, exist_ok=True)
    try:
        (work / "pom.xml").write_text(_POM)
        command = [
            mvn, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime",
            f"-DoutputDirectory={work / 'libs'}",
        ]  # fmt: skip
        got = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=work)
        if got.returncode:
            raise Missing(f"Kafka's jars (mvn: {(got.stdout + got.stderr).strip()[:300]})")
        with contextlib.suppress(OSError):  # another suite was first
            (work / "libs").rename(home)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return home


class Kafka:
    """A broker that can be killed and started again over the same data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._java = str(find_java_home() / "bin/java")
        self._jars = f"{_jars()}/*"
        broker, controller = _free_ports()
        self.servers = f"127.0.0.1:{broker}"
        self._process: subprocess.Popen[bytes] | None = None
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.servers}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(folder / "data"),
            "num.partitions": "3",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        self._properties = folder / "server.properties"
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        self._run("kafka.tools.StorageTool", "format", "-t", uuid.uuid4().hex[:22], "-c")

    def _command(self, main: str, *args: str) -> list[str]:
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", self._jars]
        return [self._java, *options, main, *args, str(self._properties)]

    def _run(self, main: str, *args: str) -> None:
        done = subprocess.run(
            self._command(main, *args), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka"), stdout=log, stderr=log, start_new_session=True
            )
        deadline = Deadline(START_S)
        while not deadline.is_over() and self._process.poll() is None:
            host, _, port = self.servers.partition(":")
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
                return
            time.sleep(0.2)
        tail = (self._folder / "log").read_text(errors="replace")[-1500:]
        raise RuntimeError(f"Kafka did not start: {tail}")

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(60)
            self._process = None


def _free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as other:
        for sock in (one, other):
            sock.bind(("127.0.0.1", 0))
        return [one.getsockname()[1], other.getsockname()[1]]


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    folder = Path(tempfile.mkdtemp(prefix="newscrawler-kafka-"))
    broker = None
    try:
        broker = Kafka(folder)
        broker.start()
        yield broker
    except Missing as exc:
        if os.environ.get("CI"):
            pytest.fail(f"the test of Kafka needs {exc}")
        pytest.skip(f"skipped: the test of Kafka needs {exc}")
    finally:
        if broker is not None:
            broker.kill()
        shutil.rmtree(folder, ignore_errors=True)
