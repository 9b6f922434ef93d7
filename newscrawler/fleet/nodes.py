"""The nodes of the fleet: the targets of scrapy.cfg, and scrapyd's API on each of them.

Read as scrapyd-client reads them: [deploy:NAME] with url, project, username and password; [deploy]
holds defaults, and is a target of its own, "default", when it has a url. Everything here is
blocking: the watch calls it in threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from configparser import Error as ConfigError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

#: Seconds for a connection and for an answer to what a round of the watch waits for: a node that
#: hangs must not hold up the others. A look is waited for beside the rounds.
TIMEOUT_S = (3.0, 3.0)
LOOK_S = (3.0, 15.0)
#: scrapyd unpacks an egg and lists its spiders before it answers.
UPLOAD_S = (3.0, 120.0)
DEFAULT_PROJECT = "newscrawler"
#: Most bytes of a job's log that are read at once.
LOG_BYTES = 256 * 1024


class TargetError(ValueError):
    """scrapy.cfg names no node, or names one wrongly; the text says what to write."""


class NodeError(Exception):
    """A node refused or did not answer. ``is_late``: it was asked and did not answer in time, so
    what it was asked to do may be done yet. scrapyd answers nobody while it lists the spiders of an
    egg, as before the first job of a version after its start."""

    def __init__(self, text: str, *, is_late: bool = False) -> None:
        super().__init__(text)
        self.is_late = is_late


@dataclass(frozen=True, slots=True)
class Target:
    """A node as scrapy.cfg names it."""

    name: str
    url: str  # without a slash at the end
    project: str = DEFAULT_PROJECT
    username: str = ""
    password: str = field(default="", repr=False)


def targets() -> dict[str, Target]:
    """Of the scrapy.cfg of this folder or one above it, and of the user's; variables of the
    environment are put in where they are named.

    :raises TargetError: there is none, or one is wrong
    """
    from scrapyd_client.utils import get_config

    try:
        config = get_config()
        base = dict(config.items("deploy")) if config.has_section("deploy") else {}
        sections = {"default": base} if base.get("url") else {}
        for section in config.sections():
            if section.startswith("deploy:"):
                sections[section.removeprefix("deploy:")] = {**base, **dict(config.items(section))}
    except ConfigError as exc:
        raise TargetError(f"scrapy.cfg cannot be read: {exc}") from exc
    if not sections:
        raise TargetError(
            "scrapy.cfg names no node; write one section for each, [deploy:NAME] with"
            " url = http://host:6800/ and project = newscrawler"
        )
    found = {name: _target(name, values) for name, values in sections.items()}
    _refuse_repeated(found)
    return found


def _target(name: str, values: Mapping[str, str]) -> Target:
    url = values.get("url", "").strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TargetError(
            f"scrapy.cfg [deploy:{name}]: url = {url or '(nothing)'} is no address of a scrapyd; it"
            " is written http://host:6800/"
        )
    if not re.fullmatch(r"[\w.-]{1,64}", name):
        raise TargetError(
            f"scrapy.cfg [deploy:{name}]: a node is named by letters, digits, . _ and -"
        )
    return Target(
        name=name,
        url=url,
        project=values.get("project") or DEFAULT_PROJECT,
        username=values.get("username", ""),
        password=values.get("password", ""),
    )


def _refuse_repeated(found: Mapping[str, Target]) -> None:
    """One scrapyd under two names would be counted, and filled, twice."""
    seen: dict[str, str] = {}
    for target in found.values():
        if target.url in seen:
            raise TargetError(
                f"scrapy.cfg: [deploy:{seen[target.url]}] and [deploy:{target.name}] are the same"
                f" scrapyd, {target.url}; leave one of them out"
            )
        seen[target.url] = target.name


@dataclass(slots=True)
class NodeView:
    """What a node said of the project's jobs when it was last asked; ``error`` = it did not."""

    name: str
    error: str = ""
    pending: frozenset[str] = frozenset()
    running: dict[str, int] = field(default_factory=dict)  # job -> pid
    finished: frozenset[str] = frozenset()
    versions: tuple[str, ...] = ()  # eggs that it has, the oldest first

    @property
    def jobs(self) -> frozenset[str]:
        """That are not over."""
        return self.pending | frozenset(self.running)


