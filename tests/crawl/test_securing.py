"""Redis by TLS and with least rights, as docs/securing.md and deploy/redis-users.acl say it: Debian's
redis-server with an authority of its own, made by openssl."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from newscrawler.frontier import snapshot
from tests.crawl.harness import Finished, until
from tests.crawl.small import QUIET, crawler
from tests.fixtures_redis import binary_of, missing
from tests.newsweb.process import NewswebProcess

ROOT = Path(__file__).resolve().parents[2]
USERS = ROOT / "deploy/redis-users.acl"
PASSWORD = "pw%s-7f3a"


def openssl(folder: Path, *args: str) -> None:
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    """As the page says it."""
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
            "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")  # fmt: skip


@dataclass
class Secured:
    """A running server. ``url("worker")``: of that user, with the right authority."""

    folder: Path
    port: int

    def url(
        self, user: str, *, ca: str = "ca.pem", password: str = "", host: str = "localhost"
    ) -> str:
        secret = password or PASSWORD % user
        return f"rediss://{user}:{secret}@{host}:{self.port}/0?ssl_ca_certs={self.folder / ca}"

    def client(self, user: str) -> redis.Redis:
        return redis.Redis.from_url(self.url(user))


def write_users(folder: Path) -> None:
    text = USERS.read_text()
    for user in ("worker", "reader", "backup", "admin"):
        text = text.replace(f"REPLACE-BY-THE-{user.upper()}S-PASSWORD", PASSWORD % user)
    assert "REPLACE" not in text
    (folder / "users.acl").write_text(text)


@contextmanager
def redis_with_users(
    folder: Path, options: Callable[[int], list[str]], admin: Callable[[int], redis.Redis]
) -> Iterator[int]:
    """The port of a Redis 7 that has the users of the file; another one where it was taken.

    :param options: of a server of that port
    :param admin: a client of it
    """
    binary = binary_of("7")
    if binary is None:
        missing("7")
    write_users(folder)

    def answers(port: int) -> bool:
        client = admin(port)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    for _ in range(3):
        port = _free_port()
        command = [str(binary), *options(port), "--bind", "127.0.0.1", "--aclfile", "users.acl"]
        log = folder / f"redis-{port}.log"
        process = subprocess.Popen([*command, "--save", "", "--logfile", str(log)], cwd=folder)
        until(lambda: process.poll() is not None or answers(port), "Redis")  # noqa: B023  # called before the loop goes on
        if process.poll() is None:
            break
    else:
        pytest.fail("Redis does not start")
    try:
        yield port
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority(folder, "ca")
    authority(folder, "other")
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "redis.key", "-out",
            "redis.csr", "-subj", "/CN=localhost")  # fmt: skip
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    openssl(folder, "x509", "-req", "-in", "redis.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "30", "-extfile", "names", "-out", "redis.pem")  # fmt: skip
    tls = ["--tls-cert-file", "redis.pem", "--tls-key-file", "redis.key",
           "--tls-ca-cert-file", "ca.pem", "--tls-auth-clients", "no"]  # fmt: skip
    with redis_with_users(
        folder,
        lambda port: ["--port", "0", "--tls-port", str(port), *tls],
        lambda port: Secured(folder, port).client("admin"),
    ) as port:
        yield Secured(folder, port)


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@pytest.fixture(scope="module")
def crawled(
    secured: Secured, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Finished, Callable[..., Finished]]]:
    """A crawl as the user `worker`, and a way to run commands beside it."""
    folder = tmp_path_factory.mktemp("crawl")
    web = NewswebProcess("ip", folder / "web", **{**QUIET, "sites": 1, "articles": 4})

    def run(url: str, *args: str, **settings: Any) -> Finished:
        return crawler(folder, web, REDIS_URL=url, **settings).run(*args)

    secured.client("admin").execute_command("ACL", "LOG", "RESET")
    done = run(secured.url("worker"), "crawl", "news", SELECTOR_GENERATION="rules")
    yield done, run
    web.stop()


def test_a_crawl_needs_no_more_than_the_workers_rights(
    secured: Secured, crawled: tuple[Finished, Callable[..., Finished]]
):
    done, run = crawled
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stat("article/new") >= 3
    for command in (
        ("frontier", "report"),
        ("selectors", "list"),
        ("sites", "freshness"),
        ("events", "status"),
        ("crawls", "list"),
        ("doctor",),
    ):
        result = run(secured.url("worker"), *command)
        assert "NOPERM" not in result.stdout + result.stderr, command
    assert secured.client("admin").acl_log() == []


#: What an operator types beside a fleet, as the user `worker`; {url} is an article's, {site} its site.
VERBS = (
    "seeds list", "seeds refresh", "seeds report", "seeds hubs", "seeds add {url}rss.xml --kind feed",
    "seeds remove {url}rss.xml", "sites list", "sites show {site}", "sites disable {site}",
    "sites enable {site}", "sites render {site} on", "sites render {site} auto",
    "frontier report {site}", "frontier why {url}", "frontier audit {site}", "frontier pause {site}",
    "frontier resume {site}", "frontier block {site} --until 2h", "frontier resume {site}",
    "frontier delay {site} --seconds 3", "frontier delay {site} --seconds 0",
    "frontier class {site} --to high", "frontier class {site} --to policy",
    "frontier quota {site} --pages 500 --per 24h", "frontier quota {site} --pages policy",
    "frontier quarantine list", "crawls start {url} --levels 1",
    "crawls list", "selectors list", "selectors load", "selectors history {site}",
    "selectors pin {site}", "selectors unpin {site}", "selectors lint", "selectors disable {site}",
    "monitor", "monitor preload", "report --day {today}", "reparse --site {site} --queue",
    "parse_worker --until-done", "follow add storm gió --mail desk@example.vn", "follow list", "follow remove storm", "events dead",
    "store check", "store prune --dry-run", "fleet status", "fleet version", "trends",
    "frontier purge {site} --yes",
)  # fmt: skip


@pytest.mark.long
def test_no_verb_of_an_operator_needs_more_than_the_workers_rights(
    secured: Secured, crawled: tuple[Finished, Callable[..., Finished]]
):
    done, run = crawled
    [url] = re.findall(r"url=(\S+) site=\S+ kind=article outcome=DONE", done.stderr)[:1]
    site = re.findall(r"outcome=DONE", done.stderr) and re.findall(r" site=(\S+)", done.stderr)[0]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    admin = secured.client("admin")
    admin.execute_command("ACL", "LOG", "RESET")
    refused = {}
    for verb in VERBS:
        words = verb.format(url=url, site=site, today=today).split()
        ended = run(secured.url("worker"), *words)
        text = ended.stdout + ended.stderr
        if ended.returncode not in (0, 1) or "Traceback" in text or "NOPERM" in text:
            refused[verb] = text[-400:]
        if entries := admin.acl_log():
            refused[verb] = f"{entries[0]['reason']}: {entries[0]['object']} {text[-200:]}"
            admin.execute_command("ACL", "LOG", "RESET")
    assert not refused, "\n".join(f"{verb}: {text}" for verb, text in refused.items())
    # Its file is the server's: who may not have it written anew is told what is left.
    ended = run(secured.url("worker"), "takedown", url, "--reason", "test", "--yes")
    assert "did not write its append-only file anew" in ended.stdout + ended.stderr
    assert {entry["object"] for entry in admin.acl_log()} == {"bgrewriteaof"}
    admin.execute_command("ACL", "LOG", "RESET")


def test_a_reshard_is_refused_before_it_closes_anything(
    secured: Secured, crawled: tuple[Finished, Callable[..., Finished]]
):
    """RESTORE is not among the workers' rights: it was found half way, with the frontier closed."""
    run, admin = crawled[1], secured.client("admin")
    before = admin.hgetall("{frontier}:meta")
    refused = run(secured.url("worker"), "frontier", "reshard", "2")
    assert refused.returncode == 1 and "reshard as `admin`" in refused.stderr, refused.stderr
    assert admin.hgetall("{frontier}:meta") == before and b"shards" in before
    done = run(secured.url("admin"), "frontier", "reshard", "2")
    assert done.returncode == 0, done.stderr
    assert admin.hget("{frontier}:meta", "shards") == b"2"
    assert run(secured.url("worker"), "frontier", "report").returncode == 0
    admin.execute_command("ACL", "LOG", "RESET")  # of the right that was asked for


