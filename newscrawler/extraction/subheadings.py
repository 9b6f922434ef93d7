"""Which paragraphs of an article's text are its sub-headings. Pure.

The text stays plain: a sub-heading is a paragraph of it that the page has as a heading, or as a
paragraph that is bold from its first letter to its last, and that a paragraph follows.
"""

from __future__ import annotations

from newscrawler.extraction.blocks import collapse, ends_a_sentence
from newscrawler.extraction.document import Document
from newscrawler.extraction.text import clean_line
from newscrawler.items import FieldValue

#: Characters; what is longer is a lead or a paragraph in bold.
LONGEST = 150
_HEADINGS = "h2,h3,h4"
_BOLD = "p>b,p>strong"


def find(doc: Document, content: str) -> FieldValue:
    """``content`` is what was extracted from ``doc``, paragraphs apart by a blank line."""
    lines = content.split("\n\n")
    # The first is where the text begins, and nothing stands below the last.
    short = {line for line in lines[1:-1] if _can_be(line)}
    if not short:
        return FieldValue([])
    shown = {_written(node.text()) for node in doc.tree.css(_HEADINGS)}
    if not short <= shown:
        for node in doc.tree.css(_BOLD):
            said, parent = _written(node.text()), node.parent
            if said in short and parent is not None and _written(parent.text()) == said:
                shown.add(said)
    found = list(dict.fromkeys(line for line in lines[1:-1] if line in short and line in shown))
    return FieldValue(found, "generic", 0.8) if found else FieldValue([])


def _can_be(line: str) -> bool:
    is_question = line.endswith(("?", "!"))
    return len(line) <= LONGEST and (is_question or not ends_a_sentence(line))


def _written(text: str) -> str:
    return clean_line(collapse(text))
