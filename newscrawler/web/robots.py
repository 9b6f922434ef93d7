"""robots.txt by RFC 9309, Protego beneath. Pure."""

from __future__ import annotations

import re

from protego import Protego

#: RFC 9309 2.5: at least this much is read; the rest is neither read nor kept.
MAX_BYTES = 500 * 1024
_WORD = re.compile(r"[A-Za-z_-]+")
_GROUP = re.compile(r"^([ \t]*user[- ]?agents?[ \t]*:[ \t]*)([^\r\n#]*)", re.I | re.M)


def within_limit(body: bytes) -> bytes:
    """The whole lines of the first MAX_BYTES. Half a line would be another rule: of "Disallow:
    /private/" the first eleven bytes forbid everything."""
    if len(body) <= MAX_BYTES:
        return body
    end = max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES))
    return body[: end + 1]


class RobotsRules:
    """What one robots.txt says to one user agent."""

    __slots__ = ("_agent", "_everything", "_protego", "crawl_delay", "sitemaps")

    def __init__(self, protego: Protego | None, agent: str, everything: bool) -> None:
        self._protego = protego
        self._agent = agent
        self._everything = everything  # the answer where there are no rules
        delay = protego.crawl_delay(agent) if protego is not None else None
        self.crawl_delay: float | None = (
            float(delay) if delay is not None and 0 <= delay < 86_400 else None
        )
        self.sitemaps: list[str] = (
            [s for s in protego.sitemaps if s.startswith(("http://", "https://"))]
            if protego
            else []
        )

    @classmethod
    def parse(cls, body: bytes, user_agent: str) -> RobotsRules:
        """``user_agent``: the product token that groups are matched against, e.g. "newscrawler"."""
        token = _WORD.match(user_agent)
        agent = token.group(0) if token else user_agent
        text = (
            within_limit(body)
            .removeprefix(b"\xef\xbb\xbf")
            .decode("utf-8", "replace")
            .replace("\x00", "")
        )
        if text.lstrip()[:1] == "<":  # a page instead of rules: there are none in it
            return cls(None, user_agent, True)
        return cls(
            Protego.parse(_GROUP.sub(lambda m: m.group(1) + _group_name(m.group(2), agent), text)),
            agent,
            True,
        )

    @classmethod
    def parse_answer(cls, status: int, body: bytes, user_agent: str) -> RobotsRules:
        """By the status of the answer (RFC 9309 2.3.1): 2xx its rules, 4xx everything is allowed,
        anything else (5xx, 0 = unreachable) nothing is."""
        if 200 <= status < 300:
            return cls.parse(body, user_agent)
        return cls(None, user_agent, 400 <= status < 500)

    def allowed(self, url: str) -> bool:
        if self._protego is None:
            return self._everything
        return bool(self._protego.can_fetch(url, self._agent))


def _group_name(written: str, agent: str) -> str:
    """RFC 9309 2.2.1: a group is ours when its product token equals ours, case aside. Protego takes
    every token that ours begins with ("news"), and does not see ours in "newscrawler/1.0"."""
    written = written.strip()
    if written == "*":
        return "*"
    token = _WORD.match(written)
    return (
        agent
        if token is not None and token.group(0).lower() == agent.lower()
        else f"other-{written}"
    )
