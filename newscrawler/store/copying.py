"""All articles of one store into another one, with their versions and those that are gone.

Begun again after an interruption it goes on: what the target has is compared by digest and not
written again. Clusters of near-duplicates are made by the target; times of storing are new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from newscrawler.items import Article
from newscrawler.store import codec
from newscrawler.store.base import Kept, StoreRefused, VersionState, WholeStore

_BATCH = 100
COUNTED = ("articles", "gone", "versions")


@dataclass(slots=True)
class Copied:
    looked_at: int = 0
    written: int = 0  # articles
    #: Ids: that the target keeps under another address, that it has in another state (newer, or of
    #: another history), that it refuses, with the reason.
    duplicates: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    #: What is counted -> in the source, in the target, at the end.
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        same = all(source == target for source, target in self.counts.values())
        return same and not (self.different or self.refused)


async def copy(
    source: WholeStore, target: WholeStore, say: Callable[[Copied], None] = lambda _: None
) -> Copied:
    """``say`` is told after each batch. Raises StoreUnavailable of either; nothing is half-written
    then, and the next call goes on."""
    done = Copied()
    batch: list[Kept] = []
    async for kept in source.walk():
        batch.append(kept)
        if len(batch) == _BATCH:
            await _copy_batch(source, target, batch, done)
            batch = []
            say(done)
    await _copy_batch(source, target, batch, done)
    await target.refresh()
    ours, theirs = await source.stats(), await target.stats()
    done.counts = {name: (int(ours[name] or 0), int(theirs[name] or 0)) for name in COUNTED}
    say(done)
    return done


async def _copy_batch(
    source: WholeStore, target: WholeStore, batch: Sequence[Kept], done: Copied
) -> None:
    if not batch:
        return
    there = await target.states([kept.article.id for kept in batch])
    missing: dict[str, list[Article]] = {}
    leaving: list[str] = []
    for kept in batch:
        article, state = kept.article, there.get(kept.article.id)
        done.looked_at += 1
        if state is not None and state.digest == kept.digest and state.gone == article.gone:
            continue
        if state is None or state.digest != kept.digest:
            history = await source.versions(article.id) if article.version > 1 else [article]
            rest = _after(history, state)
            if rest is None:
                done.different.append(article.id)
                continue
            missing[article.id] = rest
        if article.gone:
            leaving.append(article.id)
        elif state is not None and state.gone and article.id not in missing:
            missing[article.id] = [article]  # it has come back
    await _write(target, missing, done)
    await target.mark_gone(
        [i for i in leaving if i not in done.refused and i not in done.duplicates]
    )


def _after(history: list[Article], state: VersionState | None) -> list[Article] | None:
    """The versions that the target lacks; None: what it has is none of these."""
    if state is None:
        return history
    for at, version in enumerate(history):
        if codec.digest(version) == state.digest:
            return history[at + 1 :]
    return None


async def _write(target: WholeStore, missing: dict[str, list[Article]], done: Copied) -> None:
    """Version by version: all first ones, all second ones and so on."""
    places = dict.fromkeys(missing, 0)
    while places:
        round_ = {i: missing[i][at] for i, at in places.items()}
        # The same version twice: it was gone in between, which made it one.
        again = [
            i
            for i, at in places.items()
            if at and codec.digest(missing[i][at - 1]) == codec.digest(missing[i][at])
        ]
        await target.mark_gone(again)
        try:
            results = await target.put(list(round_.values()))
        except StoreRefused as exc:
            results = exc.results
            done.refused |= dict.fromkeys(exc.ids, exc.reason)
        duplicates = [result.id for result in results if result.status == "duplicate"]
        done.duplicates += duplicates
        left = {*duplicates, *done.refused}
        places = {
            i: at + 1 for i, at in places.items() if at + 1 < len(missing[i]) and i not in left
        }
    done.written += sum(i not in done.refused and i not in done.duplicates for i in missing)
