"""Second addresses of a site's articles: by which rule an address leads to the article's own one.
Pure.

Learned from articles that were stored already: their pages named the other address as canonical and
had its text (newscrawler.store.canonical_duplicates). A rule is believed when three addresses
followed it and no article was at home at one that it would change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit
from zlib import crc32

from newscrawler.discovery.articles import names_part

#: Addresses that must have followed a rule.
ENOUGH = 3
#: One address in so many is asked for all the same, so that a rule that holds no more is found out.
STILL_ASKED = 50
#: What is put at the end of a path, or before it: a word, no number.
_PIECE = re.compile(r"[/.][a-z][a-z-]{0,11}/?")


def rule_of(second: str, original: str) -> str | None:
    """``query box``: the parameter is left off; ``end /amp``, ``front /amp``: that piece of the
    path is. None: the two differ in another way."""
    one, other = urlsplit(second), urlsplit(original)
    if (one.scheme, one.netloc) != (other.scheme, other.netloc):
        return None
    if one.path == other.path:
        extra = set(one.query.split("&")) - set(other.query.split("&"))
        name = next(iter(extra)).partition("=")[0] if len(extra) == 1 else ""
        # A long article may be in parts, of which the first has its text at two addresses.
        rule = f"query {name}" if name and not names_part(name) else None
    else:
        stem = other.path.rstrip("/")
        end, front = one.path.removeprefix(stem), one.path.removesuffix(other.path)
        if one.path.startswith(stem) and _PIECE.fullmatch(end):
            rule = f"end {end}"
        elif one.path.endswith(other.path) and _PIECE.fullmatch(front):
            rule = f"front {front}"
        else:
            rule = None
    return rule if rule and applied(rule, second) == original else None


def applied(rule: str, url: str) -> str | None:
    """The address that the rule makes of another; None where it says nothing of it."""
    kind, _, piece = rule.partition(" ")
    parts = urlsplit(url)
    path, query = parts.path, parts.query
    if kind == "query":
        kept = [pair for pair in query.split("&") if pair.partition("=")[0] != piece]
        query = "&".join(kept)
    elif kind == "end" and path.endswith(piece) and len(path) > len(piece):
        path = path.removesuffix(piece)
    elif kind == "front" and path.startswith(piece + "/"):
        path = path.removeprefix(piece)
    if (path, query) == (parts.path, parts.query):
        return None
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


def original(url: str, second: Mapping[str, int], own: Mapping[str, int]) -> str | None:
    """The article's own address, by the rules of its site. ``second``, ``own``: rule -> addresses
    that followed it, and that did not."""
    if not crc32(url.encode()) % STILL_ASKED:
        return None
    for rule, count in second.items():
        if count >= ENOUGH and not own.get(rule) and (found := applied(rule, url)) is not None:
            return found
    return None
