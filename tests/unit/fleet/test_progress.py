"""What the terminal shows of a crawl."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from newscrawler.fleet import progress
from newscrawler.fleet.progress import (
    PlainDisplay,
    Status,
    Stays,
    choose_mode,
    plain_line,
    print_summary,
    render,
)
from newscrawler.fleet.rows import EndedVisit, QueueState, Rows


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def crawl(*visits: tuple[str, str, str]) -> Rows:
    """Rows after (site, outcome, reason) each; DONE is a new article."""
    rows = Rows()
    for site, outcome, reason in visits:
        is_done = outcome == "DONE"
        answered = is_done or reason not in ("dns", "connect", "timeout")
        rows.note(
            EndedVisit(site, outcome, reason, answered, is_done, "new" if is_done else ""), 1000
        )
    return rows


def drawn(rows: Rows, width: int = 120, height: int = 40) -> str:
    out = io.StringIO()
    Console(file=out, width=width, height=height, highlight=False).print(
        render(rows, Status(65, 12.34, 4512, 18), width, height)
    )
    return out.getvalue()


@pytest.mark.parametrize(
    ("setting", "stream", "environment", "mode"),
    [
        ("auto", Terminal(), {"TERM": "xterm"}, "live"),
        ("auto", Terminal(), {"TERM": "dumb"}, "plain"),
        ("auto", Terminal(), {}, "plain"),
        ("auto", io.StringIO(), {"TERM": "xterm"}, "plain"),
        ("auto", Terminal(), {"TERM": "xterm", "SCRAPY_PROJECT": "newscrawler"}, "off"),
        ("", io.StringIO(), {}, "plain"),
        ("LIVE", io.StringIO(), {}, "live"),
        ("off", Terminal(), {"TERM": "xterm"}, "off"),
    ],
)
def test_the_mode(
    setting: str, stream: io.StringIO, environment: dict[str, str], mode: str
) -> None:
    assert choose_mode(setting, stream, environment) == mode


def test_another_mode_is_refused() -> None:
    with pytest.raises(ValueError, match='PROGRESS="loud": must be one of auto, live, plain, off'):
        choose_mode("loud", io.StringIO(), {})


def test_the_plain_line_has_the_figures_and_the_reasons() -> None:
    rows = crawl(("a.vn", "DONE", ""), ("a.vn", "REFUSED", "robots"), ("b.vn", "RETRY", "timeout"))
    line = plain_line(rows, Status(65, 12.34, 4512, 18))
    assert line.startswith("00:01:05 pages=2 pages/s=12.3")
    assert "tries=3" in line
    assert "articles=1 new=1 updated=0" in line
    assert "queue=4512 in_flight=18" in line
    assert "REFUSED(robots) 1" in line and "RETRY(timeout) 1" in line


def test_without_a_network_every_site_says_so_once() -> None:
    rows = crawl(("a.vn", "RETRY", "dns"), ("b.vn", "RETRY", "connect"))
    out = io.StringIO()
    display = PlainDisplay(out)
    display.update(rows, Status())
    display.update(rows, Status())
    lines = out.getvalue().splitlines()
    assert lines.count("a.vn: no network? name not found (dns)") == 1
    assert lines.count("b.vn: no network? cannot connect (connect)") == 1


def test_a_site_that_answered_before_is_not_called_unreachable() -> None:
    rows = crawl(("a.vn", "DONE", ""), ("a.vn", "RETRY", "dns"))
    assert rows.by_site["a.vn"].unreachable() == ""


def test_the_display_has_a_row_per_site_and_what_comes_next() -> None:
    rows = crawl(("a.vn", "DONE", ""), ("b.vn", "CHALLENGE", "cookie"), ("c.vn", "RETRY", "dns"))
    rows.row("d.vn")
    rows.by_site["a.vn"].place = QueueState(queued=12, delay_ms=2500, wait_ms=1400)
    text = drawn(rows)
    lines = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert "12.3 pages/s" in text and "queue 4,512" in text and "in flight 18" in text
    assert "2.5 s" in lines["a.vn"] and "next in 1 s" in lines["a.vn"]
    assert "challenge page" in lines["b.vn"]
    assert "name not found" in lines["c.vn"]
    assert "not started" in lines["d.vn"]


@pytest.mark.parametrize(("width", "height"), [(40, 10), (80, 24), (200, 60)])
def test_the_display_fits_the_terminal(width: int, height: int) -> None:
    rows = crawl(*((f"site-{n:02d}.vn", "RETRY", f"reason-{n}") for n in range(33)))
    lines = drawn(rows, width, height).splitlines()
    assert len(lines) <= height
    assert max(len(line) for line in lines) <= width
    if height < 33:
        assert any("more sites" in line for line in lines)


def test_the_summary_names_every_site_and_the_next_step() -> None:
    rows = crawl(("a.vn", "DONE", ""), ("a.vn", "UNCHANGED", ""), ("b.vn", "RETRY", "dns"))
    out = io.StringIO()
    print_summary(rows, 61.0, "finished", 12, out)
    text = out.getvalue()
    row = next(line for line in text.splitlines() if line.strip().startswith("a.vn"))
    assert row.split()[:5] == ["a.vn", "2", "1", "1", "0"]
    assert "name not found (dns)" in text
    assert "3 tries, 2 pages in 00:01:01" in text and "ended: finished" in text
    assert "12 URLs are queued" in " ".join(text.split())


def test_robots_txt_is_no_page_to_people() -> None:
    rows = crawl(("a.vn", "DONE", ""))
    for site in ("a.vn", "b.vn"):
        rows.note(EndedVisit(site, "DONE", is_robots=True), 1000)
    rows.note(EndedVisit("c.vn", "RETRY", "dns", answered=False, is_robots=True), 1000)
    out = io.StringIO()
    print_summary(rows, 10.0, "closespider_pagecount", 1, out)
    lines = {line.split()[0]: line for line in out.getvalue().splitlines() if line.split()}
    assert lines["a.vn"].split()[1] == "1"
    assert lines["b.vn"].split()[1] == "0" and "not started" not in lines["b.vn"]
    assert "name not found (dns)" in lines["c.vn"]
    text = " ".join(out.getvalue().split())
    assert "2 tries, 1 page in" in text and "ended: the limit of pages is reached." in text
    assert "1 URL is queued; the next run goes on with it." in text


def test_the_summary_says_until_when_what_stays_waits() -> None:
    def told(stays: Stays | None) -> str:
        out = io.StringIO()
        print_summary(crawl(("a.vn", "DONE", "")), 61.0, "finished", 12, out, stays)
        return " ".join(out.getvalue().split())

    assert "due in" not in told(None)
    assert told(Stays(1320, 0)).endswith("The first is due in 00:22:00.")
    text = told(Stays(1320, 2))
    assert (
        "Pages that may kill workers are resting: 2 of them" in text
        and "scrapy frontier why URL" in text
    )


def test_a_crawl_without_any_answer_says_so() -> None:
    out = io.StringIO()
    print_summary(crawl(("a.vn", "RETRY", "dns")), 10, "shutdown", 0, out)
    text = " ".join(out.getvalue().split())
    assert "is there a network?" in text
    assert "1 tries, 0 pages in 00:00:10 (0.0 pages/s)" in text, "a failed try is no page"
    assert "1 tries, 0 pages" in drawn(crawl(("a.vn", "RETRY", "dns")))
    assert "tries" not in drawn(crawl(("a.vn", "DONE", "")))


def test_a_reader_that_went_away_does_not_stop_the_crawl() -> None:
    tried = []

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            tried.append(text)
            raise BrokenPipeError

    PlainDisplay(Broken()).update(crawl(("a.vn", "DONE", "")), Status())
    assert tried


def test_the_live_display_restores_the_cursor() -> None:
    out = Terminal()
    display = progress.LiveDisplay(out)
    display.start()
    display.update(crawl(("a.vn", "DONE", "")), Status())
    display.stop()
    assert "a.vn" in out.getvalue()
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


# ---------------------------------------------------------------- rows


def test_deltas_are_taken_once_and_come_back_when_they_could_not_be_written() -> None:
    rows = crawl(("a.vn", "DONE", ""), ("a.vn", "RETRY", "timeout"))
    taken = rows.take_deltas()
    assert rows.take_deltas() == {}
    rows.note(EndedVisit("a.vn", "DONE", "", True, True, "updated"), 2000)
    rows.give_back(taken)
    delta = rows.take_deltas()["a.vn"]
    assert (delta.pages, delta.new, delta.updated) == (3, 1, 1)
    assert delta.outcomes == {"DONE": 2, "RETRY(timeout)": 1}
    assert (delta.last_fetch_ms, delta.last_error) == (2000, "RETRY(timeout)")


def test_the_rate_is_over_the_last_ten_seconds() -> None:
    rows = Rows()
    for second in range(21):
        rows.mark(float(second))
        for _ in range(10 if second < 10 else 2):
            rows.note(EndedVisit("a.vn", "DONE"), second)
    assert rows.rate() == 2.0


def test_refusals_are_no_errors_but_are_listed() -> None:
    rows = crawl(("a.vn", "REFUSED", "robots"), ("a.vn", "FAILED", "404"))
    assert rows.total.errors == 1
    assert rows.problems() == {"REFUSED(robots)": 1, "FAILED(404)": 1}
