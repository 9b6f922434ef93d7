"""Why a URL is where it is: frontier, robots.txt, selector sets and article store,
asked together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from newscrawler.crawl import opening, site_choice
from newscrawler.crawl.link_learning import LinkLearning, split
from newscrawler.crawl.render_lessons import RenderLessons
from newscrawler.discovery.sites import Refusal, Site
from newscrawler.frontier import keys, packing
from newscrawler.frontier.errors import translated
from newscrawler.frontier.found import FoundSeeds
from newscrawler.frontier.taken import URL, Taken
from newscrawler.items import Kind, Link
from newscrawler.store.base import StoreUnavailable
from newscrawler.web.robots import RobotsRules
from newscrawler.web.urls import domain_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from newscrawler.frontier.operator import Operator

#: What a refusal by rule means, and what could be done about it.
REFUSALS = {
    "offsite": "no enabled site has its host (`scrapy sites list`, `scrapy seeds add`)",
    "scheme": "it is no http(s) address",
    "type": "it is an asset, a video or no page at all, by its address",
    "trap": (
        "its address looks like a trap: a calendar, endless parameters or paging, a path that"
        " repeats itself"
    ),
    "age": "it is older than ARTICLE_MAX_AGE_DAYS (`-a since=` sets another limit)",
}


async def trace(url: str, operator: Operator, settings: BaseSettings) -> dict[str, Any]:
    """``text`` is a sentence; then, each ``None`` where there is none: ``url`` (canonical),
    ``refused`` (reason), ``found_on``, ``record``, ``fetches`` (among the last of its domain),
    ``domain`` (its row of the report), ``robots``, ``shape`` (share of its budget),
    ``link_class`` (article, list or other, and what the site taught that says so),
    ``browser`` (whether scripts fill its pages), ``selector_set`` (in use for the site),
    ``article``.

    :raises newscrawler.discovery.sites.SitesError: the sites file cannot be read
    :raises newscrawler.frontier.queue.FrontierUnavailable: Redis is away
    """
    sites = site_choice.load_sites(settings)
    found = sites.identify(url)
    if await _is_taken_down(url, found, operator):
        return {
            "url": url,
            "refused": "takedown",
            "text": "it was taken down and is never fetched: scrapy takedown --list",
        }
    if found == Refusal("offsite") and await operator.state(domain_of(url)) is not None:
        # A host of no enabled site that was crawled by its address (`-a urls=`): the
        # frontier knows it.
        found = site_choice.all_sites(settings).for_urls([url]).identify(url)
    if not isinstance(found, Link):
        meaning = REFUSALS.get(found.reason, "by a rule")
        return {
            "url": url,
            "refused": found.reason,
            "text": f"links to it are refused ({found.reason}): {meaning}",
        }
    why = await operator.why(found.url_id, found.domain)
    if why["record"] is None and (archived := await _archived(found.url_id, settings)) is not None:
        why = await operator.why(found.url_id, found.domain, archived)
    record = why["record"]
    if record is not None:
        found.url, found.kind = record.url or found.url, record.kind
    found_on = why["found_on"]
    if not found_on and record is not None and not record.depth:
        found_on = "a seed, or asked for"
    article = await _article(found.url_id.hex(), found.url, settings)
    site = sites.get(why["domain"]["site"]) if why["domain"] else None
    return {
        "url": found.url,
        "id": found.url_id.hex(),
        "text": why["text"],
        "refused": None,
        "found_on": found_on or None,
        "record": record,
        "refused_full": why["refused_full"],
        "fetches": await operator.fetches(found.url_id, found.domain),
        "domain": why["domain"],
        "robots": await _robots(found, operator, settings),
        "shape": await _shape(found, operator, settings),
        "browser": await _browser(site, found.domain, operator),
        "link_class": await _link_class(found, sites.by_host(found.domain), operator),
        "selector_set": await _selector_set(site.id if site else found.domain, operator, settings),
        "article": article,
    }


async def _is_taken_down(url: str, found: object, operator: Operator) -> bool:
    taken = Taken(operator.client, operator.layout, operator.scripts)
    asked = [(URL + found.url_id.hex(), found.domain)] if isinstance(found, Link) else []
    return bool(await taken.which(asked)) or await taken.has(url)


async def _archived(url_id: bytes, settings: BaseSettings) -> bytes | None:
    """The finished record that was moved out of Redis; an archive that is away has none."""
    store = opening.open_finished_store(settings)
    if store is None:
        return None
    try:
        return (await store.get([url_id])).get(url_id)
    except StoreUnavailable:
        return None
    finally:
        await store.close()


async def _robots(link: Link, operator: Operator, settings: BaseSettings) -> str:
    """The answer for it of the robots.txt that the fleet shares."""
    if not settings.getbool("ROBOTSTXT_OBEY"):
        return "not asked (ROBOTSTXT_OBEY is off)"
    entry = await operator.robots(link.domain)
    if entry is None:
        return "not read yet"
    agent = settings["ROBOTSTXT_USER_AGENT"]
    rules = RobotsRules.parse_answer(entry.status, entry.body, agent)
    return "allowed" if rules.allowed(link.url) else f"forbidden for {agent}"


async def _shape(link: Link, operator: Operator, settings: BaseSettings) -> str | None:
    budget = settings.getint("FRONTIER_PATTERN_BUDGET")
    number = packing.shape_of(link)
    if not budget or not number:
        return None
    shard = operator.layout.of(link.domain)
    with translated():
        used = int(await operator.client.hget(keys.patterns(shard, link.domain), str(number)) or 0)
    budget *= packing.ARTICLE_SHARE if link.kind == "article" else 1
    return f"{min(used, budget)} of {budget} of this shape today" + (
        f", {used - budget} refused as trap" if used > budget else ""
    )


async def _browser(site: Site | None, domain: str, operator: Operator) -> str | None:
    """Whether its domain's pages are read with a browser, and since when."""
    if site is not None and site.render is not None:
        word = "every page" if site.render else "no page"
        return f"{word} of {site.id} is read with a browser, as is set (`scrapy sites render`)"
    lesson = await RenderLessons(operator.client).one(domain)
    return None if lesson is None else f"{lesson.text()} (`scrapy sites render` changes it)"


