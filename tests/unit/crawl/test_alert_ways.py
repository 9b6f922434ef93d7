"""How incidents get to people: over a real HTTP and a real SMTP server."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from scrapy.settings import Settings

from newscrawler.crawl import alert_ways
from newscrawler.crawl.alert_ways import Own, headline, tell, text, ways_of
from newscrawler.crawl.digests import NotSent
from newscrawler.crawl.signature import SIGNATURE_HEADER, sign
from tests.fixtures_mail import Mailbox
from tests.fixtures_webhook import Receiver


def alert(event: str = "raised", *subjects: str, **more: Any) -> dict[str, Any]:
    incidents = [
        {"subject": subject, "reason": "0 new articles <in> 2 hours", "since_ms": 1_795_000_000_000}
        for subject in subjects or ("a.vn",)
    ]
    return {
        "id": "7", "event": f"fleet.{event}", "at_ms": 1_795_000_060_000, "kind": "site_silent",
        "severity": "warning", "text": "a site fell silent",
        "explain": "scrapy sites check --sites {subject}; page /sites", "incidents": incidents,
        **more,
    }  # fmt: skip


def settings(**values: Any) -> Settings:
    made = Settings()
    made.setmodule("newscrawler.settings", priority="project")
    for name, value in values.items():
        made.set(name, value, priority="cmdline")
    return made


class Told:
    """An action of an operator's."""

    alerts: list[dict[str, Any]]

    @classmethod
    def from_settings(cls, settings: Settings) -> Told:
        made = cls()
        made.alerts = settings["TOLD"]
        return made

    def send(self, alert: dict[str, Any]) -> object:
        if alert["id"] == "bad":
            raise OSError("no line")
        self.alerts.append(alert)
        return alert["id"] != "refused"


def test_what_people_read() -> None:
    one = alert()
    assert headline(one) == "warning: a site fell silent: a.vn"
    assert text(one).splitlines() == [
        "a.vn: 0 new articles <in> 2 hours (since 18 Nov 11:06 UTC)",
        "Explained by: scrapy sites check --sites a.vn; page /sites",
    ]
    many = alert("recovered", *(f"s{n}.vn" for n in range(20)))
    assert headline(many) == "over: a site fell silent: s0.vn, s1.vn, s2.vn and 17 more"
    assert text(many).splitlines()[0].startswith("s0.vn: it was: 0 new") and len(text(many)) < 3500
    assert text(many).splitlines()[-1] == "and 8 more"
    whole = alert("raised", "fleet", explain="scrapy sites freshness {subject}; docs/freshness.md")
    assert text(whole).splitlines()[-1] == "Explained by: scrapy sites freshness; docs/freshness.md"
    assert "\x1b" not in headline(alert("raised", "a\x1b[2J.vn"))


