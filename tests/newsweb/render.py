"""Article pages and the frame of all pages: HTML in the shapes of Markup. Texts
are escaped here."""

from __future__ import annotations

import json
import random
from html import escape
from typing import TYPE_CHECKING

from tests.newsweb import dates
from tests.newsweb.language import rng_for, slugify
from tests.newsweb.markup import Markup, element
from tests.newsweb.unknown import ABOUT, CONTACT, TAG

if TYPE_CHECKING:
    from tests.newsweb.world import Story, Version, WebSite

_GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def wrap(path: str, inner: str, extra: str = "") -> str:
    opening, closing = element(path, extra)
    return opening + inner + closing


class Frame:
    """Head, navigation, sidebars and footer of one site. The bulky parts are made once."""

    def __init__(self, site: WebSite) -> None:
        rng = rng_for(site.world.seed, "frame", site.key)
        self.site = site
        prefix = "".join(rng.choice("bcdghklmnt") for _ in range(3))
        # Real pages are 60-500 kB of which a few are text: inline style, state and
        # widgets are the rest.
        self.css = "".join(
            f".{prefix}-{word}-{i}{{margin:{rng.randrange(40)}px;padding:{rng.randrange(40)}px;color:#{rng.randrange(1 << 24):06x};"
            f"font:{rng.randrange(10, 30)}px/1.5 Arial,sans-serif;display:{rng.choice(('block', 'flex', 'none'))}}}\n"
            for i, word in enumerate(
                rng.choices(
                    ("box", "item", "title", "thumb", "meta", "btn", "nav"),
                    k=rng.randrange(90, 330),
                )
            )
        )
        self.state = json.dumps(
            {
                f"{prefix}{i}": {
                    "id": rng.getrandbits(40),
                    "slot": f"adv-{i}",
                    "sizes": [[300, 250], [336, 280]],
                    "lazy": True,
                    "hash": f"{rng.getrandbits(128):032x}",
                }
                for i in range(rng.randrange(90, 260))
            }
        )
        nav = "".join(
            f'<li class="{prefix}-nav"><a href="{path}" title="{escape(label)}">{escape(label)}</a></li>'
            for path, label in site.sections
        )
        if site.unknown is not None:
            nav += f'<li><a href="{TAG}">Giá vàng SJC</a></li><li><a href="{ABOUT}">Giới thiệu</a></li>'
        self.header = (
            f'<header class="{prefix}-header"><a class="logo" href="{site.home}">{escape(site.name)}</a>'
            f'<form action="/tim-kiem" method="get"><input name="q" placeholder="Tìm kiếm"></form>'
            f'<nav class="main-nav"><ul>{nav}<li><a href="/dang-nhap" rel="nofollow">Đăng nhập</a></li></ul></nav></header>'
        )
        menu = "".join(
            f'<li><a href="{path}">{escape(label)}</a></li>' for path, label in site.sections
        )
        widgets = "".join(
            f'<div class="{prefix}-w w{i}" data-widget="{rng.getrandbits(48):x}"><span class="icon"></span><i></i></div>'
            for i in range(rng.randrange(80, 300))
        )
        self.footer = (
            f'<footer class="{prefix}-footer"><ul class="site-map">{menu}</ul><p>© 2026 {escape(site.name)}. Giấy phép số '
            f"{rng.randrange(100, 999)}/GP-BTTTT. Tổng biên tập: {escape(site.world.language.person(rng))}</p>"
            f'<a href="{CONTACT}">Liên hệ</a> <a href="/rss.html">RSS</a> <a href="mailto:toasoan@example.vn">Email</a> '
            f'<a href="javascript:void(0)">Lên đầu trang</a></footer><div hidden>{widgets}</div>'
            f"<script>window.__ADS__={self.state};</script>"
        )
        self.prefix = prefix
        self.topics = rng.sample(site.world.language.forms[200:4000], k=8)

    def page(self, head: str, body: str) -> str:
        return (
            '<!DOCTYPE html>\n<html lang="vi"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"{head}<style>{self.css}</style><script>var _gaq=[];function lazy(n){{return n}}</script></head>"
            f"<body>{self.header}{body}{self.footer}</body></html>"
        )

    def sidebar(self, stories: list[Story], heading: str) -> str:
        items = "".join(
            f'<li class="{self.prefix}-item"><a href="{s.path}" title="{escape(s.title)}"><img src="{_GIF}" '
            f'data-src="/anh/{s.number}.jpg" alt=""></a><a href="{s.path}">{escape(s.title)}</a></li>'
            for s in stories
        )
        return f'<aside class="{self.prefix}-side"><h3 class="box-heading">{heading}</h3><ul>{items}</ul></aside>'