async def _link_class(link: Link, site: Site | None, operator: Operator) -> str | None:
    """The class that the site has taught of its address."""
    if site is None or link.kind not in (Kind.ARTICLE, Kind.PAGE, Kind.SECTION):
        return None
    if site.article_pattern:
        is_article = link.kind is Kind.ARTICLE
        return f"{link.kind}: by the article_pattern of sites.json" if is_article else None
    learning = LinkLearning(operator.client)
    found = await FoundSeeds(operator.client, lambda: operator.layout).of(site.host)
    learning.note_known(site, [seed.url for seed in found if seed.kind is Kind.SECTION])
    await learning.load([site.id])
    verdict = learning.of(site.id).class_of(*split(link.url))
    original = learning.original(site, link.url)
    more = f"; by a rule of the site a second address of {original}" if original else ""
    return f"{verdict.class_}: {verdict.why}{more}"


async def _selector_set(site: str, operator: Operator, settings: BaseSettings) -> str | None:
    store = opening.open_selector_store(settings, operator.client)
    await store.refresh()
    active = store.active(site)
    return None if active is None else active.label


async def _article(
    article_id: str, url: str, settings: BaseSettings
) -> dict[str, Any] | str | None:
    """Where the article is; a line where the store does not answer."""
    try:
        store = opening.open_article_store(settings, must_exist=True)
        await store.open()
        try:
            article = await store.get(article_id) or await store.find_url(url)
        finally:
            await store.close()
    except StoreUnavailable as exc:
        return f"not known: {exc}"
    if article is None:
        return None
    return {
        "id": article.id,
        "url": article.url if article.url != url else None,
        "title": article.title,
        "version": article.version,
        "gone": article.gone,
        "published": article.published,
        "selector_version": article.selector_version,
        "raw_ref": article.raw_ref,
        "store": settings.get("ARTICLE_STORE") or str(opening.data_dir(settings) / "articles.db"),
    }
