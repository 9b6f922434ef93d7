"""Short lines beside a picture between the paragraphs: captions are left out, what somebody says and
what is set as text stays."""

from __future__ import annotations

import pytest

from newscrawler.extraction import generic
from newscrawler.extraction.document import Document
from tests.unit.extraction.story import HEAD, paragraphs

CAPTION = "The new bridge on the day of its opening"
SHAPES = [
    "<div class=q><img src=/i/a.jpg><div class=t>{}</div></div>",
    "<div><img src=/i/a.jpg><div>{}</div></div>",
    "<section><img src=/i/a.jpg><p>{}</p></section>",
    "<div><a href=/i/a.jpg><img src=/i/a.jpg></a><span>{}</span></div>",
]


def text(box: str) -> list[str]:
    page = (
        f"<html lang=vi><head><title>{HEAD}</title></head><body><article><h1>{HEAD}</h1>"
        f"{paragraphs(12)}{box}{paragraphs(12, 12)}</article></body></html>"
    )
    said = generic.content(Document(page.encode(), "https://www.example.com/a.html"), HEAD).value
    return (said or "").split("\n\n")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "said",
    [
        "“Chúng tôi sẽ kiện.” – bà Lan, chủ tịch công ty, nói với phóng viên.",
        "Ông Nam nói: tôi không đồng ý với quyết định này của thành phố.",
        "„Wir werden gegen diesen Beschluss des Rates klagen“, sagt Max Muster vom Verein der Anwohner.",
        "« Nous allons porter plainte contre la ville », dit Jeanne Roe, qui habite près du pont.",
        "We shall go to court over this decision of the council, and we shall win there. – Jane Roe, who lives there.",
        "— Nous allons porter plainte contre la ville, et nous irons devant tous les tribunaux.",
    ],
)
def test_what_somebody_says_beside_a_portrait_stays(shape: str, said: str) -> None:
    assert said in text(shape.format(said))


def test_a_paragraph_with_a_picture_in_its_line_stays() -> None:
    said = "Câu kết luận ngắn của bài viết, nhà nước sẽ trả tiền."
    assert said in text(f"<div class=row><p><img src=/i/a.jpg>{said}</p></div>")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "said",
    [
        CAPTION,
        f"{CAPTION}.",
        f"{CAPTION}. Photo: Jane Doe",
        f"“Nothing like it was ever built here”: {CAPTION}. Photo: Jane Doe",
        f"{CAPTION}. Paris - 2 mars 2019 © E.B",
        "‘Sesame Street’ on the day of its opening",
        "Ảnh: một cây cầu mới ở thành phố.",
    ],
)
def test_a_caption_stays_out(shape: str, said: str) -> None:
    assert said not in text(shape.format(said))


def test_a_caption_below_the_picture_of_its_paragraph_stays_out() -> None:
    said = f"{CAPTION}."
    assert said not in text(f"<div><p><img src=/i/a.jpg><br>{said}</p></div>")
