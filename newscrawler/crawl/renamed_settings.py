"""Settings whose names have changed: the old name is still read, with one line at the start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from newscrawler import settings as defaults

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

#: Name -> the old one.
OLD_NAMES = {
    "LLM_EXTRACTION_PAGES_PER_DAY": "LLM_DIRECT_PER_DAY",
    "LLM_EXTRACTION_PAGES_PER_DOMAIN_PER_DAY": "LLM_DIRECT_PER_DOMAIN_PER_DAY",
}


def integer(settings: BaseSettings, name: str) -> int:
    """The setting; where only its old name is said, the value of that. Where both are, the one
    that is said with more weight (a command line over a settings module), else the new name.

    :raises ValueError: it is not a number
    """
    said = _said_as(settings, name)
    try:
        return settings.getint(said)
    except (TypeError, ValueError):
        raise ValueError(f'{said}="{settings.get(said)}": must be a number') from None


def announce(settings: BaseSettings) -> None:
    """Tells of each old name that is in use."""
    for name, old in OLD_NAMES.items():
        if old in settings:
            logger.warning(
                "Setting has a new name, the old one will not be read for ever old=%s new=%s"
                " read=%s",
                old,
                name,
                _said_as(settings, name),
            )


def _said_as(settings: BaseSettings, name: str) -> str:
    old = OLD_NAMES[name]
    if old not in settings:
        return name
    weight, old_weight = settings.getpriority(name) or 0, settings.getpriority(old) or 0
    # Our own settings module gives every new name its default, with the weight of a project's.
    is_default = settings.get(name) == getattr(defaults, name)
    return old if old_weight > weight or (old_weight == weight and is_default) else name