async def test_every_way_tells(
    webhook: Receiver, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALERT_WEBHOOK_SECRET", "s3cret")
    monkeypatch.setenv("ALERT_TELEGRAM_TOKEN", "123:abc_D")
    told: list[dict[str, Any]] = []
    made = settings(
        ALERT_WEBHOOK_URL=webhook.url, ALERT_MAIL_TO="desk@a.vn, night@a.vn",
        MAIL_HOST="127.0.0.1", MAIL_PORT=mailbox.port, MAIL_FROM="news@a.vn",
        ALERT_SLACK_URL=webhook.url + "/services/T0/B0/x", ALERT_TELEGRAM_CHAT="-100123",
        ALERT_TELEGRAM_URL=webhook.url.removesuffix("/alerts"),
        ALERT_ACTIONS=["tests.unit.crawl.test_alert_ways.Told"], TOLD=told,
    )  # fmt: skip
    ways = ways_of(made)
    assert list(ways) == ["webhook", "mail", "slack", "telegram", "action 1 Told"]
    for way in ways.values():
        await way.send(alert())
    posted, slack, telegram = webhook.alerts
    assert posted["incidents"] == alert()["incidents"] and posted["kind"] == "site_silent"
    assert posted["explained_by"] == "scrapy sites check --sites a.vn; page /sites"
    assert webhook.headers[0][SIGNATURE_HEADER] == sign(webhook.bodies[0], "s3cret")
    assert slack == {
        "text": "*warning: a site fell silent: a.vn*\na.vn: 0 new articles &lt;in&gt; 2 hours"
        " (since 18 Nov 11:06 UTC)\nExplained by: scrapy sites check --sites a.vn; page /sites"
    }
    assert telegram["chat_id"] == "-100123" and telegram["text"].startswith("warning: a site")
    [mail] = mailbox.mails
    assert mail["To"] == "desk@a.vn, night@a.vn" and mail["From"] == "news@a.vn"
    assert mail["Subject"] == "[newscrawler] warning: a site fell silent: a.vn"
    assert "Explained by: scrapy sites check" in mail.get_content()
    assert [one["id"] for one in told] == ["7"]


async def test_what_cannot_be_told_says_why_without_the_secret(
    webhook: Receiver, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALERT_TELEGRAM_TOKEN", "123:secret")
    webhook.status = lambda body: 403
    mailbox.refuses = True
    made = settings(
        ALERT_WEBHOOK_URL="http://127.0.0.1:1/secret", ALERT_SLACK_URL=webhook.url + "/secret",
        ALERT_TELEGRAM_CHAT="@news", ALERT_TELEGRAM_URL=webhook.url, ALERT_MAIL_TO="d@a.vn",
        MAIL_HOST="127.0.0.1", MAIL_PORT=mailbox.port,
        ALERT_ACTIONS=["tests.unit.crawl.test_alert_ways.Told"], TOLD=[],
    )  # fmt: skip
    reasons = {}
    for name, way in ways_of(made).items():
        with pytest.raises(NotSent) as failed:
            await way.send(alert(id="bad"))
        reasons[name] = str(failed.value)
    assert "secret" not in " ".join(reasons.values()), reasons
    assert "cannot be reached" in reasons["webhook"] and "451" in reasons["mail"]
    assert "answers 403" in reasons["slack"] and "answers 403" in reasons["telegram"]
    assert reasons["action 1 Told"] == "Told: OSError: no line"
    with pytest.raises(NotSent, match="says that it failed"):
        await ways_of(made)["action 1 Told"].send(alert(id="refused"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"ALERT_WEBHOOK_URL": "ftp://a"}, "ALERT_WEBHOOK_URL: must be an http"),
        ({"ALERT_SLACK_URL": "nonsense"}, "ALERT_SLACK_URL: must be an http"),
        ({"ALERT_MAIL_TO": "desk"}, "ALERT_MAIL_TO: desk is no address"),
        ({"ALERT_TELEGRAM_CHAT": "1"}, "variable ALERT_TELEGRAM_TOKEN is not"),
        ({"ALERT_ACTIONS": ["no.such.Class"]}, "ALERT_ACTIONS: no.such.Class"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ways_of(settings(**values))


def test_a_wrong_chat_or_token_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALERT_TELEGRAM_TOKEN", "123:abc")
    with pytest.raises(ValueError, match="is no id of a chat"):
        ways_of(settings(ALERT_TELEGRAM_CHAT="my chat"))
    monkeypatch.setenv("ALERT_TELEGRAM_TOKEN", "a/../b")
    with pytest.raises(ValueError, match="is no token") as failed:
        ways_of(settings(ALERT_TELEGRAM_CHAT="1"))
    assert ".." not in str(failed.value)


class Hangs:
    """An action that does not answer before it is let go."""

    def __init__(self) -> None:
        self.go, self.calls = threading.Event(), 0

    def send(self, alert: Any) -> object:
        self.calls += 1
        self.go.wait(120)
        return True


async def test_an_action_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_ways, "WAY_S", 0.05)
    action = Hangs()
    way = Own(action)
    with pytest.raises(NotSent, match="not told within"):
        await tell(way, alert())
    with pytest.raises(NotSent, match="still at an alert before"):
        await tell(way, alert())
    assert action.calls == 1, "one thread hangs, not one more with each look"
    action.go.set()
    assert way._last is not None
    way._last.join(60)
    monkeypatch.setattr(alert_ways, "WAY_S", 60)
    await tell(way, alert())
    assert action.calls == 2


def test_an_action_that_hangs_does_not_keep_a_look_from_its_end() -> None:
    code = """
import asyncio
from newscrawler.crawl import alert_ways
from newscrawler.crawl.digests import NotSent
from tests.unit.crawl.test_alert_ways import Hangs, alert
alert_ways.WAY_S = 0.05
try:
    asyncio.run(alert_ways.tell(alert_ways.Own(Hangs()), alert()))
except NotSent:
    print("not sent")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90)
    assert ended.stdout == "not sent\n", ended.stderr
