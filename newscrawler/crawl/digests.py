"""Alerts on saved queries: a sink that notes what they find, and sends one digest per interval.

A digest keeps its id until every channel of the query has it, so one that was sent when the process
was killed, and is sent again, has the same id (header Message-ID of a mail, ``digest`` of a POST).
"""

from __future__ import annotations

import asyncio
import logging
import os
import smtplib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Self

from newscrawler.crawl.saved_queries import Digest, SavedQueries, SavedQuery, matches
from newscrawler.crawl.webhook import Post
from newscrawler.store.events import Event
from newscrawler.utils.display import line_shown

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

#: Articles of one digest; what is over it is in the next.
MOST = 500
#: Seconds between two attempts to send a digest: first, and at most.
_AGAIN_S, _AGAIN_MOST_S = 5.0, 300.0
#: A process that was killed while it sent holds up the next attempt for so long.
_CLAIM_MS = 120_000
_SMTP_S = 30.0


class NotSent(Exception):
    """The text says why, without the address."""


@dataclass(frozen=True, slots=True)
class MailServer:
    host: str
    port: int
    sender: str
    user: str = ""
    password: str = ""
    tls: bool = False  # STARTTLS
    ssl: bool = False

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Scrapy's MAIL_ settings; the password may be in the environment."""
        return cls(
            settings.get("MAIL_HOST") or "localhost",
            settings.getint("MAIL_PORT"),
            settings.get("MAIL_FROM"),
            settings.get("MAIL_USER") or "",
            os.environ.get("MAIL_PASS") or settings.get("MAIL_PASS") or "",
            settings.getbool("MAIL_TLS"),
            settings.getbool("MAIL_SSL"),
        )

    def send(self, mail: EmailMessage) -> None:
        """Blocks. :raises NotSent:"""
        connect = smtplib.SMTP_SSL if self.ssl else smtplib.SMTP
        try:
            with connect(self.host, self.port, timeout=_SMTP_S) as server:
                if self.tls:
                    server.starttls()
                if self.user:
                    server.login(self.user, self.password)
                server.send_message(mail)
        except smtplib.SMTPResponseException as exc:
            raise NotSent(f"mail server {self.host} answers {exc.smtp_code}") from exc
        except (OSError, smtplib.SMTPException) as exc:
            raise NotSent(f"mail server {self.host}: {type(exc).__name__}") from exc


class Channels:
    """How a digest gets to people."""

    def __init__(self, mail: MailServer, secret: str) -> None:
        self._mail = mail
        self._secret = secret

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        secret = os.environ.get(settings["FOLLOW_WEBHOOK_SECRET_ENV"], "")
        return cls(MailServer.from_settings(settings), secret)

    def of(self, query: SavedQuery) -> list[str]:
        return (["webhook"] if query.webhook else []) + (["mail"] if query.mail else [])

    async def send(self, channel: str, query: SavedQuery, digest: Digest, **more: Any) -> None:
        """:raises NotSent:"""
        if channel == "mail":
            mail = message(query, digest, self._mail.sender, is_test=bool(more))
            await asyncio.to_thread(self._mail.send, mail)
            return
        post = Post(query.webhook, self._secret)
        body = {
            "digest": digest.id, "query": query.name, "text": query.text,
            "at": datetime.now(UTC).isoformat(), "articles": digest.entries, **more,
        }  # fmt: skip
        try:
            status, _ = await post.send(body, {})
        except Exception as exc:
            raise NotSent(str(exc)) from exc
        finally:
            await post.close()
        if not 200 <= status < 300:
            raise NotSent(f"{post.host} answers {status}")


def message(
    query: SavedQuery, digest: Digest, sender: str, *, is_test: bool = False
) -> EmailMessage:
    count = len(digest.entries)
    mail = EmailMessage()
    mail["From"], mail["To"] = sender, ", ".join(query.mail)
    mail["Subject"] = f"{'Test: ' if is_test else ''}{query.name}: {count} new"
    mail["Message-ID"] = f"<{digest.id}@newscrawler>"
    mail["Date"] = datetime.now(UTC)
    parts = [f"New articles for {line_shown(query.text)}"]
    for one in digest.entries:
        when = (one["published"] or "")[:16].replace("T", " ")
        about = ", ".join(part for part in (one["site"], when) if part)
        parts.append(f"{line_shown(one['title'])}\n{line_shown(one['url'])}\n{about}")
    mail.set_content("\n\n".join(parts) + "\n")
    return mail


class FollowSink:
    """See store.events.EventSink: notes what the saved queries find. Its :meth:`tick` sends."""

    batch = 500
    every_s = 5.0  # a few hundred articles cost as much as one

    def __init__(self, saved: SavedQueries, channels: Channels) -> None:
        self._saved = saved
        self._channels = channels
        self._again: dict[str, tuple[float, float]] = {}  # not before, and the pause after that
        self._told: set[str] = set()

    async def deliver(self, events: Sequence[Event]) -> None:
        found = await matches(await self._saved.all(), events, self._cannot_ask)
        for name, mine in found.items():
            await self._saved.note(name, mine)

    def _cannot_ask(self, name: str, why: str) -> None:
        if name not in self._told:
            self._told.add(name)
            logger.error("Saved query cannot be asked name=%s error=%s", name, why)

    async def tick(self) -> None:
        """Sends the digests that are due. What fails is tried again at growing intervals."""
        now_ms = time.time_ns() // 1_000_000
        for query in await self._saved.all():
            not_before, _ = self._again.get(query.name, (0.0, 0.0))
            if time.monotonic() < not_before or not await self._saved.waiting(query.name):
                continue
            last_ms = await self._saved.last_sent_ms(query.name)
            if now_ms - last_ms < query.every_s * 1000:
                continue
            if not await self._saved.claim(query.name, _CLAIM_MS):
                continue
            try:
                await self._send(query, now_ms)
            finally:
                await self._saved.release(query.name)

    async def _send(self, query: SavedQuery, now_ms: int) -> None:
        digest = await self._saved.digest(query.name, MOST)
        if digest is None:
            return
        for channel in self._channels.of(query):
            if channel in digest.done:
                continue
            try:
                await self._channels.send(channel, query, digest)
            except NotSent as exc:
                self._failed(query.name, channel, str(exc))
                return
            await self._saved.sent_by(query.name, digest, channel)
        await self._saved.end(query.name, digest, now_ms)
        if self._again.pop(query.name, None):
            logger.warning("Alerts are sent again query=%s", query.name)

    def _failed(self, name: str, channel: str, why: str) -> None:
        _, pause_s = self._again.get(name, (0.0, 0.0))
        if not pause_s:
            logger.warning("Alert waits query=%s channel=%s error=%s", name, channel, why)
        pause_s = min(max(_AGAIN_S, 2 * pause_s), _AGAIN_MOST_S)
        self._again[name] = (time.monotonic() + pause_s, pause_s)

    async def close(self) -> None:
        """The client is its owner's."""
