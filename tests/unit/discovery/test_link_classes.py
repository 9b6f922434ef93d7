"""What a site teaches of its addresses: shapes, counts, and what follows for a link."""

from __future__ import annotations

import pytest

from newscrawler.discovery.link_classes import LinkClass, SiteClasses, Source, shapes, unpaged

ARTICLE, LIST, OTHER = LinkClass


@pytest.mark.parametrize(
    ("path", "fine", "coarse"),
    [
        ("/the-thao/doi-tuyen-thang-lon-toi-qua-4954123.html", "/=the-thao/E-#7.html", "/w/w-##.html"),
        ("/the-thao/doi-tuyen-thang-lon-toi-nam-2026.html", "/=the-thao/E.html", "/w/l.html"),
        ("/tin-moi-post4954123.tpo", "/b-post#7.tpo", "/w-post##.tpo"),
        ("/2026/11/22/mot-hai-ba-bon-nam", "/Y/#2/#2/d", "/Y/#/#/l"),
        ("/bai/4800068", "/=bai/#7", "/w/##"),
        ("/the-thao-p2", "/b-p#1", "/s-p#"),
        ("/gioi-thieu", "/b", "/s"),
        ("/", "/", "/"),
    ],
)  # fmt: skip
def test_an_address_has_a_shape(path: str, fine: str, coarse: str) -> None:
    found = shapes(path)
    assert (found[0], found[-1]) == (fine, coarse)
    assert shapes(path, "page=2&a=b")[0] == f"{fine}?a=w&page=#"


def test_the_later_pages_of_a_list_are_told_by_its_address() -> None:
    for path in ("/the-thao-p2", "/the-thao/trang-3", "/the-thao/page/12", "/the-thaop2"):
        assert unpaged(path) == "/the-thao", path
    assert unpaged("/the-thao", "page=2&x=1") == "/the-thao?x=1"
    assert unpaged("/bai-so-4954123.html") == "/bai-so-4954123.html"


def taught(*rows: tuple[Source, LinkClass, str, int], menu: tuple[str, ...] = ()) -> SiteClasses:
    classes = SiteClasses(menu=menu)
    for source, class_, path, count in rows:
        classes.add(source, class_, shapes(path)[0], count)
    return classes


def class_of(classes: SiteClasses, path: str) -> LinkClass | None:
    verdict = classes.judge(path)
    return None if verdict is None else verdict.class_


def test_pages_teach_what_others_of_their_shape_are() -> None:
    classes = taught(
        (Source.PAGE, ARTICLE, "/bai/4800001", 3), (Source.PAGE, LIST, "/t/bong-da", 2)
    )
    assert class_of(classes, "/bai/4800002") is ARTICLE
    assert class_of(classes, "/t/gia-vang") is LIST
    assert class_of(classes, "/t/gia") is LIST, "with another number of words"
    assert class_of(classes, "/lien-he") is None, "nothing like it was read"
    verdict = classes.judge("/bai/4800002")
    assert verdict is not None and "page 3 article" in verdict.why


def test_one_page_teaches_nothing_and_a_mixture_neither() -> None:
    assert class_of(taught((Source.PAGE, LIST, "/t/bong-da", 1)), "/t/gia-vang") is None
    mixed = taught((Source.PAGE, LIST, "/t/bong-da", 5), (Source.PAGE, ARTICLE, "/t/a-b", 5))
    assert class_of(mixed, "/t/gia-vang") is None


def test_headlines_and_feeds_teach_before_a_page_was_read() -> None:
    path = "/a/123456"
    assert class_of(taught((Source.TEASER, ARTICLE, path, 5)), "/a/123457") is None
    assert class_of(taught((Source.TEASER, ARTICLE, path, 9)), "/a/123457") is ARTICLE
    assert class_of(taught((Source.NAMED, ARTICLE, path, 2)), "/a/123457") is ARTICLE


def test_what_the_menu_names_is_a_list_and_so_are_its_later_pages() -> None:
    path = "/tin-tuc-the-thao-hom-nay.html"
    article = "/tin-tuc-the-thao-ngay-mai-lai.html"
    classes = taught((Source.PAGE, ARTICLE, article, 40), menu=(path,))
    assert class_of(classes, path) is LIST
    assert class_of(classes, "/tin-tuc-the-thao-hom-nay-p2.html") is LIST
    assert class_of(classes, article) is ARTICLE


def test_a_menu_of_short_names_does_not_make_lists_of_all_short_names() -> None:
    menu = (Source.MENU, LIST, "/the-thao", 5), (Source.MENU, LIST, "/category/the-thao", 5)
    classes = taught(*menu)
    assert class_of(classes, "/lien-he") is None
    assert class_of(classes, "/category/giai-tri") is LIST


def test_a_page_that_is_not_what_its_shape_says_is_known_by_itself() -> None:
    classes = taught((Source.PAGE, ARTICLE, "/mot-hai-ba-bon-nam-sau", 20))
    classes.know(OTHER, "/dieu-khoan-su-dung-cua-toa-soan")
    assert class_of(classes, "/dieu-khoan-su-dung-cua-toa-soan") is OTHER
    assert class_of(classes, "/dieu-khoan-khac-cua-mot-to-bao") is ARTICLE


def test_a_folder_of_tags_is_not_known_by_those_of_articles() -> None:
    classes = taught((Source.PAGE, ARTICLE, "/the-thao/mot-hai-ba-bon-nam", 20))
    assert class_of(classes, "/giai-tri/sau-bay-tam-chin-muoi") is ARTICLE
    assert class_of(classes, "/chu-de/sau-bay-tam-chin-muoi") is None


def test_counts_of_another_version_are_passed_over() -> None:
    classes = SiteClasses({"page article /=bai/#7": 3, "page": 1, "x y z": 2, "known list /t": 1})
    assert class_of(classes, "/bai/4800002") is ARTICLE and class_of(classes, "/t") is LIST
