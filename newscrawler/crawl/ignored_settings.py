"""Settings of Scrapy that the spider `news` would pass over in silence: refused at the
start, one line each.

The frontier does for the whole fleet what Scrapy does in one process, so these settings
would say nothing to it. In `scrapy shell`, and for another spider of this project, they
work as in any Scrapy project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy.pipelines.media import MediaPipeline
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class IgnoredSetting(ValueError):
    """The crawl must not start: what was asked for would not be done. The text says
    what does it instead."""


class _Group(NamedTuple):
    """Settings with the values that the spider works with, and why no other is looked at."""

    values: Mapping[str, Any]
    why: str


_GATE = "the frontier's gate hands a domain to one fetch at a time in the whole fleet"
_RETRY = (
    "a URL is tried again by the frontier, when its domain is due; set FRONTIER_MAX_TRIES, "
    "BACKOFF_START_S"
)
_REDIRECT = (
    "the target of a redirect is a URL of its own in the frontier, fetched when its host is due"
)
_CACHE = (
    "pages are fetched on condition (ETag, Last-Modified) and kept as WARC; stored pages answer"
    " with `scrapy replay DIR`"
)
_QUEUE = "the queue is in Redis, shared by the fleet, and goes on by itself after a stop"
_SEEN = "a URL is known by its url id in Redis (docs/frontier.md)"
_DEPTH = "links are queued down to FRONTIER_MAX_DEPTH"
_STATUS = "every status has its outcome in the frontier (docs/frontier.md)"
_DNS = "names are looked up behind the address guard; set DNS_TTL_S"
_TLS = (
    "the guarded handler speaks TLS by Python's defaults; set EXTRA_CA_FILE, "
    "DOWNLOAD_VERIFY_CERTIFICATES"
)
_REDIS = "write REDIS_URL=redis://host:port/db"

_GROUPS = (
    _Group(
        {"FRONTIER_ENABLED": True},
        "a crawl takes its URLs from the frontier; one page is read by `scrapy parse`",
    ),
    _Group(
        {"SCHEDULER": "newscrawler.scheduler.Scheduler"},
        "without the frontier nothing keeps delays, robots.txt and the fleet's queue",
    ),
    _Group(
        {
            "DUPEFILTER_CLASS": "newscrawler.scheduler.DupeFilter",
            "REQUEST_FINGERPRINTER_CLASS": "scrapy.utils.request.RequestFingerprinter",
        },
        _SEEN,
    ),
    _Group({"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "CONCURRENT_REQUESTS_PER_IP": 0}, _GATE),
    _Group(
        {"DOWNLOAD_SLOTS": {"frontier": {"concurrency": 1000, "delay": 0}}},
        f"{_GATE}; set a site's delay with `scrapy frontier delay`",
    ),
    _Group(
        {"DOWNLOAD_DELAY_JITTER": 0, "RANDOMIZE_DOWNLOAD_DELAY": False},
        "the gate keeps an exact least distance",
    ),
    _Group(
        {
            "RETRY_ENABLED": False,
            "RETRY_TIMES": None,
            "RETRY_HTTP_CODES": None,
            "RETRY_PRIORITY_ADJUST": None,
        },
        _RETRY,
    ),
    _Group(
        {
            "REDIRECT_ENABLED": False,
            "METAREFRESH_ENABLED": False,
            "REDIRECT_MAX_TIMES": None,
            "REDIRECT_PRIORITY_ADJUST": None,
        },
        _REDIRECT,
    ),
    _Group({"METAREFRESH_IGNORE_TAGS": None, "METAREFRESH_MAXDELAY": None}, _REDIRECT),
    _Group({"HTTPCACHE_ENABLED": False}, _CACHE),
    _Group(
        {"COOKIES_ENABLED": False, "COOKIES_DEBUG": False},
        "no cookie is sent: each fetch of the fleet looks the same to a site",
    ),
    _Group(
        {"HTTPAUTH_USER": "", "HTTPAUTH_PASS": "", "HTTPAUTH_DOMAIN": None},
        "no credentials are sent to a site",
    ),
    _Group(
        {"REFERER_ENABLED": False, "REFERRER_POLICY": None},
        "no Referer is sent: a URL is fetched apart from the page that named it",
    ),
    _Group({"AJAXCRAWL_ENABLED": False}, "a page is read as it is served"),
    _Group({"DEPTH_LIMIT": None, "DEPTH_PRIORITY": None, "DEPTH_STATS_VERBOSE": False}, _DEPTH),
    _Group({"URLLENGTH_LIMIT": None}, "addresses are bounded by discovery (docs/sites.md)"),
    _Group({"HTTPERROR_ALLOW_ALL": True, "HTTPERROR_ALLOWED_CODES": None}, _STATUS),
    _Group(
        {
            "DNSCACHE_ENABLED": True,
            "DNSCACHE_SIZE": None,
            "DNS_TIMEOUT": None,
            "DNS_RESOLVER": None,
            "TWISTED_DNS_RESOLVER": None,
        },
        _DNS,
    ),
    _Group(
        {
            "DOWNLOADER_CLIENTCONTEXTFACTORY": None,
            "DOWNLOADER_CLIENT_TLS_CIPHERS": None,
            "DOWNLOADER_CLIENT_TLS_METHOD": None,
            "DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING": False,
        },
        _TLS,
    ),
    _Group({"DOWNLOAD_TLS_MAX_VERSION": None, "DOWNLOAD_TLS_MIN_VERSION": None}, _TLS),
    _Group({"DOWNLOAD_BIND_ADDRESS": None}, "the guarded handler uses the system's route"),
    _Group(
        {"DOWNLOAD_FAIL_ON_DATALOSS": True}, "a page that broke off is not read, but fetched again"
    ),
    _Group(
        {"DOWNLOAD_WARNSIZE": 0},
        "a page over DOWNLOAD_MAXSIZE is refused, a smaller one is ordinary",
    ),
    _Group(
        {"HTTP2_MAX_FRAME_SIZE": None, "HTTPX_HTTP2_ENABLED": False},
        "the guarded handler speaks HTTP/1.1",
    ),
    _Group(
        {
            "JOBDIR": None,
            "SCHEDULER_DEBUG": False,
            "SCHEDULER_DISK_QUEUE": None,
            "SCHEDULER_MEMORY_QUEUE": None,
        },
        _QUEUE,
    ),
    _Group(
        {
            "SCHEDULER_PRIORITY_QUEUE": None,
            "SCHEDULER_START_DISK_QUEUE": None,
            "SCHEDULER_START_MEMORY_QUEUE": None,
        },
        _QUEUE,
    ),
    _Group(
        {"SCHEDULER_QUEUE_CLASS": None, "SCHEDULER_QUEUE_KEY": None, "SCHEDULER_SERIALIZER": None},
        _QUEUE,
    ),
    _Group({"SCHEDULER_DUPEFILTER_KEY": None, "SCHEDULER_DUPEFILTER_CLASS": None}, _SEEN),
    _Group(
        {
            "REDIS_HOST": None,
            "REDIS_PORT": None,
            "REDIS_DB": None,
            "REDIS_USER": None,
            "REDIS_PASSWD": None,
            "REDIS_ENCODING": None,
        },
        _REDIS,
    ),
    _Group(
        {
            "REDIS_START_URLS_KEY": None,
            "REDIS_START_URLS_AS_SET": False,
            "REDIS_START_URLS_AS_ZSET": False,
            "REDIS_START_URLS_BATCH_SIZE": None,
        },
        "seeds come from sites.json, `scrapy seeds add` and -a urls=",
    ),
)


def refuse(settings: BaseSettings) -> None:
    """:raises IgnoredSetting: the first setting that would be ignored, with what to set instead"""
    for group in _GROUPS:
        for name, value in group.values.items():
            if _is_said(settings, name) and not _is_same(settings, name, value):
                raise IgnoredSetting(
                    f"{name}={settings.get(name)} would be ignored: {group.why}; take the"
                    " setting out"
                )
    for pipeline, order in settings.getdict("ITEM_PIPELINES").items():
        if order is None:
            continue
        try:
            component = load_object(pipeline)
        except (ImportError, NameError, ValueError) as exc:
            raise IgnoredSetting(f"ITEM_PIPELINES: {pipeline} cannot be loaded: {exc}") from exc
        if isinstance(component, type) and issubclass(component, MediaPipeline):
            raise IgnoredSetting(
                f"ITEM_PIPELINES has {pipeline}: its pictures and files would be fetched past the"
                " frontier's gate, and are refused; fetch them in a spider of their own"
            )


def _is_said(settings: BaseSettings, name: str) -> bool:
    """By settings.py, the command line or scrapyd; not a default of Scrapy or
    of one of its commands."""
    return (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["project"]


def _is_same(settings: BaseSettings, name: str, value: Any) -> bool:
    """Whether the spider does what the setting says. ``None``: it has no answer to any value."""
    said = settings.get(name)
    if value is None or said is None:
        return said is None
    if isinstance(value, bool):
        return settings.getbool(name) is value
    if isinstance(value, int):
        return settings.getfloat(name) == value
    if isinstance(value, dict):
        return settings.getdict(name) == value
    return bool(str(said) == value)
