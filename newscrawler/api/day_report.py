"""The report of a day (newscrawler.crawl.day_report) as a page, as text and as a mail.

The page is one file without scripts and without anything to load: plots are inline SVG. Programs
that show mail without SVG have every number in its tables.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from datetime import date, datetime
from email.message import EmailMessage
from functools import cache
from typing import Any

import jinja2

from newscrawler.api.plots import layered, nice
from newscrawler.fleet.freshness import BOUNDS_S, LATE, span
from newscrawler.utils.display import line_shown, shown

#: Sites of the table of the text; the page and the JSON have all.
_MOST_SITES = 40
#: Causes that are listed.
_MOST_CAUSES = 12


@cache
def _template() -> jinja2.Template:
    source = importlib.resources.files("newscrawler.api").joinpath("reports", "day.html")
    env = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    env.filters.update(
        thousands=_thousands, percent=_percent, span=_span, moment=_moment, day=_day, by=_by
    )
    return env.from_string(source.read_text(encoding="utf-8"))


def html(report: Mapping[str, Any]) -> str:
    widest = max((max(row["came"], row["usual"] or 0) for row in report["sites"]), default=1) or 1
    return _template().render(
        r=report,
        head=headline(report),
        tiles=_tiles(report),
        hours=_hours(report),
        lags=_lags(report),
        widest=widest,
        causes=report["failures"][:_MOST_CAUSES],
        more_causes=max(0, len(report["failures"]) - _MOST_CAUSES),
        most_visits=max((row["visits"] for row in report["failures"]), default=1),
    )


def headline(report: Mapping[str, Any]) -> str:
    """One line: what a mail is called."""
    articles, strange = report["articles"], _strange(report)
    text = f"{report['day']}: {_thousands(articles['new'])} new articles"
    if articles["usual"]:
        text += f" ({_percent(articles['came'] / articles['usual'])} of what is usual)"
    if strange:
        text += f", {_many(len(strange), 'strange site')}"
    raised = [one for one in report["incidents"] if one["event"] == "raised"]
    return f"{text}, {_many(len(raised), 'incident')}" if raised else text


def _strange(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for row in report["sites"] if row["state"] in ("far fewer", "far more")]


def _tiles(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, value, and what it is measured by."""
    articles, visits = report["articles"], report["visits"]
    total = report["freshness"]["stages"]["total"]
    usual = articles["usual"]
    models = report["models"]
    money = (
        "" if models["money"] is None else f"{models['money']:.2f} by the prices of the settings"
    )
    bad = visits["failed"] + visits["challenges"]
    return [
        (
            "New articles",
            _thousands(articles["new"]),
            "" if usual is None else f"usual: {usual:,.0f}",
        ),
        ("Published to searchable, p95", _span(total["p95_s"]), f"p50 {_span(total['p50_s'])}"),
        (
            "Visits that failed",
            _percent(bad / visits["all"] if visits["all"] else None),
            f"of {_thousands(visits['all'])}",
        ),
        ("Second addresses", _percent(articles["duplicate_share"]), "of what looks new"),
        (
            "Model",
            f"{_thousands(models['tokens_in'] + models['tokens_out'])} tokens",
            money or f"{_thousands(models['calls'])} calls",
        ),
    ]


def _hours(report: Mapping[str, Any]) -> dict[str, Any]:
    rows = report["hours"]
    return layered(
        "New articles by hour",
        [
            ("came", [row["new"] for row in rows]),
            ("usual, missing", [row["usual"] for row in rows]),
        ],
        [f"{row['hour']:02}:00" for row in rows],
        [False] * len(rows),
        top=nice,
        show=lambda value: f"{value:,g}",
        add=False,
    )


