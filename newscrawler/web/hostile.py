"""Text of a page on its way to a model: what readers do not see is off, and what is left stands between marks. Pure."""

from __future__ import annotations

import re

# Zero-width signs and the tokens by which chat templates mark speakers: no page needs them to be understood.
_UNSAFE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|<\|[^|>]{0,40}\|>|\[/?INST\]", re.I)
# Type of less than half a size, or of less than a pixel, is not read either; 0.8rem is a caption.
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*(?:0+(?:\.0*)?|\.0+)(?![.\d])|"
    r"font-size\s*:\s*(?:(?:0+(?:\.[0-4]\d*)?|\.[0-4]\d*)(?![.\d])|0*\.\d+(?:px|pt))",
    re.I,
)


def without_unsafe(text: str) -> str:
    return _UNSAFE.sub("", text)


def hides(style: str) -> bool:
    """Whether an inline style keeps an element from being read."""
    return bool(_HIDDEN_STYLE.search(style))


def fence(label: str, text: str, nonce: str) -> str:
    """``nonce``: made anew for each question; a page cannot close a fence that it cannot guess."""
    return f"--- {label} {nonce} ---\n{text}\n--- end {nonce} ---"
