"""A real Elasticsearch for tests: the minimal distribution from Maven Central, started by the
suite, one per run.

Needs mvn and a JDK of version 21 or newer. Without them the tests that need it are skipped with one
line; where the environment variable CI is set they fail instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.patience import Deadline

VERSION = "9.2.0"
ARTIFACT = f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{VERSION}:zip"
MIN_JAVA = 21
START_S = 150  # seconds; 9-12 on an idle machine
NOBODY = 65534


class Missing(Exception):
    """A tool is not there; the text says which."""


@dataclass
class Server:
    url: str
    process: subprocess.Popen[bytes]
    logs: Path
    start_again: Callable[[], subprocess.Popen[bytes]]


def _cache() -> Path:
    """Outside the repository, so that a fresh clone does not download 95 MB again;
    NEWSCRAWLER_TEST_CACHE moves it."""
    named = os.environ.get("NEWSCRAWLER_TEST_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "newscrawler"


def _java_version(java: Path) -> int:
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def find_java_home() -> Path:
    """The newest JDK of at least MIN_JAVA that JAVA_HOME*, the usual folders or PATH have."""
    homes = [
        Path(value) for name, value in os.environ.items() if name.startswith("JAVA_HOME") and value
    ]
    for folder in (
        Path("/usr/lib/jvm"),
        Path.home() / ".sdkman/candidates/java",
        Path("/opt/java"),
        Path("/opt"),
    ):
        if folder.is_dir():
            homes += sorted(p for p in folder.iterdir() if (p / "bin/java").exists())
    if found := shutil.which("java"):
        homes.append(Path(found).resolve().parent.parent)
    versions = {
        home.resolve(): _java_version(home / "bin/java")
        for home in homes
        if (home / "bin/java").exists()
    }
    good = {home: v for home, v in versions.items() if v >= MIN_JAVA}
    if not good:
        raise Missing(
            f"a JDK of version {MIN_JAVA} or newer (found: {sorted(set(versions.values())) or 'none'})"
        )
    return max(good, key=lambda home: good[home])


def _unpacked(cache: Path) -> Path:
    """The distribution's folder, downloaded once. Safe against a second suite
    that does the same."""
    home = cache / f"elasticsearch-{VERSION}"
    if (home / "bin/elasticsearch").is_file():
        return home
    mvn = shutil.which("mvn")
    if mvn is None:
        raise Missing("mvn")
    work = cache / f".unpack-{os.getpid()}"
    work.mkdir(parents=True, exist_ok=True)
    try:
        command = [
            mvn,
            "-q",
            "-B",
            "dependency:copy",
            f"-Dartifact={ARTIFACT}",
            f"-DoutputDirectory={work}",
        ]
        got = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=work)
        if got.returncode:
            raise Missing(
                f"the Elasticsearch distribution (mvn: {(got.stdout + got.stderr).strip()[:300]})"
            )
        with zipfile.ZipFile(next(work.glob("*.zip"))) as archive:
            for member in archive.infolist():
                path = Path(archive.extract(member, work))
                if mode := member.external_attr >> 16:
                    path.chmod(mode | 0o444 | (0o111 if path.is_dir() else 0))
        folder = next(p for p in work.iterdir() if p.is_dir())
        (folder / "bin/elasticsearch").chmod(0o755)
        with contextlib.suppress(OSError):  # another suite was first
            folder.rename(home)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return home


def _readable_by_all(home: Path, copy_to: Path) -> Path:
    """root's home is closed to the ordinary user that the server runs as: a copy then, 100 MB."""
    if os.geteuid() != 0:
        return home
    for folder in (home, *home.parents):
        if not folder.stat().st_mode & 0o001:
            shutil.copytree(home, copy_to)
            return copy_to
    return home


def start(folder: Path, settings: dict[str, str] | None = None, heap_mb: int = 512) -> Server:
    """Start a server of its own in ``folder`` (empty); every address and file is
    inside or chosen by it."""
    java = find_java_home()
    home = _readable_by_all(_unpacked(_cache()), folder / "home")
    conf, logs, tmp = folder / "config", folder / "logs", folder / "tmp"
    for path in (conf, logs, tmp, folder / "data"):
        path.mkdir(parents=True)
    for name in ("jvm.options", "log4j2.properties"):
        shutil.copy(home / "config" / name, conf / name)
    (conf / "jvm.options.d").mkdir()
    lines = {
        "path.data": str(folder / "data"),
        "path.logs": str(logs),
        "http.port": "0",
        "transport.port": "0",
        "node.portsfile": "true",
        "discovery.type": "single-node",
        "xpack.security.enabled": "false",
        "xpack.security.autoconfiguration.enabled": "false",
        # tests run on disks that are nearly full as well; the test of that sets its own
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        **(settings or {}),
    }
    (conf / "elasticsearch.yml").write_text("".join(f"{k}: {v}\n" for k, v in lines.items()))
    environment = {
        "ES_PATH_CONF": str(conf),
        "ES_JAVA_HOME": str(java),
        # A server that lives for a minute does not earn back what the second compiler costs.
        "ES_JAVA_OPTS": f"-Xms{heap_mb}m -Xmx{heap_mb}m -XX:TieredStopAtLevel=1",
        "ES_TMPDIR": str(tmp),
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(tmp),
    }
    user: dict[str, object] = {}
    if os.geteuid() == 0:  # it refuses to run as root
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        for path in (folder, *folder.rglob("*")):
            if home not in (path, *path.parents):
                os.chown(path, NOBODY, NOBODY)

    def launch() -> subprocess.Popen[bytes]:
        (logs / "http.ports").unlink(missing_ok=True)
        with (logs / "stdout.log").open("ab") as out:
            return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
                [home / "bin/elasticsearch"], env=environment, cwd=tmp, stdout=out,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True, **user,
            )  # fmt: skip

    server = Server("", launch(), logs, launch)
    try:
        server.url = _wait(server)
    except BaseException:
        stop(server)
        raise
    return server


