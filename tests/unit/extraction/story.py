"""A made-up story whose paragraphs are numbered."""

from __future__ import annotations

HEAD = "Council approves the new bridge across the river"


def line(number: int) -> str:
    return f"Paragraph {number} tells what the council has said about the bridge, who will pay for it and when it is to open."


def lines(count: int, first: int = 0) -> list[str]:
    return [line(number) for number in range(first, first + count)]


def paragraphs(count: int, first: int = 0) -> str:
    return "".join(f"<p>{text}</p>" for text in lines(count, first))
