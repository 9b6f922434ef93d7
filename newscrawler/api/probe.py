"""Whose search page answers on a port: ours, that of another data folder, or another program."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Literal

from newscrawler.utils.display import url_shown

#: ``other``: a search page of this program over another data folder. ``program``: something else.
Owner = Literal["free", "ours", "other", "program"]


def data_mark(data_dir: Path, article_store: str, index: str) -> str:
    """A short name of the data that a page shows. /healthz is open to all, so it is a hash: it
    names no path, and the password of a store has no part in it."""
    text = "\n".join((str(data_dir), url_shown(article_store), index))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:12]


def owner(host: str, port: int, mark: str) -> Owner:
    if not listening(host, port):
        return "free"
    answer = _healthz(f"http://{host}:{port}")
    if answer.get("service") != "newscrawler":
        return "program"
    return "ours" if answer.get("data") == mark else "other"


def listening(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False


def can_be_taken(host: str, port: int) -> bool:
    """Whether a server may listen there. A port on which nobody answers may still be in use, as
    the near end of a connection that another program has made."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server does
        tried.bind((host, port))
        return True
    return False


def _healthz(url: str) -> dict[str, object]:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=3) as answer:
            body = answer.read(4096)
    except urllib.error.HTTPError as exc:  # 503: its store is away, it is a search page still
        body = exc.read(4096)
    except Exception:  # no HTTP at all
        return {}
    with contextlib.suppress(ValueError):
        found = json.loads(body)
        return found if isinstance(found, dict) else {}
    return {}
