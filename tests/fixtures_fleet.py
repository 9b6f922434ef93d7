"""Some hours of a fleet's work, written into Redis by the functions that workers use."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from newscrawler.fleet.minutes import Minutes
from newscrawler.fleet.registry import Beat, Registry

#: Minutes in the middle in which no worker ran.
GAP = 40


async def fill_minutes(client: Any, minutes: int, workers: int = 3) -> Counter[str]:
    """Looks of so many minutes up to now. Returns what was counted."""
    seconds, _ = await client.time()
    now_ms, done = int(seconds) * 1000, Counter[str]()
    registry, looks = Registry(client), Minutes(client)
    for number in range(workers):
        beat = Beat(id=f"w{number}", host="h", pid=number, in_flight=4, beat_ms=now_ms, pages=900)
        await registry.beat(beat)
    for ago in range(minutes, -1, -1):
        if 120 < ago <= 120 + GAP:
            continue
        wave = 1 + math.sin(ago / 17)
        made = Counter(
            {
                "page/fetched": round(160 * wave) + ago % 7,
                "article/new": round(12 * wave),
                "article/updated": ago % 3,
                "page/reason/RETRY(timeout)": ago % 5,
                "page/reason/FAILED(http_500)": int(ago % 40 < 4) * 6,
                "page/reason/CHALLENGE(cloudflare)": int(ago % 60 < 5) * 3,
                f"article/lag/total/{4 + ago % 3}": round(9 * wave),
                f"article/lag/total/{8 + ago % 4}": round(wave),
            }
        )
        if done:
            await registry.add(made, {}, now_ms)
        await looks.look({"q": 4000 + 13 * ago, "w": 90_000}, at_ms=now_ms - ago * 60_000)
        done += made if done else Counter({"": 1})
    del done[""]
    return done
