"""newscrawler: a distributed crawler for news sites."""

__version__ = "0.1.0"