def article_page(
    story: Story, version: Version, frame: Frame, now: float, side: list[Story], *, path: str = ""
) -> str:
    """The page of ``story`` at ``now``. ``side`` are the stories that it may link to."""
    site, m = story.site, story.site.markup(now)
    rng = rng_for(site.world.seed, "page", site.key, story.number)
    older = [s for s in side if s is not story]
    picks = rng.sample(older, k=min(len(older), 6)) if older else []
    label = site.sections[story.section]
    crumbs = f'<div class="breadcrumb"><a href="{site.home}">Trang chủ</a> <a href="{label[0]}">{escape(label[1])}</a></div>'
    parts = [
        crumbs,
        wrap(m.title, escape(version.title, quote=False)),
        _dateline(story, version, m),
    ]
    if m.author and not m.avatar and rng.random() < 0.5:
        parts.append(_author(story, m))
        author_below = ""
    else:
        author_below = _author(story, m)
    sapo = wrap(m.sapo, escape(m.sapo_prefix + version.sapo, quote=False))
    body = _body(story, version, m, rng, picks)
    parts += [wrap(m.body, sapo + body)] if m.sapo_in_body else [sapo, wrap(m.body, body)]
    parts.append(author_below)
    folder = site.unknown.topics if site.unknown is not None else "/tu-khoa/"
    tags = "".join(
        f'<a href="{folder}{slugify(t)}">{escape(t)}</a> ' for t in rng.sample(frame.topics, 3)
    )
    parts.append(f'<div class="tags-box">Từ khóa: {tags}</div>')
    below = frame.sidebar(older[:20], "Cùng chuyên mục") + frame.sidebar(older[10:40], "Đọc nhiều")
    return frame.page(_head(story, version, m, path), wrap(m.wrap, "".join(parts)) + below)


def _dateline(story: Story, version: Version, m: Markup) -> str:
    text = m.date_prefix + dates.visible(m.date_form, story.published)
    extra = ""
    if m.date_attr == "datetime":
        extra = f'datetime="{dates.iso(story.published)}"'
    elif m.date_attr == "title":
        extra = f'title="{dates.iso(story.published)}"'
    elif m.date_attr == "data-time":
        extra = f'data-time="{int(story.published)}"'
    out = wrap(m.date, escape(text), extra)
    if m.avatar:
        who = escape(story.byline.text)
        letter = f'<span class="avatar">{who[:1]}</span> <span>{who}</span> ' if who else ""
        return wrap(m.author, letter + out)
    if m.updated and version.at > story.published:
        out += f'<span class="updated">Cập nhật: {escape(dates.visible(m.date_form, version.at))}</span>'
    return out


def _author(story: Story, m: Markup) -> str:
    if not m.author or m.avatar or not story.byline.text:
        return ""
    return wrap(m.author, escape(story.byline.text, quote=False))


def _body(story: Story, version: Version, m: Markup, rng: random.Random, picks: list[Story]) -> str:
    """Paragraphs with all that stands between them on real pages. None of the rest is content."""
    words, site = story.site.world.language, story.site
    out: list[str] = []
    if m.sapo_repeated and version.blocks:
        out.append(wrap(m.para, escape(version.sapo, quote=False)))
    if m.comments:
        out.append(
            f"<!-- {escape(words.sentence(rng))} {dates.comment_date(story.published - 86400)} -->"
        )
    paragraphs = [(kind, _inline(text, site, rng)) for kind, text in version.blocks]
    if m.end_mark and paragraphs:
        paragraphs[-1] = (paragraphs[-1][0], paragraphs[-1][1] + m.end_mark)
    if m.wrapped:
        paragraphs = [(kind, text.replace(", ", ",\n    ")) for kind, text in paragraphs]
    if m.br:
        joined = "<br><br>".join(
            f"<strong>{text}</strong>" if kind == "h" else text for kind, text in paragraphs
        )
        out.append(_figure(m, words.sentence(rng), 0) + wrap(m.para, joined))
    else:
        box_at = {2: "figure", 4: "related", 6: "inline", 8: "figure", 9: "extra"}
        for i, (kind, text) in enumerate(paragraphs):
            out.append(wrap(m.subhead if kind == "h" else m.para, text))
            out.append(_box(box_at.get(i, ""), m, rng, story, picks))
    if m.source:
        out.append(wrap(m.source, '<span class="name">(TTXVN/Vietnam+)</span>'))
    if m.tail_author and story.byline.text:
        out.append(wrap(m.tail_author, escape(story.byline.text, quote=False)))
    for line in m.tail:
        title = escape(picks[0].title, quote=False) if picks else ""
        if "{title}" not in line or picks:
            link = f'<a href="{picks[0].path}">{title}</a>' if picks else ""
            text = line.format(title=link, site=escape(site.name)).replace(">>", "&gt;&gt;", 1)
            out.append(f"<p>{text}</p>")
    return "\n".join(out)