def test_a_backup_is_made_by_a_user_who_may_copy_and_change_nothing(
    secured: Secured, crawled: tuple[Finished, Callable[..., Finished]]
):
    done = crawled[1](secured.url("backup"), "backup", str(secured.folder / "backup"))
    assert done.returncode == 0, done.stderr[-2000:]
    refused = crawled[1](secured.url("worker"), "backup", str(secured.folder / "backup-2"))
    assert refused.returncode == 1 and "NOPERM" in refused.stderr
    with pytest.raises(redis.exceptions.NoPermissionError):
        secured.client("backup").set("{fleet}:x", "1")


@pytest.mark.parametrize(
    "command",
    ["FLUSHALL", "FLUSHDB", "CONFIG GET dir", "CONFIG SET dir /tmp", "KEYS *", "DEBUG SLEEP 0",
     "SHUTDOWN", "SAVE", "REPLICAOF 127.0.0.1 1", "MONITOR", "ACL LIST", "SCRIPT FLUSH",
     "GET somebody:elses", "SET somebody:elses 1", "MODULE LIST", "FUNCTION LIST", "CLIENT KILL ID 1",
     "EVAL return(redis.call('GET','somebody:elses')) 0", "PUBLISH a b"],
)  # fmt: skip
def test_what_a_worker_may_not_do(secured: Secured, command: str):
    with pytest.raises(
        (redis.exceptions.NoPermissionError, redis.ResponseError),
        match=r"(?i)perm|not allowed|can't access",
    ):
        secured.client("worker").execute_command(*command.split())


