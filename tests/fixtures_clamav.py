"""Debian's clamd (package clamav-daemon) on sockets of its own, with signatures that a test writes:
nothing is downloaded, no service of the machine is touched."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

#: The file that every scanner finds by agreement, in two parts so that none finds this one.
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$" + b"EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
START_S = 60


class Clamd:
    """``signatures``: name -> bytes that are looked for anywhere in a page."""

    def __init__(self, folder: Path, signatures: dict[str, bytes], stream_max: str = "20M") -> None:
        self.folder = folder
        self.socket = folder / "clamd.sock"
        (folder / "db").mkdir(parents=True)
        every = {"Test.EICAR": EICAR, **signatures}
        rows = [f"{name}:0:*:{text.hex()}\n" for name, text in every.items()]
        # HTML is compared in lower case (type 3)
        rows += [f"{name}:3:*:{text.lower().hex()}\n" for name, text in every.items()]
        (folder / "db/own.ndb").write_text("".join(rows))
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = free.getsockname()[1]
        (folder / "clamd.conf").write_text(
            f"DatabaseDirectory {folder}/db\nLocalSocket {self.socket}\n"
            f"TCPSocket {self.port}\nTCPAddr 127.0.0.1\nForeground yes\nSelfCheck 0\n"
            f"StreamMaxLength {stream_max}\nMaxThreads 4\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("clamd") or "/usr/sbin/clamd"
        self.socket.unlink(missing_ok=True)
        with (self.folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [program, "-c", str(self.folder / "clamd.conf")], stdout=out, stderr=out
            )
        end = time.monotonic() + START_S
        while not self.socket.exists():
            said = (self.folder / "out").read_text(errors="replace")
            assert self._process.poll() is None, said
            assert time.monotonic() < end, said
            time.sleep(0.05)

    def pause(self) -> None:
        """It hangs: connections are accepted by the kernel and nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def goes_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def cpu_s(self) -> float:
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


MakeClamd = Callable[..., Clamd]


@pytest.fixture
def clamd(tmp_path: Path) -> Iterator[MakeClamd]:
    """Makes a daemon and starts it; it is killed after the test."""
    if shutil.which("clamd") is None and not Path("/usr/sbin/clamd").exists():
        text = "ClamAV's daemon is not installed (Debian: apt-get install clamav-daemon)"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(text)
    made: list[Clamd] = []

    def make(signatures: dict[str, bytes] | None = None, **more: str) -> Clamd:
        one = Clamd(tmp_path / f"clamd{len(made)}", signatures or {}, **more)
        made.append(one)
        one.start()
        return one

    yield make
    for one in made:
        one.kill()
