"""Classes of other projects that are named by settings: article stores, embedders, sinks of events,
metadata rules, actions of an alert. docs/extending.md has an example of each.

A class that has ``from_settings`` is made by it with Scrapy's settings, another one without
arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.misc import load_object

from newscrawler.extraction.metadata_rules import MetadataRule
from newscrawler.store.base import ArticleStore
from newscrawler.store.events import EventSink
from newscrawler.store.semantic.embedder import Embedder

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


_LISTS = ("METADATA_RULES", "EVENT_SINKS", "ALERT_ACTIONS")


class AlertAction(Protocol):
    def send(self, alert: Mapping[str, Any]) -> object:
        """Tells somebody of an incident (monitors.Alert.payload). Runs in a thread of its own and
        may block; what it raises is logged."""
        ...


def metadata_rules(settings: BaseSettings) -> tuple[MetadataRule, ...]:
    return tuple(_all(settings, "METADATA_RULES"))


def event_sinks(settings: BaseSettings) -> dict[str, EventSink]:
    """By the names of their classes, under which it is kept how far each has been told."""
    return {
        str(path): _made(settings, "EVENT_SINKS", path) for path in settings.getlist("EVENT_SINKS")
    }


def alert_actions(settings: BaseSettings) -> list[AlertAction]:
    return _all(settings, "ALERT_ACTIONS")


def article_store(settings: BaseSettings) -> ArticleStore | None:
    """The store that ARTICLE_STORES has for the scheme of ARTICLE_STORE; None: it has none."""
    scheme, separator, _ = str(settings.get("ARTICLE_STORE") or "").partition("://")
    path = settings.getdict("ARTICLE_STORES").get(scheme) if separator else None
    if path is None:
        return None
    store: ArticleStore = _made(settings, "ARTICLE_STORES", path)
    return store


def embedder(settings: BaseSettings) -> Embedder | None:
    """That of EMBEDDER; None: one of ours."""
    path = settings.get("EMBEDDER")
    if not path:
        return None
    made: Embedder = _made(settings, "EMBEDDER", path)
    return made


def check(settings: BaseSettings) -> None:
    """Imports every class, so that a wrong name is said before a crawl starts.

    :raises ValueError: a class cannot be imported; the text names the setting
    """
    for name in _LISTS:
        for path in settings.getlist(name):
            found = _imported(name, path)
            if name == "EVENT_SINKS" and not hasattr(found, "deliver"):
                raise ValueError(f"{name}: {path} has no method deliver (docs/extending.md)")
    for path in settings.getdict("ARTICLE_STORES").values():
        _imported("ARTICLE_STORES", path)
    if settings.get("EMBEDDER"):
        _imported("EMBEDDER", settings.get("EMBEDDER"))


def _all(settings: BaseSettings, name: str) -> list[Any]:
    return [_made(settings, name, path) for path in settings.getlist(name)]


def _made(settings: BaseSettings, name: str, path: Any) -> Any:
    """:raises ValueError: the class cannot be imported or made; the text names the setting"""
    cls = _imported(name, path)
    try:
        return cls.from_settings(settings) if hasattr(cls, "from_settings") else cls()
    except Exception as exc:  # a class of another project may fail in any way
        what = f"{type(exc).__name__}: {exc}"
        raise ValueError(
            f"{name}: {path} cannot be made from the settings ({what}); is one that it reads not"
            " set?"
        ) from exc


def _imported(name: str, path: Any) -> Any:
    try:
        return load_object(path)
    except Exception as exc:  # a module may fail in any way while it is imported
        raise ValueError(f"{name}: {path} cannot be imported: {exc}") from exc
