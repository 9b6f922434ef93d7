"""Article markup of the simulated sites, as data: which element holds what, by CSS path.

A path such as ``div.post-content div[itemprop=articleBody]`` is both the HTML that is written
(:func:`element`) and the selector that finds it, so the generated selector sets cannot disagree
with the pages. Class names are facts about public templates; texts and layout are our own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

_COMPOUND = re.compile(r"^([a-z0-9]+)?((?:[#.][\w-]+|\[[^\]]+\])*)$")
_PIECE = re.compile(r"#([\w-]+)|\.([\w-]+)|\[([\w:-]+)=\"?([^\"\]]*)\"?\]")


def element(path: str, extra: str = "") -> tuple[str, str]:
    """(opening, closing) tags of a CSS path; ``extra`` attributes go on the innermost element."""
    steps = _split(path)
    opening, closing = "", ""
    for i, step in enumerate(steps):
        match = _COMPOUND.match(step)
        if not match:
            raise ValueError(f"markup path not understood: {step!r} in {path!r}")
        tag = match[1] or "div"
        classes, attrs = [], ""
        for ident, cls, name, value in _PIECE.findall(match[2]):
            if ident:
                attrs += f' id="{ident}"'
            elif cls:
                classes.append(cls)
            else:
                attrs += f' {name}="{value}"'
        if classes:
            attrs = f' class="{" ".join(classes)}"' + attrs
        if i == len(steps) - 1 and extra:
            attrs += " " + extra
        opening += f"<{tag}{attrs}>"
        closing = f"</{tag}>" + closing
    return opening, closing


def _split(path: str) -> list[str]:
    return re.findall(r"(?:\[[^\]]*\]|[^\s\[])+", path)


@dataclass(frozen=True)
class Markup:
    """How one template writes an article page. Paths are CSS; see the module's head."""

    title: str = "h1.detail-title"
    sapo: str = "h2.detail-sapo"
    body: str = "div.detail-content"
    date: str = "div.detail-time"
    author: str = ""  # path of the author box; "" = no box
    tail_author: str = ""  # path of a last paragraph of the body that holds the writer
    para: str = "p"
    subhead: str = "h3"
    wrap: str = "div.main-content article"
    date_form: str = "plain"  # dates.VISIBLE
    date_attr: str = ""  # datetime | title | data-time: machine date on the visible element
    date_prefix: str = ""  # words in front, such as "Cập nhật: "
    updated: bool = False  # a second visible date, "Cập nhật …", beside the first
    bylines: tuple[str, ...] = ("name",)  # language.BYLINES, drawn per article
    avatar: bool = False  # author box is letter + name + time
    sapo_in_body: bool = False
    sapo_repeated: bool = False  # the lead stands again as the first paragraph
    sapo_prefix: str = ""
    br: bool = False  # one <p> with <br><br> between the paragraphs
    wrapped: bool = False  # hard line breaks inside sentences
    caption: str = "figcaption"
    related: str = "div.related-news"  # box of links inside the body
    inline_related: str = ""  # one-line link paragraph inside the body
    extra_boxes: tuple[str, ...] = ()  # promo or game boxes inside the body
    comments: bool = False  # HTML comments with text and dates inside the body
    tail: tuple[str, ...] = ()  # lines after the text, inside the body
    end_mark: str = ""  # "./." after the last sentence
    source: str = ""  # path of a source line inside the body
    jsonld: str = ""  # "" | person | org | empty | list | graph | broken | escaped | headline
    metas: tuple[str, ...] = ()  # og, og-time, og-time-naive, og-time-ms, pubdate, cms-date, itemprop, writer, facebook
    author_meta: bool = True  # meta[name=author] = the site's own name
    refresh: bool = False  # <meta http-equiv=refresh content=1800>
    exclude: tuple[str, ...] = ()  # what a selector set drops inside the body, beside caption and boxes

    @property
    def excludes(self) -> list[str]:
        found = ["figure", "figcaption", "script", "style", _last(self.related), _last(self.caption)]
        found += [_last(p) for p in (self.inline_related, *self.extra_boxes, self.source, self.tail_author) if p]
        found += self.exclude
        return list(dict.fromkeys(found))


def _last(path: str) -> str:
    """The first compound of a path: dropping it drops what is inside."""
    return _split(path)[0]


