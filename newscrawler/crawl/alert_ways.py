"""How an incident of the fleet gets to people: the webhook, mail, Slack, Telegram and classes of
ALERT_ACTIONS. Which of them, settings say; addresses that are secrets are never in a message.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import re
import socket
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, Protocol

from newscrawler.crawl import plugins
from newscrawler.crawl.digests import MailServer, NotSent
from newscrawler.crawl.webhook import Post, ReceiverAway, checked_url
from newscrawler.fleet.alarms import KINDS
from newscrawler.utils.display import line_shown

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: Seconds that a way may take; less than what an alert is held for (incidents.CLAIM_MS).
WAY_S = 60
#: Incidents that one message names; Telegram takes 4,096 characters.
MOST_NAMED = 12
_LINE = 260
_CHAT = re.compile(r"-?\d{1,20}|@\w{3,64}")


class Way(Protocol):
    async def send(self, alert: Mapping[str, Any]) -> None:
        """:raises NotSent: the text says why, without the address"""
        ...


def ways_of(settings: BaseSettings) -> dict[str, Way]:
    """By name. :raises ValueError: a setting is wrong; the text names it"""
    found: dict[str, Way] = {}
    if url := settings.get("ALERT_WEBHOOK_URL"):
        secret = os.environ.get(settings["ALERT_WEBHOOK_SECRET_ENV"], "")
        found["webhook"] = Webhook(checked_url("ALERT_WEBHOOK_URL", url), secret)
    if receivers := settings.getlist("ALERT_MAIL_TO"):
        found["mail"] = Mail(MailServer.from_settings(settings), _checked_mails(receivers))
    if url := settings.get("ALERT_SLACK_URL"):
        found["slack"] = Slack(checked_url("ALERT_SLACK_URL", url))
    if chat := str(settings.get("ALERT_TELEGRAM_CHAT") or ""):
        found["telegram"] = Telegram.from_settings(settings, chat)
    for number, action in enumerate(plugins.alert_actions(settings)):
        found[f"action {number + 1} {type(action).__name__}"] = Own(action)
    return found


def _checked_mails(receivers: list[Any]) -> list[str]:
    made = [str(one).strip() for one in receivers if str(one).strip()]
    for address in made:
        if parseaddr(address)[1] != address or "@" not in address.strip("@"):
            raise ValueError(f"ALERT_MAIL_TO: {address} is no address")
    return made


# ---------------------------------------------------------------- text
def headline(alert: Mapping[str, Any]) -> str:
    """One line: "critical: a part does not answer: redis"."""
    incidents = alert["incidents"]
    names = ", ".join(line_shown(str(one["subject"])) for one in incidents[:3])
    more = f" and {len(incidents) - 3} more" if len(incidents) > 3 else ""
    state = "over" if alert["event"] == "fleet.recovered" else alert["severity"]
    return f"{state}: {alert['text']}: {names}{more}"


def text(alert: Mapping[str, Any]) -> str:
    """A line per incident, and the command or page that explains it."""
    lines = []
    is_over = alert["event"] == "fleet.recovered"
    for one in alert["incidents"][:MOST_NAMED]:
        since = datetime.fromtimestamp(one["since_ms"] / 1000, UTC)
        said = "it was: " if is_over else ""
        line = f"{one['subject']}: {said}{one['reason']} (since {since:%d %b %H:%M} UTC)"
        lines.append(line_shown(line)[:_LINE])
    if (rest := len(alert["incidents"]) - MOST_NAMED) > 0:
        lines.append(f"and {rest} more")
    if not is_over:
        lines.append(f"Explained by: {explained(alert)}")
    return "\n".join(lines)


def explained(alert: Mapping[str, Any]) -> str:
    subject = str(alert["incidents"][0]["subject"]).partition("/")[0]
    is_whole = subject == "fleet"
    return line_shown(
        str(alert["explain"]).replace(" {subject}", "" if is_whole else f" {subject}")
    )


def explain_of(kind: str, subject: str) -> str:
    """The command or page that explains an incident."""
    known = KINDS.get(kind)
    row = {"explain": known.explain if known else "", "incidents": [{"subject": subject}]}
    return explained(row)


def whole(alert: Mapping[str, Any]) -> dict[str, Any]:
    """For a program: also with what the alerts of a crawl have (monitors.Alert.payload)."""
    return {
        **alert,
        "headline": headline(alert),
        "explained_by": explained(alert),
        "host": socket.gethostname(),
        "failures": [
            {"monitor": f"{alert['kind']}/{one['subject']}", "reason": one["reason"]}
            for one in alert["incidents"]
        ],
    }


# ---------------------------------------------------------------- ways
async def tell(way: Way, alert: Mapping[str, Any]) -> None:
    """:raises NotSent: also where the way takes longer than ``WAY_S``"""
    try:
        async with asyncio.timeout(WAY_S):
            await way.send(alert)
    except TimeoutError as exc:
        raise NotSent(f"it was not told within {WAY_S} s") from exc


async def _post(post: Post, message: dict[str, Any]) -> None:
    try:
        status, said = await post.send(message, {})
    except ReceiverAway as exc:
        raise NotSent(str(exc)) from exc
    finally:
        await post.close()
    if not 200 <= status < 300:
        raise NotSent(f"{post.host} answers {status} {said[:100]}".strip())


class Webhook:
    """The alert as JSON, signed."""

    def __init__(self, url: str, secret: str) -> None:
        self._url = url
        self._secret = secret

    async def send(self, alert: Mapping[str, Any]) -> None:
        await _post(Post(self._url, self._secret), whole(alert))


class Mail:
    def __init__(self, server: MailServer, receivers: list[str]) -> None:
        self._server = server
        self._receivers = receivers

    async def send(self, alert: Mapping[str, Any]) -> None:
        await asyncio.to_thread(self._server.send, self.message(alert))

    def message(self, alert: Mapping[str, Any]) -> EmailMessage:
        """Both messages of an incident's kind are in one thread of the reader's."""
        mail = EmailMessage()
        mail["From"], mail["To"] = self._server.sender, ", ".join(self._receivers)
        mail["Subject"] = f"[newscrawler] {headline(alert)}"
        mail["Message-ID"] = f"<alert-{alert['id']}-{alert['at_ms']}@newscrawler>"
        mail["References"] = f"<alerts-{alert['kind']}@newscrawler>"
        mail["Date"] = datetime.now(UTC)
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(text(alert) + "\n")
        return mail


class Slack:
    """An incoming webhook of Slack (Mattermost and Rocket.Chat take the same)."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def send(self, alert: Mapping[str, Any]) -> None:
        body = f"*{_slack(headline(alert))}*\n{_slack(text(alert))}"
        await _post(Post(self._url, ""), {"text": body})