def test_a_reader_reads_and_nobody_comes_in_without_a_name(secured: Secured):
    reader = secured.client("reader")
    assert reader.info("server")["redis_version"]
    with pytest.raises(redis.exceptions.NoPermissionError):
        reader.set("{fleet}:x", "1")
    nameless = redis.Redis(
        "localhost", secured.port, ssl=True, ssl_ca_certs=str(secured.folder / "ca.pem")
    )
    with pytest.raises(redis.RedisError, match=r"(?i)auth"):
        nameless.ping()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"ca": "other.pem"}, "certificate"),
        ({"ca": "nowhere.pem"}, "nowhere.pem"),
        ({"host": "127.0.0.1"}, "certificate"),
        ({"password": "wrong-secret-2b"}, "password"),
    ],
)
def test_what_is_wrong_with_the_connection_is_one_line_without_the_password(
    secured: Secured,
    crawled: tuple[Finished, Callable[..., Finished]],
    change: dict[str, str],
    word: str,
):
    url = secured.url("worker", **change)
    done = crawled[1](url, "crawl", "news")
    lines = [line for line in done.stderr.splitlines() if "Redis does not answer" in line]
    assert done.returncode in (1, 2), done.stderr
    assert len(lines) == 1 and word in lines[0].lower(), done.stderr
    assert "Traceback" not in done.stderr
    for secret in (PASSWORD % "worker", "wrong-secret-2b"):
        assert secret not in done.stderr


@pytest.mark.parametrize("user", ["worker", "reader", "backup"])
def test_each_user_finds_the_nodes_of_a_cluster(cluster_port: int, user: str):
    """What a client of a cluster asks first is which node has which keys."""
    url = f"redis://{user}:{PASSWORD % user}@127.0.0.1:{cluster_port}"
    client = redis.RedisCluster.from_url(url)
    if user == "worker":
        assert client.set("{frontier}x", 1)
        assert client.get("{frontier}x") == b"1"
    else:
        assert client.get("{frontier}nothing") is None
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.set("{frontier}x", 2)
    client.close()


@pytest.fixture(scope="module")
def cluster_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A cluster of one node that has these users."""

    def admin(port: int) -> redis.Redis:
        return redis.Redis(port=port, username="admin", password=PASSWORD % "admin")

    def options(port: int) -> list[str]:
        ports = ["--port", str(port), "--cluster-port", str(_free_port())]
        return [*ports, "--cluster-enabled", "yes"]

    with redis_with_users(tmp_path_factory.mktemp("cluster"), options, admin) as port:
        client = admin(port)
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        until(
            lambda: "cluster_state:ok" in _info(client.execute_command("CLUSTER INFO")),
            "a cluster that works",
        )
        client.close()
        yield port


def _info(answer: Any) -> str:
    """redis-py gives it as a table or as text."""
    if isinstance(answer, dict):
        return "\n".join(f"{name}:{value}" for name, value in answer.items())
    return answer.decode() if isinstance(answer, bytes) else str(answer)


def test_every_tag_of_our_keys_is_in_the_file():
    tags = set()
    for source in (ROOT / "newscrawler").rglob("*.py"):
        tags |= set(re.findall(r'"(\{[a-z][a-z:]*\})[:"]', source.read_text(encoding="utf-8")))
    keys = {tag for tag in tags if len(tag) > 4 and f'= "{tag}' in _all_sources()}
    assert {"{fleet}", "{selectors}", "{crawls}", "{render}", "{reparse}"} <= keys
    worker = next(line for line in USERS.read_text().splitlines() if line.startswith("user worker"))
    assert [tag for tag in sorted(keys) if f"~{tag}" not in worker] == []
    lost = [tag for tag in sorted(keys) if not tag.encode().startswith(snapshot.OURS)]
    assert lost == [], "a backup would not hold them, nor --replace delete them"


def _all_sources() -> str:
    return "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "newscrawler").rglob("*.py"))
