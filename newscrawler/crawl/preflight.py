"""What would make a crawl fail or do harm, looked at before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import redis
from scrapy.settings import default_settings

from newscrawler import settings as defaults
from newscrawler.crawl import ignored_settings, opening, plugins, renamed_settings, site_choice
from newscrawler.discovery import article_revisits
from newscrawler.discovery.sites import Sites
from newscrawler.fetch import address_guard
from newscrawler.fleet.registry import order_key
from newscrawler.frontier import connect_blocking
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.web import urls

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from newscrawler.fetch.client import FetchRules

#: What `scrapy crawl news` takes after -a; scrapyd adds _job.
SPIDER_ARGS = ("sites", "urls", "since")


def check_numbers(settings: BaseSettings) -> None:
    """:raises ValueError: a setting, ours or Scrapy's, whose default is a number is none, by its
    name; or no fetch at all is allowed"""
    for name, default in {**vars(default_settings), **vars(defaults)}.items():
        if name.isupper() and isinstance(default, (int, float)) and not isinstance(default, bool):
            try:
                float(settings.get(name))
            except (TypeError, ValueError):
                raise ValueError(f'{name}="{settings.get(name)}": must be a number') from None
    if settings.getfloat("CONCURRENT_REQUESTS") < 1:
        raise ValueError(
            f"CONCURRENT_REQUESTS={settings.get('CONCURRENT_REQUESTS')}: must be 1 or more, or"
            " nothing is ever fetched"
        )


def refuse_to_flush(settings: BaseSettings) -> None:
    """:raises StartRefused: scrapy-redis' settings that empty the queue"""
    if not settings.getbool("SCHEDULER_PERSIST") or settings.getbool("SCHEDULER_FLUSH_ON_START"):
        raise opening.StartRefused(
            "SCHEDULER_PERSIST=False and SCHEDULER_FLUSH_ON_START=True would empty the queue of the"
            " whole fleet; use `scrapy frontier purge DOMAIN` instead"
        )


def refuse_eviction(client: Any, url: str) -> None:
    """:raises StartRefused: this Redis would drop parts of the queue when it is full"""
    try:
        info = client.info("memory")
    except redis.ResponseError:
        return  # INFO is not allowed to everyone
    nodes = [info] if "maxmemory_policy" in info else list(info.values())  # a cluster's, by node
    policies = [node.get("maxmemory_policy") for node in nodes if isinstance(node, dict)]
    policy = next((name for name in policies if name not in (None, "noeviction")), None)
    if policy is not None:
        raise opening.StartRefused(
            f"Redis at {url} evicts keys when its memory is full (maxmemory-policy {policy}), which"
            " loses URLs without a word: CONFIG SET maxmemory-policy noeviction, and the same in"
            " its redis.conf"
        )


def _refuse_unknown(spider_args: dict[str, Any]) -> None:
    named = (name for name in spider_args if not name.startswith("_"))
    unknown = sorted(name for name in named if name not in SPIDER_ARGS)
    if unknown:
        raise ValueError(
            f"unknown argument -a {unknown[0]}=; the spider takes {', '.join(SPIDER_ARGS)}"
        )


def chosen_sites(settings: BaseSettings, spider_args: Mapping[str, Any]) -> Sites:
    """Of the arguments of the spider.

    :raises newscrawler.discovery.sites.SitesError, ValueError: an argument or the file is wrong
    :raises StartRefused: all of them are disabled
    """
    article_revisits.max_age_s(spider_args.get("since"), settings.getfloat("ARTICLE_MAX_AGE_DAYS"))
    sites = site_choice.load_sites(
        settings, only=spider_args.get("sites"), urls=spider_args.get("urls")
    )
    if not sites.enabled():
        raise opening.StartRefused(
            "no site is enabled; see `scrapy sites list`, then `scrapy sites enable SITE`"
        )
    return sites


def _refuse_private(rules: FetchRules, settings: BaseSettings, given: Any) -> None:
    """An address of -a urls= that no fetch would reach. What a name leads to is seen when it is
    looked up."""
    if settings.get("REPLAY_DIR"):
        return
    for url in site_choice.split_urls(given):
        host, _ = address_guard.split_host(urls.domain_of(url) or "")
        if not address_guard.is_literal(host) or rules.proxy_for(url) is not None:
            continue
        if why := rules.refusal(host):
            raise ValueError(f"{url}: {host} is not fetched: {why} address{rules.way_in(host)}")


def check(settings: BaseSettings, spider_args: dict[str, Any]) -> Sites:
    """Everything that would make a crawl fail at once, looked at before the reactor starts.

    :raises newscrawler.discovery.sites.SitesError, ValueError: an argument or a file is wrong
    :raises newscrawler.frontier.queue.FrontierUnavailable: Redis cannot be had
    """
    if not str(settings.get("USER_AGENT") or "").strip():
        raise opening.StartRefused(
            "USER_AGENT is empty: a crawler says who it is; set it with a contact of yours"
        )
    refuse_to_flush(settings)
    ignored_settings.refuse(settings)
    renamed_settings.announce(settings)
    if settings.get("ROBOTSTXT_PARSER") not in (None, "", default_settings.ROBOTSTXT_PARSER):
        raise opening.StartRefused(
            f"ROBOTSTXT_PARSER is {settings.get('ROBOTSTXT_PARSER')}: robots.txt is read by RFC"
            " 9309 with Protego, for the whole fleet alike, and no other parser would be asked;"
            " take the setting out"
        )
    check_numbers(settings)
    plugins.check(settings)
    opening.event_sinks_by_settings(settings)
    _refuse_unknown(spider_args)
    from newscrawler.crawl.virus_scan import scanner_of
    from newscrawler.fetch.client import FetchRules  # aiohttp, which `scrapy search` does not need
    from newscrawler.fetch.render import RenderRules

    scanner_of(settings)
    RenderRules.from_settings(settings)
    # A wrong setting of the guard is named before anything runs.
    _refuse_private(FetchRules.from_settings(settings), settings, spider_args.get("urls") or "")
    sites = chosen_sites(settings, spider_args)
    if settings.getfloat("DOWNLOAD_DELAY") <= 0 and not site_choice.all_loopback(sites, settings):
        raise opening.StartRefused(
            f"DOWNLOAD_DELAY is {settings.getfloat('DOWNLOAD_DELAY'):g}, which is accepted only"
            " where every admitted host is in 127.0.0.0/8; set it to 1 or more seconds"
        )
    _check_redis(opening.redis_url(settings))
    refuse_replaced(opening.redis_url(settings), str(spider_args.get("_job", "")))
    return sites


def refuse_replaced(url: str, job: str) -> None:
    """A job that waited in scrapyd's queue until the fleet gave it up must not begin beside the one
    that was started in its place.

    :raises StartRefused: the fleet has given this job up
    """
    if not job:
        return
    with connect_blocking(url, socket_connect_timeout=5, socket_timeout=5) as client:
        if client.get(order_key(job)) is not None:
            raise opening.StartRefused(
                f"job {job} was given up by the fleet before it began; another one runs in its"
                " place, or none is wanted any more"
            )


def _check_redis(url: str) -> None:
    try:
        with connect_blocking(url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
            refuse_eviction(client, url)
    except (redis.RedisError, redis.exceptions.RedisClusterException) as exc:
        raise FrontierUnavailable(f"Redis does not answer at {url}: {exc}") from exc
