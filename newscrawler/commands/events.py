"""`scrapy events VERB`: how far each sink of events has been told, and its dead letters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.commands.search import with_store
from newscrawler.crawl import opening
from newscrawler.frontier import connect
from newscrawler.frontier.types import FrontierError
from newscrawler.store.base import ArticleStore
from newscrawler.store.events import DeadLetter, Event, EventSink, EventsRefused, Outbox, outbox_of

VERBS = {
    "status": ("", "a row per sink: how many events wait for it, and its dead letters"),
    "dead": ("[--sink SINK]", "events that a receiver refused, and why"),
    "resend": ("[EVENT ...] [--sink SINK]", "offer them again; those that are taken are forgotten"),
    "drop": ("EVENT ... | --sink SINK", "forget dead letters"),
}
EXAMPLES = """\
  scrapy events dead --sink webhook
  scrapy events resend --sink webhook"""
#: Waiting events are counted up to here.
_COUNTED = 10_000
_PAGE = 500


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "status | dead [options] | resend [EVENT ...] [options] | drop EVENT ... [options]"

    def short_desc(self) -> str:
        return "How far each sink of events has been told; list and resend dead letters"

    def long_desc(self) -> str:
        verbs = [f"  {f'{verb} {usage}':<34} {text}" for verb, (usage, text) in VERBS.items()]
        head = [f"{self.short_desc()}.", "Without a verb: status.", ""]
        return "\n".join([*head, *verbs, "", "Examples:", EXAMPLES])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument("--sink", metavar="SINK", help="only of this one, e.g. webhook")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        settings = self.settings
        verb, ids = cli.verb_of(args, VERBS, "status")
        if verb in ("status", "dead") and ids:
            raise cli.UsageError(f"scrapy events {verb} takes no {ids[0]}", print_help=False)
        if verb == "drop" and not ids and not opts.sink:
            raise cli.UsageError("drop: name events, or a sink with --sink", print_help=False)

        async def work(store: ArticleStore) -> Any:
            outbox = outbox_of(store)
            if outbox is None:
                cli.fail("this article store keeps no events")
            if verb == "status":
                return await _status(outbox)
            letters = _chosen(await outbox.dead_letters(), ids, opts.sink)
            if verb == "drop":
                await outbox.forget(letters)
            if verb == "resend":
                return await _resend(settings, outbox, letters)
            return letters

        try:
            answer = with_store(settings, work)
        finally:
            opening.stop_embedded(settings)
        _show(verb, answer, opts.as_json)


def _show(verb: str, answer: Any, as_json: bool) -> None:
    if verb == "status":
        cli.print_rows(answer, ("sink", "waiting", "dead"), as_json)
    elif verb == "dead":
        rows = [_row(letter) for letter in answer]
        cli.print_rows(rows, ("event", "sink", "type", "at", "reason"), as_json)
        if not rows and not as_json:
            cli.note("no dead letters")
    elif verb == "drop":
        cli.note(f"{len(answer)} dead letters dropped")
    else:
        taken, left = answer
        cli.note(f"{taken} dead letters were taken, {len(left)} are left")
        for letter, reason in left:
            cli.note(f"{letter.event_id} {letter.sink}: {reason}")
        if left:
            raise SystemExit(1)


def _row(letter: DeadLetter) -> dict[str, Any]:
    return {
        "event": letter.event_id,
        "sink": letter.sink,
        "type": f"article.{letter.kind}",
        "at": datetime.fromtimestamp(letter.refused_ms / 1000, UTC).isoformat(timespec="seconds"),
        "reason": letter.reason,
    }


def _chosen(
    letters: Sequence[DeadLetter], ids: Sequence[str], sink: str | None
) -> list[DeadLetter]:
    unknown = sorted(set(ids) - {letter.event_id for letter in letters})
    if unknown:
        raise cli.UsageError(f"no dead letter {unknown[0]}", print_help=False)
    return [
        letter
        for letter in letters
        if (not ids or letter.event_id in ids) and (not sink or letter.sink == sink)
    ]


async def _status(outbox: Outbox) -> list[dict[str, Any]]:
    letters = await outbox.dead_letters()
    rows = []
    for name, position in sorted((await outbox.cursors()).items()):
        waiting = 0
        while waiting < _COUNTED:
            batch = await outbox.after(position, _PAGE)
            if not batch.events:
                break
            waiting, position = waiting + len(batch.events), batch.position
        rows.append(
            {
                "sink": name,
                "waiting": waiting,
                "dead": sum(letter.sink == name for letter in letters),
            }
        )
    return rows


async def _resend(
    settings: BaseSettings, outbox: Outbox, letters: Sequence[DeadLetter]
) -> tuple[int, list[tuple[DeadLetter, str]]]:
    """How many were taken, and the others with the reason."""
    if not letters:
        return 0, []
    try:
        client = connect(opening.redis_url(settings), single=False)
    except (FrontierError, ValueError) as exc:
        cli.fail(str(exc))
    sinks = opening.open_event_sinks(settings, client)
    taken, left = 0, []
    try:
        for letter in letters:
            reason = await _offered(sinks.get(letter.sink), await outbox.read(letter))
            if reason:
                left.append((letter, reason))
            else:
                await outbox.forget([letter])
                taken += 1
    finally:
        for sink in sinks.values():
            await sink.close()
        with suppress(OSError):
            await client.aclose()
    return taken, left


async def _offered(sink: EventSink | None, event: Event | None) -> str:
    """Why it was not taken."""
    if sink is None:
        return "no setting names this sink"
    if event is None:
        return "its article is not in the store any more"
    try:
        await sink.deliver([event])
    except EventsRefused as exc:
        return next(iter(exc.reasons.values()), "refused")
    except Exception as exc:
        return str(exc) or type(exc).__name__
    return ""
