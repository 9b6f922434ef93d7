"""The question to a model: trimmed pages in, candidates of selectors out. The answer is
data, judged elsewhere."""

from __future__ import annotations

import hashlib
import importlib.resources
import secrets
from functools import cache
from typing import Any, Protocol

from newscrawler.extraction.safe_css import SelectorError, check_css
from newscrawler.selectorsets import css
from newscrawler.selectorsets.samples import Sample, norm, title_agrees
from newscrawler.selectorsets.validation import ValidationReport
from newscrawler.web.hostile import fence
from newscrawler.web.trim import natural_protect, trim

#: Part of provenance and of the cache's key: change it with every change of prompt,
#: trimming or schema.
PROMPT_VERSION = "2026-11-21.2"
PAGES = 3
#: Of the most characters: so far over it the pages shown may be together.
_OVER = 1.1
MAX_TOKENS = 1200

_CSS_LIST = {"type": "array", "items": {"type": "string"}}
KEYS = ("title", "published", "authors", "content_root", "content_exclude")
#: Flat, all required, nothing else allowed: what OpenAI's strict mode and small models both can do.
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": dict.fromkeys(KEYS, _CSS_LIST),
    "required": list(KEYS),
    "additionalProperties": False,
}


class Model(Protocol):
    """What newscrawler.llm.LLM offers; handed in, as services do not import one another."""

    model: str
    base_url: str
    mode: str

    @property
    def configured(self) -> bool: ...

    def start_from(self, mode: str) -> None: ...

    @property
    def most_chars(self) -> int | None:
        """Of a question, where the server has refused a longer one."""

    async def ask(
        self,
        system: str,
        user: str,
        schema: dict[str, Any],
        *,
        max_tokens: int = ...,
        reserve: Any = ...,
        usage: Any = ...,
    ) -> Any: ...


@cache
def system_prompt() -> str:
    return (
        importlib.resources.files("newscrawler.selectorsets") / "prompts" / "system.md"
    ).read_text()


def question(samples: list[Sample], fields: list[str], max_chars: int) -> tuple[str, str]:
    """``(prompt, digest)``: the digest is equal for the same pages, fields and prompt version."""
    for most in range(PAGES, 0, -1):  # protected nodes stay whatever the size: then fewer pages
        chosen = _most_different(samples, most)
        pages = [_page_text(s, max_chars // len(chosen)) for s in chosen]
        if sum(map(len, pages)) <= max_chars * _OVER:
            break
    head = f"Wanted: {', '.join(fields)}. Give empty lists for the rest.\n"
    digest = hashlib.sha256("\0".join([PROMPT_VERSION, head, *sorted(pages)]).encode()).hexdigest()[
        :32
    ]
    nonce = secrets.token_hex(6)
    fenced = [fence(f"page {number}", text, nonce) for number, text in enumerate(pages, 1)]
    return head + "\n".join(fenced), digest


def _most_different(samples: list[Sample], most: int) -> list[Sample]:
    """By size of the markup: smallest, largest, middle show a template's parts
    better than three alike. The smallest alone of one."""
    ordered = sorted(samples, key=lambda s: len(s.doc.text_html))
    if len(ordered) <= most:
        return ordered
    picked = (0, len(ordered) - 1, len(ordered) // 2)[:most]
    return [ordered[i] for i in sorted(picked)]


def _page_text(sample: Sample, max_chars: int) -> str:
    trimmed = trim(
        sample.doc.tree,
        [*natural_protect(sample.doc.tree), *_telling_nodes(sample)],
        max_chars=max_chars,
    )
    labels = sample.labels
    known = [
        f"title: {(labels.title or '')[:120]}",
        f"published: {labels.published or 'unknown'}",
        f"authors: {', '.join(labels.authors)[:120] or 'unknown'}",
    ]
    return (
        "The page's own metadata says: " + "; ".join(known) + "\n" + trimmed.html[: max_chars * 2]
    )


def _telling_nodes(sample: Sample) -> list[Any]:
    """Nodes that hold what the metadata say, and the ends of the content: they
    must not be cut away."""
    texts = css.hits(sample.doc.tree, "h1, h2, p, span, a, strong, b, em, i, time, div, li")
    nodes = [node for node in texts[:6000] if _says_name_or_title(node, sample)]
    lines = (sample.labels.content or "").split("\n\n")
    paragraphs = [norm(line)[:200] for line in lines if len(line) > 20]
    ends = {*paragraphs[:2], *paragraphs[-2:]}
    for node in css.hits(sample.doc.tree, "p, li, h2, h3")[:3000]:
        if norm(node.text(deep=True, separator=" "))[:200] in ends:
            nodes.append(node)
    return nodes[:60]


def _says_name_or_title(node: Any, sample: Sample) -> bool:
    text = node.text(deep=True, separator=" ").strip()
    if len(text) > 250:
        return False
    plain = norm(text)
    if len(plain) < 120 and any(norm(name) in plain for name in sample.labels.authors):
        return True
    return node.tag in ("h1", "h2") and title_agrees(text, sample.labels.title or "-")


def refinement(answer: dict[str, Any], report: ValidationReport, invalid: dict[str, str]) -> str:
    """What was wrong with the last answer, as a table: the model gets figures, not
    the verdict alone."""
    rows = [
        "Your selectors were executed on several pages of the site. What failed:",
        "field | found on | agrees | reason | examples (page: found | expected)",
    ]
    for name, field in report.fields.items():
        if not field.passed:
            agree = "no page metadata" if field.agree is None else f"{field.agree:.0%}"
            rows.append(
                f"{name} | {field.coverage:.0%} | {agree} | {field.reason} |"
                f" {'; '.join(field.examples)}"
            )
    rows += [f"{css_text[:120]} | not executed: {reason}" for css_text, reason in invalid.items()]
    rows.append("Give the whole JSON object again, with other selectors for these fields.")
    return "\n".join(rows)


def to_fields(answer: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """``(fields of a variant, refused selector -> reason)``. Only what the safe
    grammar takes goes on."""
    invalid: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for name in ("title", "published", "authors"):
        found = _valid(answer.get(name), 3, invalid)
        if found:
            fields[name] = found
    root = [c["css"] for c in _valid(answer.get("content_root"), 3, invalid)]
    if root:
        exclude = [c["css"] for c in _valid(answer.get("content_exclude"), 12, invalid)]
        fields["content"] = {"root": root, "exclude": exclude}
    return fields, invalid


def _valid(raw: Any, most: int, invalid: dict[str, str]) -> list[dict[str, Any]]:
    """Candidates that may be executed; why not of the others goes into ``invalid``."""
    found: list[dict[str, Any]] = []
    for item in raw if isinstance(raw, list) else []:
        text, _, attr = str(item).strip().partition("@")
        try:
            check_css(text.strip(), "answer")
        except SelectorError as exc:
            invalid[str(item)[:200]] = exc.reason
            continue
        if not attr:
            found.append({"css": text.strip()})
        elif attr.replace("-", "").isalnum():
            found.append({"css": text.strip(), "attr": attr})
        else:
            invalid[str(item)[:200]] = "is not the name of an attribute"
    return found[:most]