def _slack(said: str) -> str:
    """https://api.slack.com/reference/surfaces/formatting#escaping; a star would end the bold."""
    return said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("*", "∗")


class Telegram:
    """sendMessage of the Bot API. The token is a part of the address, hence no setting."""

    def __init__(self, base: str, token: str, chat: str) -> None:
        self._url = f"{base.rstrip('/')}/bot{token}/sendMessage"
        self._chat = chat

    @classmethod
    def from_settings(cls, settings: BaseSettings, chat: str) -> Telegram:
        """:raises ValueError: the token, the chat or the address is missing or wrong; the text
        names it
        """
        name = settings["ALERT_TELEGRAM_TOKEN_ENV"]
        token = os.environ.get(name, "").strip()
        if not token:
            raise ValueError(f"ALERT_TELEGRAM_CHAT is set and the variable {name} is not")
        if not re.fullmatch(r"[\w:-]+", token):
            raise ValueError(f"the variable {name} is no token of a bot")
        if not _CHAT.fullmatch(chat):
            raise ValueError(f"ALERT_TELEGRAM_CHAT: {chat} is no id of a chat and no @channel")
        base = checked_url("ALERT_TELEGRAM_URL", settings["ALERT_TELEGRAM_URL"])
        return cls(base, token, chat)

    async def send(self, alert: Mapping[str, Any]) -> None:
        message = {
            "chat_id": self._chat,
            "text": f"{headline(alert)}\n{text(alert)}",
            "link_preview_options": {"is_disabled": True},
        }
        await _post(Post(self._url, ""), message)


class Own:
    """A class of ALERT_ACTIONS; False says that it did not tell."""

    def __init__(self, action: plugins.AlertAction) -> None:
        self._action = action
        self._last: threading.Thread | None = None

    async def send(self, alert: Mapping[str, Any]) -> None:
        """:raises NotSent: the action failed, or is still at an alert before"""
        if self._last is not None and self._last.is_alive():
            raise NotSent(f"{type(self._action).__name__} is still at an alert before")
        try:
            answer = await self._in_thread(whole(alert))
        except Exception as exc:
            raise NotSent(f"{type(self._action).__name__}: {type(exc).__name__}: {exc}") from exc
        if answer is False:
            raise NotSent(f"{type(self._action).__name__} says that it failed")

    async def _in_thread(self, message: dict[str, Any]) -> object:
        """A daemon: a class that hangs must not keep the process from its end, as a thread of
        asyncio.to_thread would."""
        answer: concurrent.futures.Future[object] = concurrent.futures.Future()
        answer.set_running_or_notify_cancel()  # who waits may go, the thread still answers

        def run() -> None:
            try:
                answer.set_result(self._action.send(message))
            except BaseException as exc:
                answer.set_exception(exc)

        self._last = threading.Thread(target=run, name="alert-action", daemon=True)
        self._last.start()
        return await asyncio.wrap_future(answer)
