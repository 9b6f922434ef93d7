"""What this worker saw, per site: the rows behind the terminal's display and the
registry's deltas. No I/O."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from newscrawler.fleet.freshness import Lag
from newscrawler.fleet.history import DAY_MS, HOUR_MS
from newscrawler.fleet.registry import SiteDelta
from newscrawler.items import Outcome

#: Outcomes that are the ordinary course of a crawl; all others are shown as errors, by reason.
ORDINARY = frozenset(
    {Outcome.DONE, Outcome.UNCHANGED, Outcome.NOT_ARTICLE, Outcome.REDIRECTED, Outcome.REFUSED}
)

#: Retries that are a step on the way and not a fault: another spelling of the URL,
#: rules not there yet.
STEPS = frozenset({"RETRY(moved)", "RETRY(robots_unknown)"})

#: Reasons with which no answer of the site came at all, and what to say of such a site.
UNREACHABLE = {
    "dns": "no network? name not found (dns)",
    "connect": "no network? cannot connect (connect)",
    "timeout": "no answer in time (timeout)",
    "tls": "certificate refused (tls)",
    "proxy": "the proxy does not answer (proxy)",
}


def label_of(outcome: str, reason: str) -> str:
    """ "DONE", "RETRY(dns)": the word that logs, Redis and tables share."""
    return f"{outcome}({reason})" if reason else str(outcome)


@dataclass(slots=True)
class EndedVisit:
    """One ended visit, as the adapters saw it."""

    site: str
    outcome: str
    reason: str = ""
    answered: bool = True  # the site sent something
    is_article: bool = False
    # "new" | "updated" | "unchanged" | "duplicate"; empty = nothing offered to the store
    stored: str = ""
    fields: tuple[str, ...] = ()  # that the stored article has, of those that are counted
    is_robots: bool = False  # a visit to robots.txt, which is no page to people


@dataclass(slots=True)
class QueueState:
    """Where a site's domains stand in the frontier just now."""

    queued: int = 0
    leased: int = 0
    delay_ms: int = 0  # the slowest of its domains
    wait_ms: int = 0  # until the next fetch is allowed
    note: str = ""  # "paused", "back-off", "robots.txt ...": why nothing is fetched

    def text(self) -> str:
        """Of a site that has something queued or leased."""
        if self.leased:
            return "fetching"
        return f"next in {self.wait_ms / 1000:.0f} s" if self.wait_ms >= 1000 else "next: now"


@dataclass(slots=True)
class SiteRow:
    site: str
    # Visits that ended, with an answer of the site or without. A robots.txt that was answered is
    # not among them, one that was not is: it says that the site cannot be reached.
    pages: int = 0
    answered: int = 0  # of these: the site sent something; what people are told of as pages
    robots: int = 0  # answers to robots.txt
    articles: int = 0
    new: int = 0
    updated: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    last: str = ""  # the newest label, and the newest of an error
    last_error: str = ""
    last_ms: int = 0
    place: QueueState | None = None

    def unreachable(self) -> str:
        """What to say of a site of which nothing came ("" = something did, or
        nothing was tried)."""
        if self.answered or self.robots or not self.pages:
            return ""
        for label, _ in self.outcomes.most_common():
            reason = label[label.find("(") + 1 : -1] if "(" in label else ""
            for known, text in UNREACHABLE.items():
                if reason.startswith(known) or reason.endswith(known):
                    return text
        return f"no answer ({self.last})" if self.errors == self.pages else ""

    def state(self) -> str:
        if text := self.unreachable():
            return text
        place = self.place
        if place is not None and place.note:
            return place.note
        if self.last.startswith(Outcome.CHALLENGE):
            return "challenge page: not crawled"
        if place is not None and (place.leased or place.queued):
            return place.text()
        if not self.pages and not self.robots:
            return "not started"
        return "up to date" if place is not None else "crawled"


