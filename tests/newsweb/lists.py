"""List pages: home, sections with pagination, feeds, sitemaps, robots.txt, and pages
that are no article."""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from tests.newsweb import dates
from tests.newsweb.language import rng_for
from tests.newsweb.render import _GIF, Frame
from tests.newsweb.unknown import ABOUT, CONTACT

if TYPE_CHECKING:
    from tests.newsweb.world import Story, WebSite

PER_PAGE = 20
FEED_ITEMS = 50
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def listed(site: WebSite, now: float, channel: str, section: int | None = None) -> list[Story]:
    """Stories of a channel that are out, newest first. Archive stories stand in sitemaps only."""
    return [
        s
        for s in reversed(site.visible(now))
        if channel in s.channels
        and (section is None or s.section == section)
        and not s.special.startswith("rel-nofollow")
    ]


def card(story: Story, now: float, number: int) -> str:
    """A teaser. Beside the plain address some cards carry its twins: tracking parameters,
    free slug, m. host."""
    path, site = story.path, story.site
    twins = site.twins(story)
    extra = ""
    if site.unknown is not None:  # nothing tells which of its addresses are one
        if site.unknown.twin and story.number % 2:
            twin = path.rstrip("/") + site.unknown.twin
            extra = f'<a class="more" href="{twin}">Chi tiết</a>'
    elif story.number % 5 == 1:
        path += "?utm_source=trang-chu&utm_medium=box"
    elif story.number % 5 == 2:
        extra = f'<a class="cmt" href="{path}#binh-luan">Bình luận</a>'
    elif story.number % 5 == 3:
        extra = f'<a class="more" href="{twins[2 if len(twins) > 2 else 0]}">Chi tiết</a>'
    elif story.number % 5 == 4:
        extra = f'<a class="more" href="{twins[-1]}">Chi tiết</a>'
    return (
        f'<article class="item-news story"><a class="thumb" href="{path}"><img src="{_GIF}" data-src="/anh/{number}.jpg" alt=""></a>'
        f'<h3 class="title-news"><a href="{path}" title="{escape(story.title)}">{escape(story.title, quote=False)}</a></h3>'
        f'<p class="sapo">{escape(story.first.sapo[:160], quote=False)}…</p><span class="time">{dates.relative(story.published, now)}</span>'
        f"{extra}</article>"
    )


def home_page(site: WebSite, frame: Frame, now: float) -> str:
    stories = listed(site, now, "list")
    hidden = [s for s in site.visible(now) if s.special == "rel-nofollow"]
    blocks = [
        f'<section class="top-stories">{"".join(card(s, now, i) for i, s in enumerate(stories[:25]))}</section>'
    ]
    for index, (path, label) in enumerate(site.sections):
        mine = [s for s in stories if s.section == index][:8]
        blocks.append(
            f'<section class="cate"><h2><a href="{path}">{escape(label)}</a></h2>{"".join(card(s, now, i) for i, s in enumerate(mine))}</section>'
        )
    blocks += [f'<a rel="nofollow sponsored" href="{s.path}">{escape(s.title)}</a>' for s in hidden]
    blocks.append(
        '<a href="/hop-tac.html">Hợp tác</a> <a href="/lich/2026/11/1/">Lịch tin</a> <a href="/video/">Video</a> '
        '<a href="/tim-kiem?q=gia+vang">Tìm</a> <a href="https://www.facebook.com/toasoan">Facebook</a>'
    )
    announced = site.feeds[:1] if site.unknown is not None else site.feeds[:2]
    head = f"<title>{escape(site.name)} - Tin tức mới nhất</title>" + "".join(
        f'<link rel="alternate" type="application/rss+xml" href="{path}">' for path, _ in announced
    )
    return frame.page(head, f"<main>{''.join(blocks)}</main>")