def _inline(text: str, site: WebSite, rng: random.Random) -> str:
    """Escaped text with a link, bold or italic piece in it, as editors write; the
    text stays the same."""
    words = text.split(" ")
    dice = rng.random()
    if len(words) < 8 or dice > 0.35:
        return escape(text, quote=False)
    at = rng.randrange(2, len(words) - 3)
    piece = escape(" ".join(words[at : at + 2]), quote=False)
    if dice < 0.12:
        piece = f'<a href="/chu-de/{slugify(site.name)}-{rng.randrange(5)}" class="link-inline">{piece}</a>'
    else:
        piece = f"<strong>{piece}</strong>" if dice < 0.25 else f"<em>{piece}</em>"
    return f"{escape(' '.join(words[:at]), quote=False)} {piece} {escape(' '.join(words[at + 2 :]), quote=False)}"


def _figure(m: Markup, caption: str, number: int) -> str:
    image = f'<img src="{_GIF}" data-src="/anh/lon-{number}.jpg" data-original="/anh/lon-{number}.jpg" alt="">'
    cap = escape(caption, quote=False) + " Ảnh: " + "Minh Khang"
    if m.caption.startswith("table"):
        return f'<table class="picture"><tr><td class="pic">{image}</td></tr><tr><td class="pCaption caption">{cap}</td></tr></table>'
    if m.caption.startswith("figcaption"):
        return f"<figure>{image}{wrap(m.caption, cap)}</figure>"
    if m.caption.startswith("figure"):
        opening, closing = element(m.caption)
        return opening.replace("<figcaption", image + "<figcaption", 1) + cap + closing
    return f'<figure class="VCSortableInPreviewMode" type="Photo">{image}{wrap(m.caption, cap)}</figure>'


def _box(kind: str, m: Markup, rng: random.Random, story: Story, picks: list[Story]) -> str:
    words = story.site.world.language
    if kind == "figure":
        return _figure(m, words.sentence(rng), rng.randrange(1000))
    if kind == "related" and picks:
        links = "".join(
            f'<li><a href="{s.path}" title="{escape(s.title)}">{escape(s.title, quote=False)}</a></li>'
            for s in picks[:3]
        )
        return wrap(m.related, f"<h4>Tin liên quan</h4><ul>{links}</ul>")
    if kind == "inline" and m.inline_related and len(picks) > 3:
        pick = picks[3]
        if m.inline_related.startswith("a"[:1]) and m.inline_related.split(".")[0] == "a":
            return wrap(m.inline_related, escape(pick.title, quote=False), f'href="{pick.path}"')
        return wrap(
            m.inline_related, f'<a href="{pick.path}">{escape(pick.title, quote=False)}</a>'
        )
    if kind == "extra":
        return "".join(
            wrap(path, f"<p>{escape(words.sentence(rng), quote=False)}</p>")
            for path in m.extra_boxes
        )
    return ""