def kill(server: Server) -> None:
    """SIGKILL, to launcher and server."""
    os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait(20)


def start_again(server: Server) -> None:
    """Over the same data, at the same address."""
    settings = server.logs.parent / "config" / "elasticsearch.yml"
    port = server.url.rpartition(":")[2]
    settings.write_text(settings.read_text().replace("http.port: 0\n", f"http.port: {port}\n"))
    server.process = server.start_again()
    assert _wait(server) == server.url


def _wait(server: Server) -> str:
    deadline = Deadline(START_S)
    ports = server.logs / "http.ports"
    while not deadline.is_over():
        if server.process.poll() is not None:
            break
        for address in ports.read_text().split() if ports.exists() else ():
            if address.startswith("127."):
                with contextlib.suppress(OSError, urllib.error.URLError):
                    urllib.request.urlopen(
                        f"http://{address}/_cluster/health?wait_for_status=yellow", timeout=20
                    ).close()
                    return f"http://{address}"
        time.sleep(0.2)
    tail = (server.logs / "stdout.log").read_text(errors="replace")[-1500:]
    raise RuntimeError(
        f"Elasticsearch did not start within {START_S} s (exit {server.process.poll()}): {tail}"
    )


def stop(server: Server) -> None:
    """Launcher and server, by the session that we started them in."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.process.pid, signal.SIGTERM)
    try:
        server.process.wait(20)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait(20)


def start_or_say(folder: Path, settings: dict[str, str] | None = None) -> Server:
    """A started server, or a skipped (in CI a failed) test that says what this machine lacks."""
    try:
        return start(folder, settings)
    except Missing as exc:
        if os.environ.get("CI"):
            pytest.fail(f"Elasticsearch tests need {exc}")
        pytest.skip(f"skipped: Elasticsearch tests need {exc}")


@contextlib.contextmanager
def running(settings: dict[str, str] | None = None) -> Iterator[Server]:
    """A server of its own, in a folder of its own (pytest's are closed to the
    user that it runs as)."""
    folder = Path(tempfile.mkdtemp(prefix="newscrawler-es-"))
    try:
        server = start_or_say(folder, settings)
        try:
            yield server
        finally:
            stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[str]:
    """The URL of one server for all processes of a test run: started by the first,
    stopped by the last.

    The processes count themselves in a file of ``folder``, under a lock. The server is a child of
    the one that started it, and outlives that one if others still need it.
    """
    state = folder / "elasticsearch.json"
    with _locked(folder):
        using = json.loads(state.read_text()) if state.exists() else None
        if using is None:
            server = start_or_say(place := Path(tempfile.mkdtemp(prefix="newscrawler-es-")))
            using = {"url": server.url, "pid": server.process.pid, "place": str(place), "users": 0}
            server.process.returncode = (
                0  # whoever is the last stops it: Popen need not wait for it
            )
        using["users"] += 1
        state.write_text(json.dumps(using))
    try:
        yield using["url"]
    finally:
        with _locked(folder):
            using = json.loads(state.read_text())
            using["users"] -= 1
            state.write_text(json.dumps(using))
            if not using["users"]:
                state.unlink()
                _stop_session(using["pid"])
                shutil.rmtree(using["place"], ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "elasticsearch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _stop_session(leader: int) -> None:
    """Launcher and server. The launcher stays as a zombie until the process that
    started it ends."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, number)
        deadline = Deadline(20)
        while not deadline.is_over():
            if not _lives(leader):
                return
            time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture(scope="session")
def elasticsearch_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the test run, whichever of its processes asks."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def elasticsearch_server(elasticsearch_folder: Path) -> Iterator[str]:
    """The URL of a server that all processes of this test run share: name an index of your own."""
    with shared(elasticsearch_folder) as url:
        yield url
