"""Errors as RFC 9457 writes them: application/problem+json."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

MEDIA = "application/problem+json"


def problem(status: int, text: str) -> dict[str, Any]:
    """``detail``: one line for people; ``error`` is the same, as before there was a standard."""
    try:
        title = HTTPStatus(status).phrase
    except ValueError:
        title = "Error"
    return {
        "type": "about:blank",  # the status says what kind of problem it is
        "title": title,
        "status": status,
        "detail": text,
        "error": text,
    }


def packed(status: int, text: str) -> bytes:
    return json.dumps(problem(status, text), ensure_ascii=False).encode() + b"\n"
