"""scrapy token: hand out tokens of the API, list them, take them back."""

from __future__ import annotations

import argparse
import os
import time
from datetime import UTC, datetime

from newscrawler import cli
from newscrawler.api.access import ROLES, SECRET_ENV, AccessRefused, access_for, make_token
from newscrawler.api.tokens import Issued, TokenBook, TokenFileError
from newscrawler.cli import UsageError
from newscrawler.crawl.opening import data_dir

VERBS = {
    "create": (
        "[--role operator] [--days 30] [--note WHO]",
        "print a new token, signed with API_TOKEN_SECRET",
    ),
    "list": ("", "the tokens that were handed out: id, role, until when, for whom"),
    "revoke": ("ID ...", "a server refuses it from the next request on"),
}
EXAMPLES = """\
  scrapy token create --role operator --days 90 --note "Lan, night shift"
  scrapy token revoke 1f0c3a9b2d4e"""
#: Days that a token may be good for: who needs longer makes a new one in time.
MOST_DAYS = 3_650
_COLUMNS = ("id", "role", "state", "created", "expires", "note")


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "create [options] | list | revoke ID ..."

    def short_desc(self) -> str:
        return "Hand out, list and revoke tokens of the HTTP API"

    def long_desc(self) -> str:
        verbs = [f"  {f'{verb} {usage}':<52} {text}" for verb, (usage, text) in VERBS.items()]
        tail = [
            "Roles: feed (/feed.rss, .atom, .json alone; may stand in their address as token=),"
            " reader (search, status), operator (pause, recheck, seeds, selector sets), admin"
            " (the audit log).",
            "Tokens are known to the servers of the same DATA_DIR. To change the secret, move it to"
            " API_TOKEN_SECRET_PREVIOUS and set a new API_TOKEN_SECRET: tokens of before are good"
            " until they expire.",
        ]
        head = [f"{self.short_desc()}.", "Without a verb: list."]
        return "\n".join([*head, "", *verbs, "", *tail, "", "Examples:", EXAMPLES])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument("--role", default="reader", choices=ROLES, help="default: reader")
        parser.add_argument(
            "--days", type=float, default=30.0, help="days until it expires (default: 30)"
        )
        parser.add_argument("--note", default="", help="whom it is for")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        verb, rest = cli.verb_of(args, VERBS, "list")
        book = TokenBook(data_dir(self.settings))
        try:
            if verb == "create":
                _no_more(verb, rest)
                cli.show(create(book, opts.role, opts.days, opts.note))
            elif verb == "revoke":
                self.exitcode = _revoke(book, rest, opts.as_json)
            else:
                _no_more(verb, rest)
                _print(book.entries(), opts.as_json)
        except TokenFileError as exc:
            cli.fail(str(exc))


def create(book: TokenBook, role: str, days: float, note: str) -> str:
    """A token that the servers of this folder accept.

    :raises UsageError: ``--days`` is out of its range
    """
    if not 0 < days <= MOST_DAYS:
        raise UsageError(f"--days must be above 0 and at most {MOST_DAYS}", print_help=False)
    secret = os.environ.get(SECRET_ENV, "").strip()
    if not secret:
        cli.fail(
            f"{SECRET_ENV} is not set: tokens are signed with the secret of the server, 32 or more"
            " random characters (openssl rand -hex 32)"
        )
    try:
        access_for("0.0.0.0", secret)
    except AccessRefused as exc:
        cli.fail(str(exc))
    now = int(time.time())
    issued = book.add(role, now, now + int(days * 86_400), note)
    return make_token(secret, days=days, role=role, token_id=issued.id, clock=lambda: float(now))


def _revoke(book: TokenBook, ids: list[str], as_json: bool) -> int:
    if not ids:
        raise UsageError(
            "which token? scrapy token revoke ID; see `scrapy token list`", print_help=False
        )
    now = int(time.time())
    found = {token_id: book.revoke(token_id, now) for token_id in ids}
    _print([one for one in found.values() if one is not None], as_json)
    for token_id, one in found.items():
        if one is None:
            cli.note(f"no token has the id {token_id}; see `scrapy token list`")
    return int(None in found.values())


def _print(entries: list[Issued], as_json: bool) -> None:
    now = time.time()
    rows = [
        {
            "id": one.id,
            "role": one.role,
            "state": one.state(now),
            "created": _time(one.created),
            "expires": _time(one.expires),
            "note": one.note or None,
        }
        for one in entries
    ]
    cli.print_rows(rows, _COLUMNS, as_json)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes")


def _no_more(verb: str, rest: list[str]) -> None:
    if rest:
        raise UsageError(
            f"scrapy token {verb} takes no argument, got {' '.join(rest)}", print_help=False
        )
