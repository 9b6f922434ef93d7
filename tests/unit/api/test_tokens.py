"""Tokens that are handed out and taken back, and the log of what was changed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from newscrawler.api.access import Access, Principal, TokenError, make_token
from newscrawler.api.audit import FILE as AUDIT_FILE
from newscrawler.api.audit import AuditLog, AuditUnavailable
from newscrawler.api.tokens import FILE, TokenBook, TokenFileError
from tests import warm

SECRET, NEXT = "0123456789abcdef" * 2, "fedcba9876543210" * 2
NOW = 1_800_000_000
ROOT = Path(__file__).resolve().parents[3]


def clock() -> float:
    return float(NOW)


def handed_out(book: TokenBook, secret: str = SECRET, role: str = "operator") -> tuple[str, str]:
    issued = book.add(role, NOW, NOW + 86_400, "Lan")
    return issued.id, make_token(secret, days=1, role=role, token_id=issued.id, clock=clock)


def test_a_token_is_good_until_it_is_revoked(tmp_path: Path) -> None:
    access = Access(SECRET, book=TokenBook(tmp_path))
    token_id, token = handed_out(TokenBook(tmp_path))
    other_id, other = handed_out(TokenBook(tmp_path), role="reader")
    assert access.principal(token, clock=clock) == Principal(token_id, "operator")
    assert TokenBook(tmp_path).revoke(token_id, NOW) is not None
    with pytest.raises(TokenError, match="was revoked"):
        access.principal(token, clock=clock)
    assert access.principal(other, clock=clock).id == other_id
    with pytest.raises(TokenError, match="this needs 'operator'"):
        access.principal(other, role="operator", clock=clock)


def test_a_signed_token_that_nobody_has_handed_out_is_refused(tmp_path: Path) -> None:
    access = Access(SECRET, book=TokenBook(tmp_path))
    for token_id in ("", "0" * 12):
        token = make_token(SECRET, days=1, role="admin", token_id=token_id, clock=clock)
        with pytest.raises(TokenError, match="has not handed out"):
            access.principal(token, clock=clock)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 9, "tokens": []}',
        '{"schema": 1, "tokens": [{"id": 1}]}',
        '{"schema": 1, "tokens": [], "made_by": 3}',
    ],
)
def test_a_file_that_cannot_be_read_lets_nobody_in(tmp_path: Path, text: str) -> None:
    access = Access(SECRET, book=TokenBook(tmp_path))
    _, token = handed_out(TokenBook(tmp_path))
    access.principal(token, clock=clock)
    (tmp_path / FILE).write_text(text)
    with pytest.raises(TokenError, match=FILE):
        access.principal(token, clock=clock)
    with pytest.raises(TokenFileError):
        TokenBook(tmp_path).add("reader", NOW, NOW + 1)
    assert (tmp_path / FILE).read_text() == text, "nothing of it is lost"
    (tmp_path / FILE).unlink()
    with pytest.raises(TokenError, match="has not handed out"):
        access.principal(token, clock=clock)


def made(book: TokenBook) -> tuple[str, str]:
    parent = book.add("reader", NOW, NOW + 86_400, "Lan")
    return parent.id, book.renew(parent, "feed", NOW, "feeds", least_age=60).id


def test_a_program_of_before_reads_the_file_with_tokens_for_feeds(tmp_path: Path) -> None:
    """It makes an entry of each row, of these fields and no other one."""
    parent, feed = made(TokenBook(tmp_path))
    data = json.loads((tmp_path / FILE).read_text())
    known = {"id", "role", "created", "expires", "note", "revoked"}
    assert data["schema"] == 1 and all(set(row) == known for row in data["tokens"])
    assert data["made_by"] == {feed: parent}
    assert [one.id for one in TokenBook(tmp_path).made_by(parent)] == [feed]


def test_a_file_of_a_later_program_and_one_with_the_parent_in_the_row(tmp_path: Path) -> None:
    parent, feed = made(TokenBook(tmp_path))
    data = json.loads((tmp_path / FILE).read_text())
    del data["made_by"]
    data["tokens"][0]["colour"] = "of a later program"
    data["tokens"][1]["made_by"] = parent
    (tmp_path / FILE).write_text(json.dumps(data | {"more": 1}))
    book = TokenBook(tmp_path)
    assert [one.id for one in book.made_by(parent)] == [feed] and book.refusal(feed) == ""
    book.revoke(parent, NOW)
    assert "handed out" in book.refusal(feed) and "revoked" in book.refusal(parent)


def test_tokens_that_end_with_others_do_not_pile_up(tmp_path: Path) -> None:
    book = TokenBook(tmp_path)
    parent = book.add("reader", NOW, NOW + 86_400)
    made = [book.renew(parent, "feed", NOW + n, "", least_age=60).id for n in range(0, 600, 20)]
    assert len(set(made)) == 10, "one a minute"
    assert [one.id for one in book.entries()] == [parent.id, made[-1]]
    assert book.refusal(made[-1]) == "" != book.refusal(made[0])
    late = book.add("reader", NOW + 90_000, NOW + 100_000)
    assert [one.id for one in book.entries()] == [parent.id, late.id], "the operator's stay"
    assert book.revoke(parent.id, NOW + 90_000) is not None


def test_after_a_change_of_the_secret_tokens_of_before_are_good(tmp_path: Path) -> None:
    book = TokenBook(tmp_path)
    _, old = handed_out(book)
    _, new = handed_out(book, NEXT)
    changed = Access(NEXT, previous=SECRET, book=book)
    for token in (old, new):
        assert changed.principal(token, clock=clock).role == "operator"
    with pytest.raises(TokenError, match="not signed"):
        Access(NEXT, book=book).principal(old, clock=clock)


def test_processes_that_hand_out_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from newscrawler.api.tokens import TokenBook\n"
        "for n in range(15): TokenBook(Path(sys.argv[1])).add('reader', 1, 2, str(n))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    entries = TokenBook(tmp_path).entries()
    assert len({one.id for one in entries}) == 45
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


# ---------------------------------------------------------------- the command
def scrapy(folder: Path, *args: str, secret: str = SECRET) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "API_TOKEN_SECRET": secret, "NEWSCRAWLER_DATA_DIR": str(folder)}
    return warm.run(["token", *args, "-s", f"DATA_DIR={folder}"], env=env, text=True, timeout=120)


def test_the_command_hands_out_lists_and_revokes(tmp_path: Path) -> None:
    made = scrapy(tmp_path, "create", "--role", "operator", "--note", "Lan")
    assert made.returncode == 0, made.stderr
    access = Access(SECRET, book=TokenBook(tmp_path))
    found = access.principal(made.stdout.strip())
    assert found.role == "operator"
    listed = json.loads(scrapy(tmp_path, "list", "--json").stdout)
    assert (listed["id"], listed["state"], listed["note"]) == (found.id, "active", "Lan")
    assert made.stdout.strip() not in (tmp_path / FILE).read_text()
    done = scrapy(tmp_path, "revoke", found.id, "nonesuch")
    assert done.returncode == 1 and "no token has the id nonesuch" in done.stderr
    assert "revoked" in done.stdout
    with pytest.raises(TokenError, match="was revoked"):
        access.principal(made.stdout.strip())


@pytest.mark.parametrize(
    ("args", "secret", "status", "said"),
    [
        (("create",), "", 1, "openssl rand -hex 32"),
        (("create",), "short", 1, "has 5 characters"),
        (("create", "--days", "0"), SECRET, 2, "--days must be above 0"),
        (("create", "--days", "nan"), SECRET, 2, "--days must be above 0"),
        (("create", "x"), SECRET, 2, "takes no argument"),
        (("revoke",), SECRET, 2, "which token?"),
        (("steal",), SECRET, 2, "steal"),
    ],
)
def test_what_is_asked_wrongly_is_told(
    tmp_path: Path, args: tuple[str, ...], secret: str, status: int, said: str
) -> None:
    done = scrapy(tmp_path, *args, secret=secret)
    assert done.returncode == status and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / FILE).exists()


# ---------------------------------------------------------------- the audit log
def test_what_was_changed_stands_in_the_log_newest_first(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, clock)
    for n in range(5):
        log.note(Principal(f"id{n}", "operator"), "domain.pause", f"a{n}.vn")
    with (tmp_path / AUDIT_FILE).open("a") as file:
        file.write('{"at": "cut of\n')
    log.note(Principal("id9", "admin"), "url.recheck", "https://a.vn/\ud800")
    assert [row["who"] for row in log.last(3)] == ["id9", "id4", "id3"]
    assert stat.S_IMODE((tmp_path / AUDIT_FILE).stat().st_mode) == 0o600


def test_a_full_log_is_put_aside_and_still_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newscrawler.api.audit.MOST_BYTES", 400)
    log = AuditLog(tmp_path, clock)
    for n in range(6):
        log.note(Principal(f"id{n}", "operator"), "domain.pause", "a.vn")
    assert (tmp_path / f"{AUDIT_FILE}.1").exists()
    assert [row["who"] for row in log.last(4)] == ["id5", "id4", "id3", "id2"]


def test_a_log_that_cannot_be_written_says_that_nothing_was_changed(tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).mkdir()
    with pytest.raises(AuditUnavailable, match="nothing was changed"):
        AuditLog(tmp_path, clock).note(Principal("a", "admin"), "domain.pause", "a.vn")