VC: dict[str, Any] = {
    "title": "h1.detail-title[data-role=title]",
    "sapo": "h2.detail-sapo[data-role=sapo]",
    "body": "div.detail-content.afcbc-body[data-role=content]",
    "date": "div.detail-time div[data-role=publishdate]",
    "author": "div.author-info p.name[data-role=author]",
    "caption": "div.PhotoCMS_Caption",
    "related": "div.VCSortableInPreviewMode[type=RelatedNewsBox]",
    "inline_related": "div.VCSortableInPreviewMode[type=RelatedOneNews]",
    "extra_boxes": ("div.kbwscwl-relatedbox",),
    "wrap": "div.detail__main div.detail__cmain",
}
MC: dict[str, Any] = {
    "title": "h1.article__title.cms-title",
    "sapo": "div.article__sapo.cms-desc",
    "body": "div.article__body.zce-content-body.cms-body[itemprop=articleBody]",
    "date": "div.article__meta time.time",
    "date_attr": "datetime",
    "author": "div.article__author span.name.cms-author",
    "caption": "figcaption.caption",
    "related": "div.article__related",
    "inline_related": "a.cms-relate",
    "extra_boxes": ("div.ads_middle",),
    "wrap": "div.main-col article.article",
}


def vc(**changes: Any) -> Markup:
    return Markup(**{**VC, **changes})


def mc(**changes: Any) -> Markup:
    return Markup(**{**MC, **changes})