def vendor_tag(site: WebSite, title: str, now: float) -> str:
    """What some publishing systems put on every page, articles or not."""
    if site.unknown is None or not site.unknown.vendor_tag:
        return ""
    when = dates.iso(now // 3600 * 3600)
    return (
        '<meta property="og:type" content="article">'
        f'<meta property="article:published_time" content="{when}"><script type="application/ld+json">'
        f'{{"@context":"https://schema.org","@type":"NewsArticle","headline":"{escape(title)}","datePublished":"{when}"}}</script>'
    )


def has_page(site: WebSite, section: int | None, page: int, now: float) -> bool:
    return page == 1 or (page - 1) * PER_PAGE < len(listed(site, now, "list", section))


def section_page(
    site: WebSite, frame: Frame, section: int | None, page: int, now: float, own_path: str
) -> str:
    """``section`` None = the list of everything, at ``own_path``."""
    stories = listed(site, now, "list", section)
    start = (page - 1) * PER_PAGE
    path, label = site.sections[section] if section is not None else (own_path, "Tin mới")
    cards = "".join(card(s, now, i) for i, s in enumerate(stories[start : start + PER_PAGE]))
    pages = range(1, (len(stories) - 1) // PER_PAGE + 2)
    links = "".join(
        f'<a class="page" href="{page_path(site, path, n)}">{n}</a> ' for n in pages if n != page
    )
    head = f"<title>{escape(label)} - {escape(site.name)}</title>"
    if site.unknown is None:
        head += '<meta property="og:type" content="website">'
    else:
        head += vendor_tag(site, label, now) + "".join(
            f'<link rel="alternate" type="application/rss+xml" title="RSS" href="{feed}">'
            for feed, of in site.feeds
            if of == section
        )
    return frame.page(
        head,
        f'<main><h1 class="cate-title">{escape(label)}</h1><div class="list">{cards}</div><div class="pagination">{links}</div></main>',
    )


def page_path(site: WebSite, path: str, page: int) -> str:
    """Address of a later page of a section, in the site's own style."""
    if page == 1:
        return path
    stem, dot, end = path.rpartition(".")
    base, ending = (stem, dot + end) if dot and "/" not in end else (path, "")
    return site.template.pager.format(base=base, end=ending, n=page)


def feed_xml(site: WebSite, path: str, section: int | None, now: float, quirk: str = "") -> str:
    """RSS 2.0, or Atom where the template's dates are ISO."""
    stories = [] if quirk == "empty" else listed(site, now, "feed", section)[:FEED_ITEMS]
    form = site.template.feed_dates
    if form == "iso":
        return _atom(site, path, stories, now)
    items = []
    for story in stories:
        version = story.current(now)
        link = story.url + ("?utm_source=rss&utm_medium=feed" if story.number % 4 == 3 else "")
        full = ""
        if quirk == "full":
            full = f"<content:encoded><![CDATA[{''.join(f'<p>{escape(t, quote=False)}</p>' for _, t in version.blocks)}]]></content:encoded>"
        when = dates.feed(form, story.published)
        items.append(
            f"<item><title>{_cdata(version.title) if story.number % 2 else escape(version.title, quote=False)}</title><link>{escape(link)}</link>"
            f'<guid isPermaLink="{"true" if story.number % 3 else "false"}">{story.url if story.number % 3 else story.ident}</guid>'
            + (f"<pubDate>{when}</pubDate>" if when else "")
            + f"<description>{_cdata(f'<a href={chr(34)}{link}{chr(34)}><img src={chr(34)}/anh/1.jpg{chr(34)}></a></br>{version.sapo}')}</description>{full}</item>"
        )
    return (
        f'{_XML}<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>{escape(site.name)}</title>'
        f"<link>{site.base}</link><description>Tin mới</description><generator>newsweb</generator>{''.join(items)}</channel></rss>"
    )


def _cdata(text: str) -> str:
    return "<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>"


def _atom(site: WebSite, path: str, stories: list[Story], now: float) -> str:
    entries = "".join(
        f'<entry><title type="html">{escape(escape(s.current(now).title, quote=False))}</title><link rel="alternate" href="{s.url}"/>'
        f"<id>{s.url}</id><published>{dates.iso(s.published)}</published><updated>{dates.iso(s.current(now).at)}</updated>"
        + "".join(f"<author><name>{escape(a)}</name></author>" for a in s.byline.authors)
        + f"<summary>{escape(s.first.sapo)}</summary></entry>"
        for s in stories
    )
    return (
        f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(site.name)}</title><id>{site.base}</id>'
        f'<link rel="self" href="{site.base}{path}"/><updated>{dates.iso(now)}</updated>{entries}</feed>'
    )


def _months(site: WebSite, now: float) -> list[str]:
    return sorted(
        {f"{dates.local(s.published):%Y-%m}" for s in listed(site, now, "sitemap")}, reverse=True
    )


def sitemap_index(site: WebSite, now: float) -> str:
    children = [f"{site.base}/sitemaps/articles-{month}.xml" for month in _months(site, now)]
    children += [f"{site.base}{path}" for path in site.news_sitemaps[:1]] + [
        f"{site.base}/sitemaps/categories.xml"
    ]
    body = "".join(
        f"<sitemap><loc>{url}</loc><lastmod>{dates.iso(now // 300 * 300)}</lastmod></sitemap>"
        for url in children
    )
    return f'{_XML}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{body}</sitemapindex>'


def articles_sitemap(site: WebSite, now: float, shard: list[int] | None = None) -> str:
    """``shard``: year and month, on some sites first and last day; None = all."""
    rows = [
        s
        for s in listed(site, now, "sitemap")
        if not shard or _in_shard(dates.local(s.published), shard)
    ]
    body = "".join(
        f"<url><loc>{s.url}</loc><lastmod>{dates.iso(s.current(now).at)}</lastmod><priority>0.7</priority></url>"
        for s in rows
    )
    return f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{body}</urlset>'


def _in_shard(day: datetime, shard: list[int]) -> bool:
    year, month, first, last = (*shard, 1, 31) if len(shard) == 2 else (*shard, 1, 31)[:4]
    return (day.year, day.month) == (year, month) and first <= day.day <= last


def news_sitemap(site: WebSite, now: float) -> str:
    rows = [s for s in listed(site, now, "sitemap") if s.published > now - 2 * 86400 - 3600]
    body = "".join(
        f"<url><loc>{s.url}</loc><news:news><news:publication><news:name>{escape(site.name)}</news:name><news:language>vi</news:language>"
        f"</news:publication><news:publication_date>{dates.iso(s.published)}</news:publication_date>"
        f"<news:title>{escape(s.current(now).title, quote=False)}</news:title></news:news></url>"
        for s in rows
    )
    return (
        f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">'
        f"{body}</urlset>"
    )


def categories_sitemap(site: WebSite) -> str:
    body = "".join(f"<url><loc>{site.base}{path}</loc></url>" for path, _ in site.sections)
    return f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{body}</urlset>'


def robots_txt(site: WebSite) -> str:
    lines = [
        "# robots.txt",
        "User-agent: *",
        *(f"Disallow: {path}" for path in site.disallows()),
        "Allow: /",
    ]
    if site.crawl_delay:
        lines.append(f"Crawl-delay: {site.crawl_delay:g}")
    lines += ["", "User-agent: BadBot", "Disallow: /", ""]
    if site.unknown is None or site.unknown.is_named:
        lines += [f"Sitemap: {site.base}{path}" for path in site.sitemaps[:2]]
    return ("\r\n" if site.robots == "crlf" else "\n").join(lines) + "\n"


def static_page(site: WebSite, frame: Frame, path: str, now: float) -> str | None:
    """Pages that are no article; None = not here. Some are traps for a crawler without bounds."""
    words, rng = site.world.language, rng_for(site.world.seed, site.key, path)
    if path == "/hop-tac.html":  # the page says nofollow: what only it links to stays unknown
        links = "".join(
            f'<a href="{s.path}">{escape(s.title)}</a>'
            for s in site.visible(now)
            if s.special == "nofollow-page"
        )
        return frame.page(
            '<title>Hợp tác</title><meta name="robots" content="nofollow">',
            f"<main><h1>Hợp tác</h1>{links}</main>",
        )
    if site.unknown is not None and path == ABOUT:
        text = "".join(f"<p>{escape(words.paragraph(rng))}</p>" for _ in range(6))
        return frame.page(
            f"<title>Giới thiệu</title>{vendor_tag(site, 'Giới thiệu', now)}",
            f"<main><h1>Giới thiệu về {escape(site.name)}</h1>{text}</main>",
        )
    if site.unknown is not None and path == CONTACT:
        text = "".join(f"<p>{escape(words.paragraph(rng))}</p>" for _ in range(4))
        tag = vendor_tag(site, "Liên hệ", now) or '<meta property="og:type" content="article">'
        return frame.page(
            f"<title>Liên hệ - {escape(site.name)}</title>{tag}",
            f"<main><h1>Liên hệ tòa soạn</h1>{text}</main>",
        )
    if path in (CONTACT, "/rss.html", "/video/", "/dang-nhap", "/tim-kiem"):
        text = f"<p>{escape(words.sentence(rng))}</p>" * 2
        return frame.page(
            f"<title>{path}</title>", f"<main><h1>{escape(site.name)}</h1>{text}</main>"
        )
    if path.startswith("/lich/"):  # disallowed calendar without end
        return frame.page("<title>Lịch</title>", calendar_links(path))
    topics = site.unknown.topics if site.unknown is not None else "/tu-khoa/"
    if path.startswith((topics, "/chu-de/", "/tags/")):
        links = (
            "".join(card(s, now, i) for i, s in enumerate(rng.sample(all_, k=min(4, len(all_)))))
            if (all_ := listed(site, now, "list")[:20])
            else ""
        )
        head = f"<title>Chủ đề</title>{vendor_tag(site, 'Chủ đề', now)}"
        return frame.page(head, f"<main><h1>Chủ đề</h1>{links}</main>")
    return None


def calendar_links(path: str) -> str:
    numbers = [int(p) for p in path.strip("/").split("/")[1:] if p.isdigit()]
    year, month, day = ([*numbers, 2026, 1, 1] if not numbers else [*numbers, 1, 1])[:3]
    after = (
        (year, month, day + 1)
        if day < 28
        else (year, month + 1, 1)
        if month < 12
        else (year + 1, 1, 1)
    )
    before = (
        (year, month, day - 1)
        if day > 1
        else (year, month - 1, 28)
        if month > 1
        else (year - 1, 12, 28)
    )
    prefix = path.split("/")[1]
    return (
        "<main>"
        + "".join(
            f'<a href="/{prefix}/{y}/{m}/{d}/">{d}/{m}/{y}</a> ' for y, m, d in (before, after)
        )
        + "</main>"
    )
