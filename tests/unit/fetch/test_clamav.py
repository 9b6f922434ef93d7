"""ClamAV's daemon, a real one with signatures of the test, and what a crawl does without it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from newscrawler import settings as project
from newscrawler.cli import doctor
from newscrawler.crawl.virus_scan import VirusScan, scanner_of
from newscrawler.crawl.waits import SCANNER, Waits
from newscrawler.fetch.clamav import (
    ClamAV,
    ScanFailed,
    ScannerDropped,
    ScannerUnavailable,
    TooLargeToScan,
    parse_address,
)
from tests.fixtures_clamav import EICAR, MakeClamd
from tests.fixtures_redis import until

PAGE = b"<html><body><h1>Tin</h1>%s</body></html>"
CLEAN = PAGE % b"khong co gi"


def scan_of(client: ClamAV, *, passes: bool, over: Callable[[], bool] = lambda: False) -> Any:
    counts: Counter[str] = Counter()
    made = VirusScan(
        client,
        Waits(),
        lambda name, number: counts.update({name: number}),
        lambda name, seconds: None,
        over,
        passes=passes,
    )
    return made, counts


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("/run/clamav/clamd.ctl", "/run/clamav/clamd.ctl"),
        ("unix:///run/x", "/run/x"),
        ("127.0.0.1:3310", ("127.0.0.1", 3310)),
        ("[::1]:3310", ("::1", 3310)),
        (" scanner.example:65535 ", ("scanner.example", 65535)),
    ],
)
def test_addresses(text: str, address: Any) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["x", "host:", ":3310", "host:0", "host:65536", "host:abc"])
def test_a_wrong_address_names_the_setting(text: str) -> None:
    with pytest.raises(ValueError, match="CLAMAV="):
        parse_address(text)


@pytest.mark.parametrize(
    ("name", "value"), [("CLAMAV", "x"), ("CLAMAV_AWAY", "open"), ("CLAMAV_TIMEOUT_S", "0")]
)
def test_a_wrong_setting_is_refused(name: str, value: str) -> None:
    values = {"CLAMAV": "", "CLAMAV_AWAY": "wait", "CLAMAV_TIMEOUT_S": 20, name: value}
    with pytest.raises(ValueError, match=name):
        scanner_of(values)
    assert scanner_of({"CLAMAV": "", "CLAMAV_AWAY": "wait", "CLAMAV_TIMEOUT_S": 20}) is None


async def test_signatures_are_found_over_both_sockets(clamd: MakeClamd) -> None:
    daemon = clamd({"Test.Own": b"cau rieng"})
    for address in (str(daemon.socket), ("127.0.0.1", daemon.port)):
        client = ClamAV(address, 20)
        assert await client.scan(CLEAN) == ""
        assert await client.scan(b"") == ""
        assert await client.scan(PAGE % EICAR) == "Test.EICAR.UNOFFICIAL"
        pages = [PAGE % (b"x" * n + b"cau rieng") for n in (0, 65_531, 900_000)]
        found = await asyncio.gather(*map(client.scan, [CLEAN, *pages] * 5))
        assert found == ["", *["Test.Own.UNOFFICIAL"] * 3] * 5
        assert (await client.version()).startswith("ClamAV 1.")


async def test_what_the_daemon_does_not_take_is_said(clamd: MakeClamd) -> None:
    daemon = clamd(stream_max="1M")
    client = ClamAV(str(daemon.socket), 20)
    assert await client.scan(bytes(1_000_000)) == ""
    with pytest.raises(TooLargeToScan, match="size limit"):
        await client.scan(bytes(8_000_000))  # it closes while it is written to
    scan, counts = scan_of(client, passes=True)
    refusal = await scan.refusal("https://a.vn/x", bytes(8_000_000))
    assert refusal is not None and refusal[0] == "size"
    assert counts == {"scan/pages/failed": 1}


async def test_what_is_found_is_refused_and_counted(
    clamd: MakeClamd, caplog: pytest.LogCaptureFixture
) -> None:
    scan, counts = scan_of(ClamAV(str(clamd().socket), 20), passes=False)
    assert await scan.refusal("https://a.vn/1", CLEAN) is None
    refusal = await scan.refusal("https://a.vn/2", PAGE % EICAR)
    assert refusal == ("malware", "the virus scanner found Test.EICAR.UNOFFICIAL")
    assert counts == {"scan/pages/clean": 1, "scan/pages/found": 1}
    assert "url=https://a.vn/2 signature=Test.EICAR.UNOFFICIAL" in caplog.text


async def test_a_crawl_waits_for_a_daemon_that_is_away_and_stores_nothing_unscanned(
    clamd: MakeClamd, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = clamd()
    daemon.kill()
    scan, counts = scan_of(ClamAV(str(daemon.socket), 20), passes=False)
    pages = [PAGE % EICAR, CLEAN, CLEAN]
    asked = [asyncio.ensure_future(scan.refusal("https://a.vn/1", page)) for page in pages]
    await until(lambda: "Waiting for the virus scanner" in caplog.text, "the crawl to say so")
    assert not any(one.done() for one in asked) and not counts
    assert scan._waits.is_failing(SCANNER), "the lease loop takes nothing meanwhile"
    assert caplog.text.count("Waiting for the virus scanner") == 1, "one line"
    daemon.start()
    found = await asyncio.wait_for(asyncio.gather(*asked), 30)
    assert [one and one[0] for one in found] == ["malware", None, None]
    assert not scan._waits.is_failing(SCANNER)


async def test_a_crawl_that_ends_meanwhile_fetches_the_page_again(tmp_path: Path) -> None:
    scan, counts = scan_of(ClamAV(str(tmp_path / "none"), 20), passes=False, over=lambda: True)
    refusal = await asyncio.wait_for(scan.refusal("https://a.vn/1", CLEAN), 10)
    assert refusal is not None and refusal[0] == "unscanned"  # RETRY, web/outcomes.py
    assert counts == {"scan/pages/failed": 1}


async def test_pages_pass_where_the_operator_says_so(
    clamd: MakeClamd, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    daemon = clamd()
    daemon.kill()
    scan, counts = scan_of(ClamAV(str(daemon.socket), 20), passes=True)
    for _ in range(50):
        assert await scan.refusal("https://a.vn/1", PAGE % EICAR) is None
    assert counts == {"scan/pages/passed": 50}
    assert caplog.text.count("stored without a virus scan") == 1, "one line a minute"
    daemon.start()
    scan._away_until = 0  # its pause is over
    refusal = await scan.refusal("https://a.vn/1", PAGE % EICAR)
    assert refusal is not None and refusal[0] == "malware"
    assert "is back" in caplog.text


async def test_a_daemon_that_hangs_is_away(clamd: MakeClamd) -> None:
    daemon = clamd()
    client = ClamAV(str(daemon.socket), 0.3)
    daemon.pause()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("newscrawler.fetch.clamav._PING_S", 0.3)
            with pytest.raises(ScannerUnavailable, match="does not answer"):
                await client.scan(CLEAN)
    finally:
        daemon.goes_on()
    assert await ClamAV(str(daemon.socket), 20).scan(CLEAN) == ""


async def _scripted(answers: dict[bytes, bytes | None]) -> Any:
    """A server that answers as told by the first bytes; None: never."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\0")
        answer = answers[asked]
        if answer is None:
            await reader.read()  # until the client has enough
        writer.write(answer or b"")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def test_a_page_that_holds_up_a_daemon_that_is_well_never_passes() -> None:
    """Else a page could be made that stops the crawl, or that is let through."""
    server = await _scripted({b"zINSTREAM\0": None, b"zPING\0": b"PONG\0"})
    async with server:
        client = ClamAV(server.sockets[0].getsockname()[:2], 0.2)
        with pytest.raises(ScanFailed, match=r"no answer of 127.0.0.1:\d+ in 0.2 s"):
            await client.scan(CLEAN)
        for passes in (True, False):
            scan, _ = scan_of(client, passes=passes)
            refusal = await asyncio.wait_for(scan.refusal("https://a.vn/1", CLEAN), 5)
            assert refusal is not None and refusal[0] == "unscanned"
        await asyncio.sleep(0.05)  # the server sees that its clients are gone


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"stream: Can't allocate memory ERROR\0", ScanFailed),
        (b"HTTP/1.1 400 Bad Request\0", ScanFailed),
        (b"", ScanFailed),
    ],
)
async def test_an_answer_that_is_none_is_no_all_clear(
    answer: bytes, error: type[Exception]
) -> None:
    server = await _scripted({b"zINSTREAM\0": answer, b"zPING\0": b"PONG\0"})
    async with server:
        with pytest.raises(error):
            await ClamAV(server.sockets[0].getsockname()[:2], 5).scan(CLEAN)


