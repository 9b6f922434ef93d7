"""Text of a page on its way to a model: what readers do not see is off, and what is left stands
between marks. Pure."""

from __future__ import annotations

import re

# Zero-width signs and the tokens by which chat templates mark speakers: no page needs them
# to be understood.
_UNSAFE = re.compile(
    r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|<\|[^|>]{0,40}\|>|\[/?INST\]", re.I
)
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*(?:0+(?:\.0*)?|\.0+)(?![.\d])|"
    # beside the page: -9999px
    r"(?:(?<![-\w])(?:left|top|right|bottom|text-indent)\s*:\s*-\d{3,}"
    r"|margin-(?:left|top)\s*:\s*-\d{4,})|"
    r"\bclip(?:-path)?\s*:\s*(?:rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01]"
    r"(?:px)?\s*\)|inset\((?:50|100)%)",
    re.I,
)
_SIZE = re.compile(
    r"\bfont(?:-size)?\s*+:(?:[^;]{0,300}?[\s:])?(\d++(?:\.\d*+)?+|\.\d++)(px|pt|r?em|%)?"
    r"(?=\s*(?:[;/!]|$|\s[a-z\"']))",
    re.I,
)
# Type of less than this is not read by anybody; 0.8rem is a caption, 0.6em a raised sign, 8px the
# smallest print of papers.
_LEGIBLE = {"px": 6.0, "pt": 4.5, "em": 0.5, "rem": 0.5, "%": 50.0, "": 0.5}


def without_unsafe(text: str) -> str:
    return _UNSAFE.sub("", text)


def hides(style: str) -> bool:
    """Whether an inline style keeps an element from being read: not shown, beside the page, in type
    that is too small.

    What a style sheet hides, colours on their own ground, and sizes that shrink from element to
    element are not known here: whatever a text has said to a model, its answer has to pass the gate
    (selectors) or be found on the page (texts).
    """
    if not style or _HIDDEN_STYLE.search(style):
        return bool(style)
    return any(float(size[1]) < _LEGIBLE[(size[2] or "").lower()] for size in _SIZE.finditer(style))


def fence(label: str, text: str, nonce: str) -> str:
    """``nonce``: made anew for each question; a page cannot close a fence that it cannot guess."""
    return f"--- {label} {nonce} ---\n{text}\n--- end {nonce} ---"
