"""The speed of a simulated day: as fast as the machine can follow, so that what is late is
not the machine's doing.

Each real second counts for ``factor`` simulated ones. A worker that the machine lets wait for half
a second is late by half a minute at factor 60, which says nothing of the program. So the speed is
lowered while anything that is due waits or a fetch takes long in real time, and raised again when
not; web and frontier are told together. Of use on an otherwise empty machine too: the first
minutes, with everything new at once, take care of themselves.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from typing import Any

import redis

from newscrawler.frontier import keys
from tests.newsweb.process import NewswebProcess

#: Simulated seconds that what is due may wait, or a fetch may last, before the speed is lowered: a
#: twentieth of what is measured, and at a factor of 100 a third of a second.
LATE_S = 30.0
SLOWER, FASTER = 0.7, 1.07
LEASE_S = 90.0


class Pace:
    """:param most: the highest factor; the web's own is the first"""

    def __init__(
        self, web: NewswebProcess, redis_url: str, most: float, least: float = 5.0
    ) -> None:
        self.web, self.most, self.least = web, most, least
        self.client = redis.Redis.from_url(redis_url)
        clock = web.about["clock"]
        self.points: list[tuple[float, float, float]] = [(0.0, clock["factor"], clock["offset_s"])]

    def simulated(self, real_s: float) -> float:
        """The simulated time of a moment."""
        at = bisect_right(self.points, real_s, key=lambda point: point[0]) - 1
        _, factor, offset_s = self.points[max(0, at)]
        return real_s * factor + offset_s

    def late_s(self) -> float:
        """How long the longest of what is due has waited, or the oldest lease has been out;
        simulated seconds."""
        pipe = self.client.pipeline()
        for cls in range(3):
            pipe.zrange(f"{keys.prefix(0)}:ready:{cls}", 0, 0, withscores=True)
        pipe.zrange(keys.deadlines(0), 0, 0, withscores=True)
        *ready, leases = pipe.execute()
        real_s = time.time()
        late = [self.simulated(real_s) - score / 1000 for rows in ready for _, score in rows]
        late += [(real_s - (score / 1000 - LEASE_S)) * self.points[-1][1] for _, score in leases]
        return max(late, default=0.0)

    def look(self) -> None:
        """Called every quarter of a second or so."""
        factor = self.points[-1][1]
        wanted = factor * (SLOWER if self.late_s() > LATE_S else FASTER)
        wanted = min(self.most, max(self.least, wanted))
        if abs(wanted / factor - 1) > 0.01:
            self.set(wanted)

    def set(self, factor: float) -> None:
        real_s = time.time()
        offset_s = self.simulated(real_s) - real_s * factor
        self.client.hset(keys.clock(0), mapping={"factor": factor, "offset": offset_s * 1000})
        self.web.clock(factor=factor, offset_s=offset_s)
        self.points.append((real_s, factor, offset_s))

    def close(self) -> dict[str, Any]:
        self.client.close()
        spans = zip(self.points[1:], self.points[2:], strict=False)
        weighed = [(b[0] - a[0], a[1]) for a, b in spans]
        total = sum(seconds for seconds, _ in weighed)
        return {
            "mean_factor": round(sum(s * f for s, f in weighed) / total, 1)
            if total
            else self.points[0][1]
        }