class Node:
    """One scrapyd. Every method may raise NodeError."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.name = target.name
        from newscrawler.fleet.scrapyd import Client  # requests: each command would pay for it

        self._client = Client(
            target.url, target.username or None, target.password, look_s=LOOK_S, change_s=TIMEOUT_S
        )

    def view(self) -> NodeView:
        """Does not raise: the error stands in the answer."""
        try:
            versions = self.versions()
            # A project that was never deployed to has no jobs, and is an error to scrapyd.
            jobs = self._do(lambda: self._client.jobs(self.target.project)) if versions else {}
        except NodeError as exc:
            return NodeView(self.name, str(exc))
        return NodeView(
            self.name,
            pending=frozenset(row["id"] for row in jobs.get("pending", ())),
            running={row["id"]: int(row["pid"] or 0) for row in jobs.get("running", ())},
            finished=frozenset(row["id"] for row in jobs.get("finished", ())),
            versions=tuple(versions),
        )

    def versions(self) -> list[str]:
        return self._do(lambda: list(self._client.versions(self.target.project)))

    def upload(self, version: str, egg: bytes) -> int:
        """:returns: how many spiders the egg has there: 0 when it does not run on this node"""
        answer = self._do(
            lambda: self._client._post(
                "addversion",
                {"project": self.target.project, "version": version},
                files={"egg": ("project.egg", egg)},
                timeout=UPLOAD_S,
            )
        )
        return int(answer.get("spiders", 0))

    def remove(self, version: str) -> None:
        self._do(lambda: self._client.delversion(self.target.project, version))

    def schedule(self, job: str, version: str, args: list[tuple[str, str]]) -> None:
        """:param args: ("setting", "NAME=value") and arguments of the spider"""
        given = [*args, ("jobid", job), ("_version", version)]
        self._do(lambda: self._client.schedule(self.target.project, "news", given))

    def cancel(self, job: str, signal: str) -> str:
        """:param signal: "INT", "KILL" ...
        :returns: "running", "pending", "" = scrapyd does not know the job"""
        answer = self._do(
            lambda: self._client._post(
                "cancel", {"project": self.target.project, "job": job, "signal": signal}
            )
        )
        return str(answer.get("prevstate") or "")

    def log(self, job: str, most: int = LOG_BYTES, start: int | None = None) -> tuple[bytes, int]:
        """(text, size of the whole log): its last ``most`` bytes, or those from ``start`` on.

        :raises NodeError: the node has no log of this job
        """
        path = "/".join(quote(part, safe="") for part in (self.target.project, "news", job))
        url = f"{self.target.url}/logs/{path}.log"
        # Asked first: Twisted fails on a range that begins before the file does.
        size = int(self._log_answer("HEAD", url, job).headers.get("Content-Length", 0))
        first = max(0, size - most) if start is None else start
        if first >= size:
            return b"", size
        last = min(size, first + most) - 1
        return self._log_answer("GET", url, job, f"bytes={first}-{last}").content, size

    def _log_answer(self, method: str, url: str, job: str, reach: str = "") -> requests.Response:
        # Compressed, the length would be another one.
        headers = {"Accept-Encoding": "identity", **({"Range": reach} if reach else {})}
        answer: requests.Response = self._do(lambda: self._client.plain(method, url, headers))
        if answer.status_code == 404:
            raise NodeError(f"node {self.name} has no log of job {job}")
        if answer.status_code not in (200, 206):
            raise NodeError(f"node {self.name} answered {answer.status_code} for a log")
        return answer

    def _do(self, ask: Callable[[], T]) -> T:
        import requests
        from scrapyd_client.exceptions import ErrorResponse, MalformedResponse

        where = f"node {self.name} ({self.target.url})"
        try:
            return ask()
        except PermissionError:
            raise NodeError(
                f"{where} refuses the name and password; see username and password in scrapy.cfg"
                f" [deploy:{self.name}]"
            ) from None
        except requests.ReadTimeout:
            raise NodeError(f"{where} does not answer in time", is_late=True) from None
        except requests.Timeout:
            raise NodeError(f"{where} does not answer in time") from None
        except (requests.RequestException, OSError) as exc:
            raise NodeError(f"{where} cannot be reached: {_root(exc)}") from None
        except ErrorResponse as exc:
            raise NodeError(f"{where}: {str(exc).strip()}") from None
        except (MalformedResponse, ValueError, KeyError, TypeError, RuntimeError):
            raise NodeError(f"{where} does not answer as scrapyd does; is it one?") from None


def _root(exc: BaseException) -> str:
    """Of a chain of errors of urllib3 the one that says what happened."""
    text = str(exc)
    for word in ("Connection refused", "Name or service not known", "No route to host"):
        if word in text:
            return word.lower()
    found = re.search(r"'([^']{4,80})'\)+$", text)
    return found[1] if found else type(exc).__name__
