"""Hosts whose scripts bring advertisements, counters and recommendations, never an article. Pure.

Those that stand on the news sites that this project knows, and the largest of the world. A longer
list would save more requests and change no article.
"""

from __future__ import annotations

_TEXT = """
doubleclick.net googlesyndication.com google-analytics.com googletagmanager.com
googletagservices.com googleadservices.com adservice.google.com analytics.google.com
connect.facebook.net facebook.com twitter.com platform.twitter.com tiktok.com
analytics.tiktok.com amazon-adsystem.com adnxs.com criteo.com criteo.net taboola.com
outbrain.com mgid.com adskeeper.com teads.tv rubiconproject.com pubmatic.com openx.net
casalemedia.com smartadserver.com 33across.com indexww.com scorecardresearch.com quantserve.com
chartbeat.com chartbeat.net parsely.com hotjar.com clarity.ms bing.com newrelic.com nr-data.net
sentry.io sentry-cdn.com datadoghq-browser-agent.com segment.com segment.io mixpanel.com
amplitude.com branch.io onesignal.com pushwoosh.com cookiebot.com onetrust.com cookielaw.org
consensu.org disqus.com disquscdn.com addthis.com sharethis.com zalo.me admicro.vn adtima.vn
adtimaserver.vn eclick.vn polyad.net ants.vn blueseed.tv adsplay.net adpia.vn lavanetwork.net
gammaplatform.com yomedia.vn geniee.jp ureka.vn
"""
_DOMAINS = frozenset(_TEXT.split())
_LABELS = max(domain.count(".") + 1 for domain in _DOMAINS)


def is_advertiser(host: str) -> bool:
    """Whether a host, or a domain that it is in, is one of them."""
    labels = host.lower().rstrip(".").rsplit(".", _LABELS)[-_LABELS:]
    return any(".".join(labels[start:]) in _DOMAINS for start in range(len(labels) - 1))