def _lags(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """From publication to the search: articles by steps of time; late ones have another colour."""
    steps = {int(step): count for step, count in report["freshness"]["steps"].items()}
    if not steps:
        return None
    places = range(min(steps), max(max(steps), LATE) + 1)
    names = [f"up to {span(BOUNDS_S[at])}" if at < len(BOUNDS_S) else "longer" for at in places]
    in_time = [steps.get(at, 0) if at <= LATE else None for at in places]
    late = [steps.get(at, 0) if at > LATE else None for at in places]
    return layered(
        "From publication to the search",
        [("within 30 minutes", in_time), ("later", late)],
        names,
        [False] * len(names),
        top=nice,
        show=lambda value: f"{value:,g}",
    )


# ---------------------------------------------------------------- text
def text(report: Mapping[str, Any]) -> str:
    """For a terminal and for a mail's plain part."""
    parts = [headline(report), _said_of_day(report)]
    parts.append("\n".join(f"{name}: {value}  {by}".rstrip() for name, value, by in _tiles(report)))
    parts.append(
        _table("SITES", ("site", "new", "usual", "failed", "p95", ""), _site_lines(report))
    )
    parts.append(_table("FRESHNESS", ("stage", "articles", "p50", "p95"), _stage_lines(report)))
    parts.append(_table("FIELDS", ("field", "share", "week before"), _field_lines(report)))
    for title, columns, lines in (
        ("FAILURES", ("cause", "visits", "sites"), _cause_lines(report)),
        (
            "INCIDENTS",
            ("at", "event", "severity", "kind", "subject", "reason"),
            _told_lines(report),
        ),
        ("SELECTOR SETS", ("at", "site", "who", "what", "reason"), _set_lines(report)),
    ):
        if lines:
            parts.append(_table(title, columns, lines))
    return shown("\n\n".join(part for part in parts if part)) + "\n"


def _said_of_day(report: Mapping[str, Any]) -> str:
    lines = []
    if not report["is_over"]:
        lines.append("The day is not over: what is usual is that of the hours so far.")
    if problem := report["articles"]["store_problem"]:
        lines.append(f"The article store was not asked: {problem}")
    return "\n".join(lines)


def _table(title: str, columns: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    rows = [columns, *lines]
    widths = [max(len(row[at]) for row in rows) for at in range(len(columns))]
    body = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([title, *body])


def _site_lines(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = report["sites"][:_MOST_SITES]
    return [
        (
            line_shown(row["site"]),
            _thousands(row["new"]),
            "-" if row["usual"] is None else f"{row['usual']:,.0f}",
            _percent(row["failed"] / row["visits"] if row["visits"] else None),
            _span(row["p95_s"]),
            f"{row['state']} {row['worst']}".strip() if row["state"] in ("far fewer", "far more")
            else "",
        )
        for row in rows
    ]  # fmt: skip


def _stage_lines(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (stage, _thousands(row["articles"]), _span(row["p50_s"]), _span(row["p95_s"]))
        for stage, row in report["freshness"]["stages"].items()
    ]


def _field_lines(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (row["field"], _percent(row["share"]), _percent(row["before"])) for row in report["fields"]
    ]


def _cause_lines(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            line_shown(row["cause"]),
            _thousands(row["visits"]),
            ", ".join(f"{line_shown(site)} {count}" for site, count in row["sites"].items()),
        )
        for row in report["failures"][:_MOST_CAUSES]
    ]


def _told_lines(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (_moment(one["at"]), *(line_shown(one[name]) for name in
         ("event", "severity", "kind", "subject", "reason")))
        for one in report["incidents"]
    ]  # fmt: skip


def _set_lines(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            _moment(one["at"]), line_shown(one["domain"]), line_shown(_by(one)),
            line_shown(str(one["what"])), line_shown(str(one["reason"])),
        )
        for one in report["selectors"]
    ]  # fmt: skip


def mail(report: Mapping[str, Any], sender: str, receivers: list[str]) -> EmailMessage:
    """Text and page in one, and the page as a file: many programs show no SVG in a mail."""
    page = html(report)
    made = EmailMessage()
    made["From"], made["To"] = sender, ", ".join(receivers)
    made["Subject"] = f"[newscrawler] {headline(report)}"
    made["Date"] = datetime.fromisoformat(report["made"])
    made["Message-ID"] = (
        f"<report-{report['day']}-{report['made'][11:19].replace(':', '')}@newscrawler>"
    )
    made.set_content(text(report))
    made.add_alternative(page, subtype="html")
    name = f"newscrawler-{date.fromisoformat(report['day'])}"
    made.add_attachment(page.encode(), maintype="text", subtype="html", filename=f"{name}.html")
    return made


def as_json(report: Mapping[str, Any]) -> str:
    return json.dumps(report, ensure_ascii=False, indent=2) + "\n"


# ---------------------------------------------------------------- values
def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _thousands(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.1f} %"


def _span(seconds: float | None) -> str:
    return span(seconds) or "-"


def _day(at: str) -> str:
    """Day and moment of ISO text."""
    return f"{at[:10]}, {_moment(at)}"


def _by(event: Mapping[str, Any]) -> str:
    """Who did it; "" where that is said by what was done: "alarm: drift" by "drift"."""
    return "" if str(event["what"]).endswith(f": {event['who']}") else str(event["who"])


def _moment(at: str) -> str:
    """Of ISO text, with its zone: 14:05 +07:00."""
    return f"{at[11:16]} {at[19:].replace('+00:00', 'UTC')}"
