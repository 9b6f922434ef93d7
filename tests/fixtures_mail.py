"""A loopback mail server that keeps what it is sent."""

from __future__ import annotations

import asyncio
import email
import email.policy
from collections.abc import AsyncIterator
from email.message import EmailMessage
from typing import Any, cast

import pytest
from aiosmtpd.smtp import SMTP


class Mailbox:
    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuses = False
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuses:
            return "451 come again"
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append(cast(EmailMessage, parsed))
        return "250 taken"


@pytest.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    box = Mailbox()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(box), "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    yield box
    server.close()