class Rows:
    """Rows by site, the totals over them, the rate, and what the registry has not heard yet."""

    #: Seconds that the rate is taken over: long enough for a steady figure, short enough to follow.
    RATE_S = 10.0

    def __init__(self, sites: Iterable[str] = ()) -> None:
        self.by_site: dict[str, SiteRow] = {site: SiteRow(site) for site in sites}
        self.total = SiteRow("total")
        self.first_ms: dict[
            str, int
        ] = {}  # site -> when it first answered anybody, by the frontier's clock
        self._deltas: dict[str, SiteDelta] = {}
        self._marks: deque[tuple[float, int]] = deque()

    def row(self, site: str) -> SiteRow:
        found = self.by_site.get(site)
        if found is None:
            found = self.by_site[site] = SiteRow(site)
        return found

    def note(self, visit: EndedVisit, now_ms: int) -> str:
        """Count a visit. Returns its label."""
        label = label_of(visit.outcome, visit.reason)
        row = self.row(visit.site)
        is_error = visit.outcome not in ORDINARY and label not in STEPS
        is_robots_answer = visit.is_robots and visit.answered
        for one in (row, self.total):
            one.pages += not is_robots_answer
            one.answered += visit.answered and not is_robots_answer
            one.robots += is_robots_answer
            one.articles += visit.is_article
            one.new += visit.stored == "new"
            one.updated += visit.stored == "updated"
            one.outcomes[label] += 1
            one.last, one.last_ms = label, now_ms
            if is_error:
                one.errors += 1
                one.last_error = label
        delta = self._delta(visit.site)
        delta.pages += 1
        delta.new += visit.stored == "new"
        delta.updated += visit.stored == "updated"
        delta.duplicates += visit.stored == "duplicate"
        if visit.stored in ("new", "updated"):
            delta.articles += 1
            delta.fields.update(visit.fields)
        delta.outcomes[label] += 1
        if visit.answered:
            delta.last_fetch_ms = now_ms
        if visit.stored == "new":
            delta.last_new_ms = now_ms
        if is_error:
            is_challenge = visit.outcome == Outcome.CHALLENGE
            delta.challenges += is_challenge
            delta.errors += not is_challenge
            delta.last_error, delta.last_error_ms = label, now_ms
        return label

    def _delta(self, site: str) -> SiteDelta:
        delta = self._deltas.get(site)
        if delta is None:
            delta = self._deltas[site] = SiteDelta()
        return delta

    def known_since(self, first_ms: dict[str, int]) -> None:
        """Takes the first visits that the registry knows of; the earlier counts."""
        for site, at in first_ms.items():
            if at:
                self.first_ms[site] = min(at, self.first_ms.get(site, at))

    def note_lag(self, site: str, lag: Lag | None, published_ms: int, clock_ms: int) -> bool:
        """How long a new article took. Not counted (False): it came out before the
        site was first visited."""
        if site not in self.first_ms:
            self.first_ms[site] = self._delta(site).first_ms = clock_ms
        if lag is None or published_ms < self.first_ms[site]:
            return False
        self._delta(site).lags.update(lag.steps())
        return True

    def note_hour(self, site: str, published_ms: int, clock_ms: int) -> None:
        """A new article, for when the site publishes. What it had before it was known says nothing
        of that: an article without a time counts from a day after the first visit on."""
        first_ms = self.first_ms.get(site, clock_ms)
        if (published_ms or clock_ms - DAY_MS) >= first_ms:
            self._delta(site).hours[clock_ms // HOUR_MS] += 1

    def take_deltas(self) -> dict[str, SiteDelta]:
        """Returns what happened since the last call; :meth:`give_back` it when it could not be
        written."""
        taken, self._deltas = self._deltas, {}
        return taken

    def give_back(self, deltas: dict[str, SiteDelta]) -> None:
        for site, old in deltas.items():
            newer = self._deltas.get(site)
            if newer is None:
                self._deltas[site] = old
                continue
            newer.pages += old.pages
            newer.new += old.new
            newer.updated += old.updated
            newer.outcomes.update(old.outcomes)
            newer.lags.update(old.lags)
            newer.errors += old.errors
            newer.challenges += old.challenges
            newer.duplicates += old.duplicates
            newer.articles += old.articles
            newer.fields.update(old.fields)
            newer.hours.update(old.hours)
            newer.first_ms = old.first_ms or newer.first_ms
            newer.last_fetch_ms = max(newer.last_fetch_ms, old.last_fetch_ms)
            newer.last_new_ms = max(newer.last_new_ms, old.last_new_ms)
            if not newer.last_error_ms:
                newer.last_error, newer.last_error_ms = old.last_error, old.last_error_ms

    def mark(self, now_s: float) -> float:
        """Pages per second over the last RATE_S; call it about once a second
        (monotonic seconds)."""
        self._marks.append((now_s, self.total.answered))
        while len(self._marks) > 2 and self._marks[0][0] < now_s - self.RATE_S:
            self._marks.popleft()
        return self.rate()

    def rate(self) -> float:
        if len(self._marks) < 2:
            return 0.0
        (at, pages), (last_at, last_pages) = self._marks[0], self._marks[-1]
        return round((last_pages - pages) / (last_at - at), 2) if last_at > at else 0.0

    def problems(self) -> Counter[str]:
        """Visits by label, without the ones that went well."""
        fine = (Outcome.DONE, Outcome.UNCHANGED, Outcome.REDIRECTED)
        return Counter({label: n for label, n in self.total.outcomes.items() if label not in fine})
