"""The program as a library: what ``from newscrawler import extract, open_store,
Crawler`` hands out.

Every call is an ordinary blocking one, also where the caller's own event loop is
running (a notebook's).
"""
