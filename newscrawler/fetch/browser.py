"""One Chromium: started when a page needs it, watched, killed when it takes too much, started
again. It has no network of its own: every name and every address is unknown to it, and what its
pages ask for is answered by ``fetch.render``.

Playwright's package is an extra (requirements-render.txt); Chromium is the system's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import Playwright

log = logging.getLogger(__name__)

#: Names that distributions give it.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell")
#: Seconds for the start of driver and browser on a loaded machine, and for an orderly end.
_START_S, _CLOSE_S = 60.0, 5.0
#: How often memory is looked at while pages are at work, seconds.
_LOOK_S = 0.5
#: Pages after which a browser that is idle is replaced: what leaks goes with it.
_PAGES_OF_ONE = 200
#: The crawl's own work comes first: about a tenth of the weight of an ordinary process.
_NICE = 10
_ARGUMENTS = (
    # No name is looked up and no address connected to, literals and loopback included: a request
    # that is not answered by us fails, whatever part of Chromium it comes from.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=socks5://0.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # 64 MB in a container; /tmp instead
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-notifications",
    "--disable-remote-fonts",
    "--blink-settings=imagesEnabled=false",
    "--no-pings",
    "--mute-audio",
    "--js-flags=--max-old-space-size=384",
)


class BrowserUnavailable(RuntimeError):
    """There is no browser to be had; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Use:
    """What all processes of a browser have taken: seconds of the CPU since they began, bytes of
    memory now that nobody shares with them."""

    cpu_s: float
    memory_bytes: int


def find_browser(path: str = "") -> str | None:
    """Chromium's executable: the one that is named, else the first of NAMES on PATH."""
    if path:
        return path if os.access(path, os.X_OK) else None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """:param executable: of Chromium
    :param memory_bytes: of all its processes together; it is killed above
    :param sandbox: Chromium's own, which root cannot have
    """

    def __init__(self, executable: str, memory_bytes: int, *, sandbox: bool) -> None:
        self._executable = executable
        self._memory_bytes = memory_bytes
        self._sandbox = sandbox
        self._lock = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._browser: PlaywrightBrowser | None = None
        self._driver_pid = 0
        self._main_pid = 0  # of the browser itself, the parent of its processes
        self._served = 0
        self._at_work = 0
        self._watch: asyncio.Task[None] | None = None
        self._spent_s = 0.0  # by browsers that are gone
        self.version = ""
        self.starts = 0
        #: Why it was killed last; "" = it was not since its start.
        self.killed_for = ""

    # ------------------------------------------------------------------ life
    @contextlib.asynccontextmanager
    async def lent(self) -> Any:
        """The running browser, for one page.

        :raises BrowserUnavailable: it cannot be started
        """
        async with self._lock:
            worn_out = self._served >= _PAGES_OF_ONE and not self._at_work
            if not self._is_alive() or worn_out:
                await self._end()
                await self._start()
            browser = self._browser
            self._served += 1
            self._at_work += 1
            if self._watch is None or self._watch.done():
                self._watch = asyncio.ensure_future(self._look())
        try:
            yield browser
        finally:
            self._at_work -= 1

    async def close(self) -> None:
        async with self._lock:
            await self._end()
            if self._watch is not None:
                self._watch.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._watch

    async def _start(self) -> None:
        from playwright.async_api import Error, async_playwright

        before = set(_children(os.getpid()))
        try:
            async with asyncio.timeout(_START_S):
                self._playwright = await async_playwright().start()
                new = [pid for pid in _children(os.getpid()) if pid not in before]
                self._driver_pid = next((pid for pid in new if _is_driver(pid)), 0)
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, self._driver_pid, _NICE)
                self._browser = await self._playwright.chromium.launch(
                    executable_path=self._executable,
                    args=list(_ARGUMENTS),
                    chromium_sandbox=self._sandbox,
                    # keys and passwords of the crawl's environment are none of its business
                    env={k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR")},
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
        except (Error, OSError, TimeoutError) as exc:
            await self._end()
            first = (str(exc) or type(exc).__name__).strip().splitlines()[0]
            raise BrowserUnavailable(f"{self._executable} does not start: {first}") from exc
        self.version = self._browser.version
        self._main_pid = next(filter(_is_main, _children(self._driver_pid)), 0)
        self.starts += 1
        self._served, self.killed_for = 0, ""
        if self.starts > 1:
            log.info("Browser started again starts=%d", self.starts)

    async def _end(self) -> None:
        """Whatever state it is in, nothing of it is left."""
        pids = self._pids()
        self._spent_s += _cpu_s(pids)
        browser, playwright = self._browser, self._playwright
        self._browser = self._playwright = None
        with contextlib.suppress(Exception):
            if browser is not None:
                await asyncio.wait_for(browser.close(), _CLOSE_S)
        with contextlib.suppress(Exception):
            if playwright is not None:
                await asyncio.wait_for(playwright.stop(), _CLOSE_S)
        self._driver_pid = self._main_pid = 0
        _kill(pid for pid in pids if _is_ours(pid))

    def _is_alive(self) -> bool:
        """Playwright does not notice the end of its own driver, and that of the browser only when
        the driver, which gives way to everything, has told it."""
        if self._browser is None or not self._browser.is_connected():
            return False
        if self._main_pid and not _is_main(self._main_pid):
            return False
        return not self._driver_pid or _is_driver(self._driver_pid)

    # ------------------------------------------------------------------ what it takes
    @property
    def pids(self) -> list[int]:
        """Of the driver and of all processes of the browser."""
        return self._pids()

    def _pids(self) -> list[int]:
        return _tree(self._driver_pid) if self._driver_pid else []

    def use(self) -> Use:
        pids = self._pids()
        return Use(self._spent_s + _cpu_s(pids), sum(map(_own_memory, pids)))

    def kill(self, why: str) -> None:
        """At once; pages at work fail, the next one starts another."""
        self.killed_for = why
        log.warning("Browser killed reason=%s", why)
        pids = self._pids()
        self._spent_s += _cpu_s(pids)
        # The driver goes with it: it is waited for by nobody then, and holds no state.
        _kill(pid for pid in pids if pid != self._driver_pid)

    async def _look(self) -> None:
        while self._at_work:
            await asyncio.sleep(_LOOK_S)
            memory = self.use().memory_bytes
            if memory > self._memory_bytes and self._at_work:
                self.kill(
                    f"{memory / 1e6:.0f} MB of memory, {self._memory_bytes / 1e6:.0f} are allowed"
                )


# ---------------------------------------------------------------------- processes
def _kill(pids: Any) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError, ValueError):
                found += map(int, (task / "children").read_text().split())
    return found


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        found += _children(one)
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _is_driver(pid: int) -> bool:
    return b"run-driver" in _command(pid)


def _is_main(pid: int) -> bool:
    command = _command(pid)
    return _ARGUMENTS[1].encode() in command and b"--type=" not in command


def _is_ours(pid: int) -> bool:
    """The number may have gone to another process since."""
    command = _command(pid)
    return b"run-driver" in command or _ARGUMENTS[1].encode() in command or b"--type=" in command


def _cpu_s(pids: list[int]) -> float:
    """Of each process and of the children that it has outlived."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, rest[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_memory(pid: int) -> int:
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
