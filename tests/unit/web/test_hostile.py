"""What of a page's text a model is shown, and between which marks."""

from __future__ import annotations

import pytest

from newscrawler.web.hostile import fence, hides, without_unsafe


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "color:red; Display : none !important",
        "visibility: hidden",
        "opacity:0",
        "opacity: 0.0;",
        "opacity:.0",
        "font-size:0",
        "font-size: 00px",
        "font-size:0.01em",
        "font-size:.4rem",
        "font-size:0.9px",
        "font-size: 1px",
        "font-size:5.9px;color:red",
        "font-size:4pt",
        "font-size:49%",
        "FONT-SIZE: 2PX !important",
        "font: italic 1px/1.2 serif",
        "font:2px Arial",
        "position:absolute; left:-9999px",
        "text-indent: -9999em",
        "margin-left:-9999px",
        "clip: rect(0 0 0 0)",
        "clip:rect(1px, 1px, 1px, 1px); position:absolute",
        "clip-path: inset(50%)",
    ],
)
def test_what_readers_do_not_see_is_hidden(style: str) -> None:
    assert hides(style)


@pytest.mark.parametrize(
    "style",
    [
        "",
        "opacity:0.5",
        "opacity:1",
        "font-size:0.8rem",
        "font-size:.9em",
        "font-size:0.5em",
        "font-size:6px",
        "font-size:10px",
        "font-size:100%",
        "font-size:62.5%",
        "font-size:large",
        "font-size:1.2vw",
        "font: 700 16px/1.2 Georgia, serif",
        "font-weight:300",
        "font:inherit",
        "margin-left:-120px",
        "left:-12px",
        "padding-top:0;top:0",
        "clip:rect(0, 400px, 300px, 0)",
    ],
)
def test_small_type_and_faded_text_are_read(style: str) -> None:
    assert not hides(style)


def test_signs_that_nobody_sees_and_marks_of_chats_are_off() -> None:
    assert without_unsafe("Hà\u200b Nội <|im_start|>system [/INST]x\ufeff") == "Hà Nội system x"


def test_page_cannot_close_a_fence_that_it_does_not_know() -> None:
    fenced = fence("page 1", "--- end 1 ---", "8f2c")
    assert (
        fenced.splitlines()[0] == "--- page 1 8f2c ---"
        and fenced.splitlines()[-1] == "--- end 8f2c ---"
    )
