"""Which parts of two texts differ, in time in proportion to their length. Pure.

difflib takes the square of it, and more: two versions of one paragraph "1 1 1 ..." of 30,000 words
keep it busy for an hour. Here the texts are cut where a part occurs once in both (the patience
difference of Bram Cohen), and difflib reads what lies between, while that is short.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

#: Parts of the one times parts of the other that difflib may read: some 20 by 20 words.
_SHORT = 40 * 40
#: How often what lies between two cuts is cut again; what is long even then is shown as replaced.
_DEPTH = 8


class Step(NamedTuple):
    """``old[a0:a1]`` became ``new[b0:b1]``; they are the same where ``is_equal``."""

    is_equal: bool
    a0: int
    a1: int
    b0: int
    b1: int


class _Range(NamedTuple):
    a0: int
    a1: int
    b0: int
    b1: int


#: Places in both, and how many parts are the same from there.
_Run = tuple[int, int, int]


def steps(old: Sequence[str], new: Sequence[str]) -> Iterator[Step]:
    """From the old to the new one, in order, without a gap."""
    a = b = 0
    for at_a, at_b, length in _joined(_equal_runs(old, new)):
        if at_a > a or at_b > b:
            yield Step(False, a, at_a, b, at_b)
        yield Step(True, at_a, at_a + length, at_b, at_b + length)
        a, b = at_a + length, at_b + length
    if a < len(old) or b < len(new):
        yield Step(False, a, len(old), b, len(new))


def _equal_runs(old: Sequence[str], new: Sequence[str]) -> list[_Run]:
    found: list[_Run] = []
    left = [(_Range(0, len(old), 0, len(new)), 0)]
    while left:
        whole, depth = left.pop()
        ends, inner = _without_equal_ends(old, new, whole)
        found += ends
        a0, a1, b0, b1 = inner
        if (a1 - a0) * (b1 - b0) <= _SHORT:
            blocks = SequenceMatcher(None, old[a0:a1], new[b0:b1], autojunk=False)
            found += [(a0 + m.a, b0 + m.b, m.size) for m in blocks.get_matching_blocks()]
        elif depth < _DEPTH and (cuts := _in_both_once(old, new, inner)):
            found += [(a, b, 1) for a, b in cuts]
            left += [(part, depth + 1) for part in _between(inner, cuts)]
    return found


def _without_equal_ends(
    old: Sequence[str], new: Sequence[str], whole: _Range
) -> tuple[list[_Run], _Range]:
    a0, a1, b0, b1 = whole
    while a0 < a1 and b0 < b1 and old[a0] == new[b0]:
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and old[a1 - 1] == new[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
    runs = [(whole.a0, whole.b0, a0 - whole.a0), (a1, b1, whole.a1 - a1)]
    return runs, _Range(a0, a1, b0, b1)


def _in_both_once(old: Sequence[str], new: Sequence[str], within: _Range) -> list[tuple[int, int]]:
    """Places of parts that each text has once, as many as come in the same order in both."""
    a0, a1, b0, b1 = within
    often, also = Counter(old[a0:a1]), Counter(new[b0:b1])
    place = {new[b]: b for b in range(b0, b1) if also[new[b]] == 1}
    pairs = [(a, place[old[a]]) for a in range(a0, a1) if often[old[a]] == 1 and old[a] in place]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest choice of ``pairs``, whose first number rises, of which the second rises too:
    patience sorting."""
    tops: list[int] = []  # of each pile, the second number
    top_pair: list[int] = []
    before: list[int] = []  # of each pair, the pair under it on the pile to the left
    for number, (_, b) in enumerate(pairs):
        pile = bisect_left(tops, b)
        before.append(top_pair[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [b]
        top_pair[pile : pile + 1] = [number]
    chosen: list[tuple[int, int]] = []
    at = top_pair[-1] if top_pair else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _between(whole: _Range, cuts: list[tuple[int, int]]) -> Iterator[_Range]:
    a0, b0 = whole.a0, whole.b0
    for a, b in [*cuts, (whole.a1, whole.b1)]:
        yield _Range(a0, a, b0, b)
        a0, b0 = a + 1, b + 1


def _joined(runs: list[_Run]) -> Iterator[_Run]:
    """In order, empty ones left out, neighbours as one."""
    last: _Run | None = None
    for a, b, length in sorted(run for run in runs if run[2]):
        if last is not None and (last[0] + last[2], last[1] + last[2]) == (a, b):
            last = (last[0], last[1], last[2] + length)
            continue
        if last is not None:
            yield last
        last = (a, b, length)
    if last is not None:
        yield last