async def test_a_page_that_is_dropped_by_a_daemon_that_is_well_does_not_hold_up_the_crawl() -> None:
    server = await _scripted({b"zINSTREAM\0": b"", b"zPING\0": b"PONG\0"})
    async with server:
        client = ClamAV(server.sockets[0].getsockname()[:2], 20)
        for passes in (True, False):
            scan, counts = scan_of(client, passes=passes)
            refusal = await asyncio.wait_for(scan.refusal("https://a.vn/1", CLEAN), 120)
            assert refusal is not None and refusal[0] == "unscanned"
            assert counts == {"scan/pages/failed": 1}
            assert not scan._waits.is_failing(SCANNER)


async def test_a_proxy_before_a_daemon_that_is_away_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes connections and drops them, PING's too: no page is to blame."""
    monkeypatch.setattr("newscrawler.crawl.waits.LONGEST_PAUSE_S", 0.5)
    answers: dict[bytes, bytes | None] = {b"zINSTREAM\0": b"", b"zPING\0": b""}
    server = await _scripted(answers)
    async with server:
        client = ClamAV(server.sockets[0].getsockname()[:2], 20)
        with pytest.raises(ScannerDropped):
            await client.scan(CLEAN)
        scan, _ = scan_of(client, passes=False)
        dropped = []
        ping = client.ping

        async def counted() -> None:
            try:
                await ping()
            except ScannerUnavailable as exc:
                assert not isinstance(exc, ScannerDropped)
                dropped.append(exc)
                if len(dropped) == 5:  # one of the page, and more than it takes to give one up
                    answers.update({b"zINSTREAM\0": b"stream: OK\0", b"zPING\0": b"PONG\0"})
                raise

        client.ping = counted  # type: ignore[method-assign]
        assert await asyncio.wait_for(scan.refusal("https://a.vn/1", CLEAN), 120) is None
        assert len(dropped) == 5 and not scan._waits.is_failing(SCANNER)


