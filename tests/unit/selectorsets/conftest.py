"""Reading a page is most of what these tests cost, and many of them learn from the same pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import pytest

from newscrawler.crawl import selector_admin
from newscrawler.extraction import generic
from newscrawler.extraction.document import Document
from newscrawler.selectorsets import generate, samples


@pytest.fixture(scope="module", autouse=True)
def pages_are_read_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Within a module the same bytes, with the same context, give the same sample: nothing changes
    one after it was made (``make_sample`` is pure), so the second asking has the first's answer."""
    made_once = lru_cache(maxsize=256)(samples.make_sample)
    with pytest.MonkeyPatch.context() as patch:
        for module in (generate, selector_admin, request.module):
            if hasattr(module, "make_sample"):
                patch.setattr(module, "make_sample", made_once)
        patch.setattr(generic, "library_text", _remembered(generic.library_text))
        yield


def _remembered(read: Callable[[Document], str | None]) -> Callable[[Document], str | None]:
    """trafilatura's text of a page, half of what reading costs, by its markup."""
    known: dict[str, str | None] = {}

    def library_text(doc: Document) -> str | None:
        if doc.text_html not in known:
            known[doc.text_html] = read(doc)
        return known[doc.text_html]

    return library_text