_MIX = ("name", "name", "two-dash", "two-comma", "pv")
MARKUPS: dict[str, Markup] = {
    "vnexpress.net": Markup(
        title="h1.title-detail",
        sapo="p.description",
        body="article.fck_detail",
        date="span.date",
        date_form="vnexpress",
        tail_author="p.Normal[style=text-align:right] strong",
        para="p.Normal",
        subhead="p.Normal strong",
        caption="figcaption p.Image",
        related="div[data-component-type=tin_xemthem]",
        inline_related="span#article-end",
        wrap="section.section.page-detail div.sidebar-1",
        jsonld="org",
        metas=("og", "pubdate", "noarchive"),
        bylines=("name", "two-dash", "theo-after", "none"),
        tail=(">> Xem thêm: {title}",),
    ),
    "dantri.com.vn": Markup(
        title="h1.title-page.detail",
        sapo="h2.singular-sapo",
        body="div.singular-content",
        date="time.author-time",
        date_form="vietnamnet",
        date_attr="datetime",
        author="div.author-name b",
        sapo_prefix="(Dân trí) - ",
        extra_boxes=("div.ad-container", "div.gui-check-parent"),
        related="div.article-related",
        wrap="main article.singular-container",
        jsonld="person",
        metas=("og", "facebook"),
        bylines=("name", "name", "tong-hop", "theo-after"),
    ),
    "tuoitre.vn": vc(
        sapo="h2.detail-sapo[data-role=sapo]",
        author="div.detail-author div.name",
        date="div.detail-time",
        date_form="gmt7",
        sapo_prefix="TTO - ",
        comments=True,
        metas=("og", "og-time"),
        bylines=_MIX,
        extra_boxes=("div.VCObjectBoxRelatedNewsItemSapo",),
    ),
    "thanhnien.vn": vc(
        author="div.author-info a.name",
        jsonld="headline",
        metas=("og", "og-time", "cms-date", "writer"),
        refresh=True,
        extra_boxes=("div.display-ads",),
        bylines=("name", "two-ndash", "name"),
    ),
    "vietnamnet.vn": Markup(
        title="h1.content-detail-title",
        sapo="h2.content-detail-sapo",
        body="div#maincontent.maincontent.main-content",
        date="div.bread-crumb-detail__time",
        date_form="vietnamnet",
        related="div.article-relate",
        inline_related="div.inner-article",
        author="div.article-detail-author p.name",
        bylines=("name", "two-comma", "two-amp"),
        extra_boxes=("div.ck-cms-insert-neww-group",),
        jsonld="list",
        metas=("og", "facebook"),
        tail=(">> {title}",),
    ),
    "tienphong.vn": mc(
        sapo_prefix="TPO - ",
        caption="table.picture td.caption",
        metas=("og", "og-time"),
        bylines=("name", "two-dash", "tong-hop"),
    ),
    "laodong.vn": Markup(
        title="h1.title",
        sapo="div.chappeau",
        body="div.art-body",
        date="span.time",
        date_form="laodong",
        author="div.art-author span",
        related="div.related-news",
        metas=("og",),
        bylines=("name", "nhom-pv"),
    ),
    "nld.com.vn": vc(
        date="div.detail-time time[data-role=publishdate]",
        date_attr="datetime",
        date_form="gmt7",
        sapo_prefix="(NLĐO) - ",
        metas=("og",),
        bylines=("name", "two-and", "theo"),
    ),
    "vtv.vn": vc(
        title="h1.title_detail",
        sapo="h2.sapo",
        body="div.ta-justify",
        author="p.author",
        date="span.time",
        date_form="plain",
        sapo_prefix="VTV.vn - ",
        metas=("og",),
        bylines=("name", "bbt", "none"),
    ),
    "vov.vn": Markup(
        title="h1.article-title",
        sapo="div.row.article-summary div.col h2",
        body="div.article-content div.text-long",
        date="div.article-date div.col-md-4.mb-2",
        date_form="vov",
        author="div.article-author a",
        sapo_prefix="VOV.VN - ",
        related="div.relate-container",
        inline_related="article.story",
        metas=("og", "og-time"),
        bylines=("slash-vov", "slash-vov", "theo-after"),
        wrap="div.region-content article.node--type-article",
    ),
    "znews.vn": Markup(
        title="h1.the-article-title",
        sapo="p.the-article-summary",
        body="div.the-article-body",
        date="ul.the-article-meta li.the-article-publish",
        date_form="time-first",
        author="div.the-article-credit p.author",
        caption="table.picture td.pCaption.caption",
        related="div#innerarticle",
        extra_boxes=("div.notebox",),
        jsonld="org",
        metas=("og", "og-time-ms"),
        refresh=True,
        bylines=("name", "two-dash", "name"),
    ),
    "kenh14.vn": vc(
        title="h1.kbwc-title",
        sapo="h2.knc-sapo",
        author="span.kbwcm-author",
        date="span.kbwcm-time",
        date_attr="title",
        date_form="time-first",
        metas=("og", "og-time-naive"),
        bylines=("name", "theo", "name"),
    ),
    "24h.com.vn": Markup(
        title="h1#article_title",
        sapo="h2#article_sapo",
        body="article.cate-24h-foot-arti-deta-info",
        date="time.cate-24h-foot-arti-deta-cre-post",
        date_form="no-zero",
        author="div.nguontin span",
        related="div.bv-lq",
        inline_related="div.baiviet-bailienquan",
        extra_boxes=("div.box-game", "div.tuht_all"),
        jsonld="video-first",
        metas=("og",),
        bylines=("theo-after", "name"),
        tail=("Nguồn: {site}",),
    ),
    "cafef.vn": vc(
        title="h1.title[itemprop=headline]",
        sapo="p.sapo[itemprop=description]",
        author="p.author",
        date="span.pdate",
        date_form="cafef",
        extra_boxes=("div.chisochungkhoan", "div.tindnd"),
        metas=("og",),
        bylines=("name", "theo", "two-comma"),
    ),
    "cafebiz.vn": vc(
        title="h1.title",
        sapo="h2.sapo",
        author="p.detail-author",
        date="div.timeandcatdetail span.time",
        date_form="time-first",
        jsonld="escaped",
        metas=("og", "og-time-naive", "writer"),
        bylines=("name", "theo"),
    ),
    "soha.vn": vc(
        title="h1.news-title",
        sapo="h2.news-sapo",
        author="p.news-author",
        date="time.op-published",
        date_attr="datetime",
        date_form="short-day",
        metas=("og",),
        bylines=("name", "theo", "none"),
    ),
    "vietnamplus.vn": mc(
        br=True,
        end_mark="./.",
        source="div.article__source",
        jsonld="empty",
        metas=("og", "og-time", "modified"),
        refresh=True,
        bylines=("name", "slash-ttxvn", "slash-agency"),
    ),
    "nhandan.vn": mc(
        date_form="nhandan",
        sapo_prefix="NDO - ",
        author="div.article__author p.name",
        metas=("og",),
        bylines=("name", "name", "slash-ttxvn"),
    ),
    "hanoimoi.vn": Markup(
        title="h1.sc-longform-header-title",
        sapo="p.sc-longform-header-sapo",
        body="div.b-maincontent",
        date="span.format_time",
        date_form="short-day",
        author="span.sc-longform-header-author",
        metas=("og", "og-time"),
        jsonld="person",
        tail=("(*) Không sao chép dưới mọi hình thức khi chưa có sự đồng ý của {site}",),
        bylines=("name", "two-dash", "bbt"),
    ),
    "sggp.org.vn": mc(metas=("og", "og-time"), updated=True, bylines=("name", "tong-hop")),
    "plo.vn": mc(
        title="h1.article__title",
        author="div.article__author span.author",
        sapo_prefix="(PLO)- ",
        date_form="plain",
        metas=("og",),
        bylines=("name", "two-and", "two-comma"),
    ),
    "cand.com.vn": Markup(
        title="h1.box-title-detail",
        sapo="div.box-des-detail p",
        body="div.detail-content-body",
        date="div.box-date",
        date_form="time-first-bar",
        author="div.box-author strong",
        related="div.box-widget-loop",
        extra_boxes=("div.videoEmbed",),
        metas=("og",),
        bylines=("trailing-dash", "name"),
    ),
    "vtcnews.vn": Markup(
        title="header.mb5 h1",
        sapo="h2.font18.bold.inline-nb",
        body="div.edittor-content",
        date="span.time-update",
        date_form="vtcnews",
        author="div.author-make span",
        sapo_prefix="(VTC News) - ",
        caption="figure.expNoEdit figcaption",
        related="div.expNoEdit",
        jsonld="person",
        metas=("og", "pubdate"),
        tail=(">>> Đọc thêm: {title}",),
        bylines=("name", "two-comma"),
    ),
    "danviet.vn": vc(
        sapo="div.sapo[data-role=sapo]",
        body="div#explus-editor",
        author="span.anots",
        date="span[data-role=publishdate]",
        date_form="caps-day",
        metas=("og",),
        bylines=("name", "slash-ttxvn"),
    ),
    "baochinhphu.vn": vc(
        author="",
        tail_author="p[style=text-align:right] b",
        date="div.detail-time",
        sapo_prefix="(Chinhphu.vn) - ",
        comments=True,
        metas=("og",),
        bylines=("thuc-hien", "name", "none"),
    ),
    "qdnd.vn": Markup(
        title="h1.post-title",
        sapo="div.post-summary",
        body="div.post-content div[itemprop=articleBody]",
        date="span.post-subinfo span",
        date_form="qdnd",
        tail_author="p.tacgia strong",
        related="div.related-post",
        metas=("og",),
        bylines=("name", "tong-hop", "none"),
    ),
    "giaoducthoidai.vn": mc(
        date_form="time-first-bar", sapo_prefix="GD&TĐ - ", metas=("og",), bylines=("name", "bai-anh")
    ),
    "suckhoedoisong.vn": vc(
        author="div.detail-author[data-role=author]",
        date="span[data-role=publishdate]",
        date_attr="title",
        sapo_prefix="SKĐS - ",
        metas=("og",),
        bylines=("name", "tac-gia", "theo-after"),
        tail=("Mời bạn xem thêm video:", "Ý kiến của bạn"),
    ),
    "infonet.vietnamnet.vn": Markup(
        title="div.details-wrap h1.headline-title",
        sapo="div.sapo",
        body="div#main_detail",
        date="div.meta time",
        date_form="thang",
        author="div.meta span.name",
        caption="table.picture td.caption",
        metas=("og",),
        bylines=("name", "theo-after"),
    ),
    "baogiaothong.vn": vc(
        metas=("og", "og-time"), date_form="dang-luc", author="div.detail-author a.name", bylines=("name", "two-dash")
    ),
    "baodautu.vn": Markup(
        title="div.title-detail",
        sapo="div.sapo_detail",
        body="div#content_detail_news",
        date="span.post-time",
        date_form="dash",
        author="a.author",
        sapo_prefix="(ĐTCK) ",
        author_meta=False,
        bylines=("name", "two-dash", "pv"),
    ),
    "vneconomy.vn": Markup(
        title="h1.article-header__title",
        sapo="h4.article-content__lead",
        body="main#article-editor.article-editor",
        date="time.article-meta__time",
        date_form="time-comma",
        author="div.article-meta__author",
        avatar=True,
        sapo_in_body=True,
        sapo_repeated=True,
        wrapped=True,
        extra_boxes=("div.container-adv",),
        metas=("og",),
        bylines=("name", "none"),
    ),
    "baovephapluat.vn": Markup(
        title="h1.post-title",
        sapo="div.post-summary h2",
        body="div.noidung",
        date="div.lbPublishedDate",
        date_form="dang-luc",
        author="div.tacgia",
        metas=("og",),
        bylines=("name", "two-ndash"),
    ),
}
#: What a redesign turns a template into: every class name another one.
REDESIGN = replace(
    Markup(),
    title="h1.nx-headline",
    sapo="p.nx-standfirst",
    body="section.nx-story div.nx-story__text",
    date="span.nx-when",
    author="span.nx-who",
    wrap="div.nx-page article.nx-article",
    related="aside.nx-more",
    caption="figcaption.nx-cap",
    date_form="plain",
    metas=("og",),
)