class Crashing:
    """A daemon that ends when it reads ``poison``, with all that it is scanning, and is started
    again, as systemd does, when ``client`` has asked in vain for each page that was dropped."""

    def __init__(self, poison: bytes) -> None:
        self.address, self.poison = ("127.0.0.1", 0), poison
        self.crashes = self._in_vain = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._again: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, *self.address)
        self.address = self._server.sockets[0].getsockname()[:2]

    def client(self) -> ClamAV:
        made = ClamAV(self.address, 20)
        ping = made.ping

        async def counted() -> None:
            try:
                await ping()
            except ScannerUnavailable:
                self._in_vain += 1
                raise

        made.ping = counted  # type: ignore[method-assign]
        return made

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if await reader.readuntil(b"\0") == b"zPING\0":
                writer.write(b"PONG\0")
            else:
                page = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                await asyncio.sleep(0.2)  # others are being scanned meanwhile
                if self.poison in page and writer in self._open:
                    self._crash()
                elif writer in self._open:
                    writer.write(b"stream: OK\0")
        self._open.discard(writer)
        writer.close()

    def _crash(self) -> None:
        self.crashes += 1
        assert self._server is not None
        self._server.close()
        self._again = asyncio.ensure_future(self._restart(self._in_vain + len(self._open)))
        for writer in self._open:
            writer.close()
        self._open.clear()

    async def _restart(self, in_vain: int) -> None:
        await until(lambda: self._in_vain >= in_vain, "each dropped page has asked", 120)
        await self.start()

    async def stop(self) -> None:
        if self._again is not None:
            await self._again
        assert self._server is not None
        self._server.close()


@asynccontextmanager
async def crashing(poison: bytes) -> AsyncIterator[Crashing]:
    made = Crashing(poison)
    await made.start()
    yield made
    await made.stop()


async def test_a_page_that_makes_the_daemon_crash_is_given_up_and_its_neighbours_are_not() -> None:
    async with crashing(b"poison") as daemon:
        scan, counts = scan_of(daemon.client(), passes=False)
        pages = [CLEAN, PAGE % b"poison", CLEAN, CLEAN]
        asked = [scan.refusal("https://a.vn/1", page) for page in pages]
        found = await asyncio.wait_for(asyncio.gather(*asked), 300)
        assert [one and one[0] for one in found] == [None, "unscanned", None, None]
        assert daemon.crashes == 3 and counts == {"scan/pages/clean": 3, "scan/pages/failed": 1}
        assert not scan._waits.is_failing(SCANNER), "the crawl goes on"


async def test_the_crawl_goes_on_when_the_first_page_after_a_wait_is_not_judged(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "clamd.sock")
    scan, _ = scan_of(ClamAV(path, 20), passes=False)
    asked = asyncio.ensure_future(scan.refusal("https://a.vn/1", CLEAN))
    await until(lambda: scan._waits.is_failing(SCANNER), "it waits", 120)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\0")
        writer.write(b"stream: Can't create temporary file ERROR\0")
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        refusal = await asyncio.wait_for(asked, 120)
        assert refusal is not None and refusal[0] == "unscanned"
        assert not scan._waits.is_failing(SCANNER), "else the lease loop takes nothing for good"


def settings_of(**more: Any) -> Settings:
    found = Settings()
    found.setmodule(project, priority="project")
    found.update(more, priority="cmdline")
    return found


async def test_doctor_looks_at_the_daemon(clamd: MakeClamd, tmp_path: Path) -> None:
    assert await doctor.scanner(settings_of(CLAMAV="")) == []
    daemon = clamd()
    small = clamd(stream_max="1M")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    for address, state, todo in (
        (str(daemon.socket), "warn", "freshclam"),
        (str(small.socket), "warn", "StreamMaxLength"),
        (str(tmp_path / "none"), "fail", "a crawl waits"),
        (nobody, "fail", "start clamd"),
        ("x", "fail", "correct the setting"),
    ):
        (finding,) = await doctor.scanner(settings_of(CLAMAV=address))
        assert finding.state == state and todo in finding.todo, finding


def test_the_age_of_signatures_is_read() -> None:
    assert doctor._time_of("Sun Nov 22 09:00:00 2026") > 1_700_000_000
    assert doctor._time_of("no day") == 0
