"""ClamAV's daemon, a real one with signatures of the test, and what a crawl does without it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import closing
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
    ScannerUnavailable,
    TooLargeToScan,
    parse_address,
)
from tests.fixtures_clamav import EICAR, MakeClamd

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
    await asyncio.sleep(1)
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
        (b"", ScannerUnavailable),
    ],
)
async def test_an_answer_that_is_none_is_no_all_clear(
    answer: bytes, error: type[Exception]
) -> None:
    server = await _scripted({b"zINSTREAM\0": answer})
    async with server:
        with pytest.raises(error):
            await ClamAV(server.sockets[0].getsockname()[:2], 5).scan(CLEAN)


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
