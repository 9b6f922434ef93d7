"""One egg on every node, or on none.

The egg is built by scrapyd-client and holds everything that is read at run time. Its version is a
time and a digest of what is in it, so versions sort by age (scrapyd runs the newest by default) and
the same code has the same ending everywhere.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path

from newscrawler.fleet.nodes import Node, NodeError

#: Seconds that the build may take.
BUILD_S = 300
#: Versions that a node keeps beside the new one, so that a restart can go back.
KEPT = 2
SPIDERS = 1


class DeployFailed(Exception):
    """Nothing has changed: every node has the versions it had. ``left``: nodes of which that is
    not sure, as they did not answer when the egg was taken back."""

    def __init__(self, text: str, left: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.left = list(left)


@dataclass(slots=True)
class Deployed:
    version: str
    nodes: list[str]
    removed: dict[str, list[str]] = field(default_factory=dict)  # node -> old versions


def build_egg(project: Path) -> bytes:
    """By `scrapyd-deploy --build-egg`, from the project's setup.py.

    :param project: the folder of scrapy.cfg
    :raises DeployFailed: it cannot be built; with the last line of the build
    """
    with tempfile.TemporaryDirectory(prefix="newscrawler-egg-") as folder:
        egg = Path(folder) / "newscrawler.egg"
        command = [sys.executable, "-m", "scrapyd_client.deploy", "--build-egg", str(egg)]
        if not (project / "setup.py").is_file():
            raise DeployFailed(
                f"{project} has no setup.py to build an egg from; deploy from a checkout, or give"
                " a built one with --egg FILE"
            )
        try:
            done = subprocess.run(
                command, cwd=project, capture_output=True, text=True, timeout=BUILD_S
            )
        except subprocess.TimeoutExpired:
            raise DeployFailed(f"the egg was not built within {BUILD_S} s") from None
        if done.returncode or not egg.is_file():
            said = (done.stderr or done.stdout).strip().splitlines()
            raise DeployFailed(
                f"the egg cannot be built: {said[-1] if said else 'no reason given'}"
            )
        return egg.read_bytes()


def digest_of(egg: bytes) -> str:
    """Of what is in it, whenever it was built.

    :raises DeployFailed: it is no egg of a Scrapy project
    """
    try:
        with zipfile.ZipFile(BytesIO(egg)) as archive:
            entries = sorted((one.filename, one.CRC) for one in archive.infolist())
    except zipfile.BadZipFile:
        raise DeployFailed("the file is no egg: it is no zip archive") from None
    names = {name for name, _ in entries}
    if "EGG-INFO/entry_points.txt" not in names or "newscrawler/settings.py" not in names:
        raise DeployFailed(
            "the file is no egg of newscrawler: EGG-INFO/entry_points.txt or"
            " newscrawler/settings.py is missing; build it with `scrapyd-deploy --build-egg FILE`"
        )
    lasting = [entry for entry in entries if not entry[0].endswith(".pyc")]
    return hashlib.sha256(repr(lasting).encode()).hexdigest()[:8]


def version_of(egg: bytes, now: datetime) -> str:
    """ "20261122-183000-1a2b3c4d" """
    return f"{now:%Y%m%d-%H%M%S}-{digest_of(egg)}"


def check_version(version: str) -> None:
    """:raises ValueError: scrapyd would keep it under another name"""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", version):
        raise ValueError(f"version {version!r}: only letters, digits, - and _")


def deploy(
    nodes: Sequence[Node],
    egg: bytes,
    version: str,
    in_use: Collection[str],
    tell: Callable[[str], None],
) -> Deployed:
    """:param in_use: versions that are never removed
    :param tell: is handed a line for each step
    :raises DeployFailed: a node did not take it; the others gave it back"""
    before = _versions(nodes)
    for name, has in before.items():
        if version in has:
            raise DeployFailed(f"node {name} has a version {version} already; name another one")
    outcomes = _on_each(nodes, lambda node: _upload(node, version, egg))
    failed = {name: error for name, error in outcomes.items() if error}
    for node in nodes:
        tell(f"{node.name}: {outcomes[node.name] or f'has version {version}'}")
    if failed:
        left = _take_back(nodes, version, before)
        reasons = "; ".join(failed.values())
        raise DeployFailed(f"{len(failed)} of {len(nodes)} nodes did not take it: {reasons}", left)
    removed = _remove_old(nodes, {*in_use, version})
    return Deployed(version, [node.name for node in nodes], removed)


def _versions(nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Asked before anything changes: a fleet of which a node is away is not half deployed.

    :raises DeployFailed: a node does not answer
    """
    found: dict[str, list[str]] = {}
    away: list[str] = []

    def ask(node: Node) -> str:
        found[node.name] = node.versions()
        return ""

    away = [error for error in _on_each(nodes, ask).values() if error]
    if away:
        raise DeployFailed(
            f"{'; '.join(away)}. Nothing was changed. A node that is gone for good is taken out of"
            " scrapy.cfg"
        )
    return found


def _on_each(nodes: Sequence[Node], work: Callable[[Node], str]) -> dict[str, str]:
    """Node -> what ``work`` said or failed with."""

    def one(node: Node) -> str:
        try:
            return work(node)
        except NodeError as exc:
            return str(exc)

    with ThreadPoolExecutor(max_workers=min(16, len(nodes))) as pool:
        return dict(zip([node.name for node in nodes], pool.map(one, nodes), strict=True))


def _upload(node: Node, version: str, egg: bytes) -> str:
    """ "" = it is there and runs."""
    spiders = node.upload(version, egg)
    if spiders != SPIDERS:
        return f"node {node.name} finds {spiders} spiders in the egg, not {SPIDERS}"
    if version not in node.versions():
        return f"node {node.name} took the egg and does not list it"
    return ""


def _take_back(nodes: Sequence[Node], version: str, before: dict[str, list[str]]) -> list[str]:
    """Also of a node that answered with an error: scrapyd keeps an egg whose spiders it could not
    list, and would run it by default.

    :returns: names of those that may still have it
    """

    def remove(node: Node) -> str:
        has = node.versions()
        if version in has:
            node.remove(version)
            has = node.versions()
        return "" if has == before[node.name] else "differs"

    return [name for name, error in _on_each(nodes, remove).items() if error]


def _remove_old(nodes: Sequence[Node], keep: Collection[str]) -> dict[str, list[str]]:
    """The oldest, beyond KEPT. One that cannot be removed costs disk and no more."""
    removed: dict[str, list[str]] = {}

    def remove(node: Node) -> str:
        old = [version for version in node.versions() if version not in keep]
        for version in old[: max(0, len(old) - KEPT)]:
            node.remove(version)
            removed.setdefault(node.name, []).append(version)
        return ""

    _on_each(nodes, remove)
    return removed