def _head(story: Story, version: Version, m: Markup, path: str) -> str:
    site, out = story.site, []
    title = escape(version.title)
    out.append(f"<title>{escape(version.title, quote=False)} - {escape(site.name)}</title>")
    out.append(f'<meta name="description" content="{escape(version.sapo)}">')
    out.append(f'<link rel="canonical" href="{story.url}">')
    if site.twin_host:
        out.append(
            f'<link rel="alternate" media="only screen and (max-width: 640px)" href="{site.scheme}://{site.twin_host}{story.path}">'
        )
    if m.author_meta:
        out.append(f'<meta name="author" content="{escape(site.name)}">')
    if m.refresh:
        out.append('<meta http-equiv="refresh" content="1800">')
    robots = {"noindex": "noindex", "noarchive": "noarchive", "nofollow-page": "index, follow"}.get(
        story.special, ""
    )
    if "noarchive" in m.metas:
        robots = robots or "index,follow,noarchive"
    if robots:
        out.append(f'<meta name="robots" content="{robots}">')
    out += _metas(story, version, m, title)
    out += [
        f'<script type="application/ld+json">{text}</script>'
        for text in _json_ld(story, version, m)
    ]
    return "".join(out)


def _metas(story: Story, version: Version, m: Markup, title: str) -> list[str]:
    when, site = dates.local(story.published), story.site
    table = {
        "og": f'<meta property="og:type" content="article"><meta property="og:title" content="{title}">'
        f'<meta property="og:url" content="{story.url}"><meta property="og:site_name" content="{escape(site.name)}">'
        f'<meta property="og:description" content="{escape(version.sapo)}"><meta property="og:image" content="{site.base}/anh/lon-1.jpg">',
        "og-time": f'<meta property="article:published_time" content="{when.isoformat()}">',
        "og-time-naive": f'<meta property="article:published_time" content="{when:%Y-%m-%dT%H:%M:%S}">',
        "og-time-ms": f'<meta property="article:published_time" content="{when:%Y-%m-%dT%H:%M:%S}.000+07:00">',
        "modified": f'<meta property="article:modified_time" content="{dates.iso(version.at)}">',
        "pubdate": f'<meta name="pubdate" itemprop="datePublished" content="{when.isoformat()}">'
        f'<meta name="lastmod" itemprop="dateModified" content="{dates.iso(version.at)}">',
        "cms-date": f'<meta class="cms-date" itemprop="datePublished" content="{when.isoformat()}">',
        "itemprop": f'<meta itemprop="datePublished" content="{when.isoformat()}">',
        "writer": "".join(
            f'<meta property="article:author" content="{escape(a)}">' for a in story.byline.authors
        ),
        "facebook": f'<meta property="article:author" content="https://www.facebook.com/{slugify(site.name)}">',
        "noarchive": "",
    }
    return [table[name] for name in m.metas]


def _json_ld(story: Story, version: Version, m: Markup) -> list[str]:
    """Blocks of structured data, right and wrong ones, as the site's template has them."""
    if not m.jsonld:
        return []
    site = story.site
    people = [{"@type": "Person", "name": name} for name in story.byline.authors]
    organisation = {"@type": "Organization", "name": site.name, "url": site.base}
    headline = version.title
    if m.jsonld == "escaped":
        headline = escape(escape(headline))
    elif m.jsonld == "headline":
        headline = " ".join(version.title.split()[:6])
    data: dict[str, object] = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": headline,
        "mainEntityOfPage": {"@type": "WebPage", "@id": story.url},
        "datePublished": dates.iso(story.published),
        "dateModified": dates.iso(version.at),
        "publisher": organisation,
        "description": version.sapo,
    }
    author: object = organisation
    if m.jsonld == "empty":
        author = {"@type": "Person", "name": ""}
    elif m.jsonld == "list":
        author = people
    elif m.jsonld in ("person", "escaped", "headline", "video-first", "graph", "broken"):
        author = people[0] if len(people) == 1 else people
    if author:
        data["author"] = author
    dump = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    crumbs = json.dumps(
        {"@context": "https://schema.org", "@type": "BreadcrumbList", "itemListElement": []}
    )
    if m.jsonld == "video-first":
        video = json.dumps(
            {
                "@context": "https://schema.org",
                "@type": "VideoObject",
                "name": "Video nổi bật",
                "uploadDate": dates.iso(story.published - 86400),
            },
            ensure_ascii=False,
        )
        return [video, dump]
    if m.jsonld == "graph":
        page = {"@type": "WebPage", "@id": story.url, "datePublished": dates.iso(story.published)}
        return [
            json.dumps(
                {"@context": "https://schema.org", "@graph": [page, data]}, ensure_ascii=False
            ).replace("</", "<\\/")
        ]
    if m.jsonld == "broken":  # a comma too many
        return [dump[:-1] + ",}", crumbs]
    return [crumbs, dump]
