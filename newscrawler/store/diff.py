"""What changed between two versions of an article. Pure."""

from __future__ import annotations

import difflib

from newscrawler.items import COMPARED, Article


def changed_fields(old: Article, new: Article) -> list[str]:
    return [name for name in COMPARED if getattr(old, name) != getattr(new, name)]


def lines(old: Article, new: Article) -> list[str]:
    """A unified diff, paragraph by paragraph; other fields as one line each."""
    found = []
    for name in changed_fields(old, new):
        if name == "content":
            before, after = old.content.split("\n\n"), new.content.split("\n\n")
            found += list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
        else:
            found += [f"-{name}: {getattr(old, name)}", f"+{name}: {getattr(new, name)}"]
    return found
