"""Status code or error of a fetch -> outcome. The table of docs/frontier.md in code. Pure."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from newscrawler.items import Outcome
from newscrawler.utils.numbers import is_digits, whole_number

#: Errors (by their ``reason``) that say no to the URL itself; every other one is worth another try.
REFUSING = frozenset(
    {"ssrf", "size", "type", "robots", "offsite", "scheme", "trap", "quota", "noindex", "age",
     "malware"}
)  # fmt: skip

#: What a Retry-After may ask at most: 30 years. The gate has a limit of its own (BACKOFF_MAX_S).
_LONGEST_S = 10**9


def judge_status(status: int) -> tuple[Outcome, str]:
    """The outcome by an answer's status. DONE = read the body; the reason is empty for it.

    401, 403, 407 and 451 are tried again like errors: news sites answer 403 in bursts, and the
    tries that a URL has end it. 405, 406, 414 ... will not change by asking again.
    """
    if status in (200, 203, 206):
        return Outcome.DONE, ""
    if status == 304:
        return Outcome.UNCHANGED, ""
    if status in (301, 302, 303, 307, 308):
        return Outcome.REDIRECTED, ""
    if status in (404, 410):
        return Outcome.GONE, f"status {status}"
    if (
        status in (401, 403, 407, 408, 409, 421, 423, 425, 429, 451)
        or status >= 500
        or status < 200
    ):
        return Outcome.RETRY, f"status {status}"
    if status in (204, 205):
        return Outcome.NOT_ARTICLE, f"status {status}"
    return Outcome.FAILED, f"status {status}"


def judge_error(error: BaseException) -> tuple[Outcome, str]:
    """The outcome of a refused request or a failed fetch; ``error.reason`` is a word where our
    own code raised it."""
    reason = getattr(error, "reason", None)
    if not isinstance(reason, str) or not reason:
        return Outcome.RETRY, type(error).__name__
    if reason == "robots_unknown":  # fail closed: the rules are not known yet
        return Outcome.RETRY, reason
    return (Outcome.REFUSED if reason in REFUSING else Outcome.RETRY), reason


def retry_after_s(value: bytes | str | None, now_ms: int) -> float | None:
    """``Retry-After`` as seconds from now: a number or an HTTP date (RFC 9110 10.2.3), at
    most _LONGEST_S. None when it is unreadable; never raises, as the caller tells the gate
    the status with it."""
    if not value:
        return None
    text = (value.decode("latin-1") if isinstance(value, bytes) else value).strip()
    if is_digits(text):
        seconds = whole_number(text, _LONGEST_S)
        return float(_LONGEST_S if seconds is None else seconds)
    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:  # "-0000"; an HTTP date is in GMT whatever the zone of this machine
            date = date.replace(tzinfo=UTC)
        return min(max(0.0, date.timestamp() - now_ms / 1000), _LONGEST_S)
    except (
        Exception
    ):  # the parser raises TypeError, ValueError, IndexError, OverflowError ... for what is no date
        return None
