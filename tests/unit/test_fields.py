"""The declarations of an article's fields (items.FIELDS) and what is driven by them."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from newscrawler.api import data, models
from newscrawler.extraction.result import Extraction
from newscrawler.items import FIELDS, READ, VERSIONED, Article, FieldValue
from newscrawler.store import codec
from newscrawler.store.base import Hit
from tests.contract.articles import article

OLD = Path(__file__).parents[1] / "contract" / "old" / "elasticsearch-1.json"
ALLOWED: dict[str, tuple[Any, ...]] = {
    "text": (str, str | None),
    "code": (str, str | None),
    "texts": (list[str],),
    "time": (datetime | None,),
    "map": (dict[str, str], dict[str, float]),
    "records": (list[dict[str, str]],),
    "number": (int,),
    "flag": (bool,),
}


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.name)
def test_the_declared_type_is_that_of_the_attribute(field: Any) -> None:
    assert get_type_hints(Article)[field.name] in ALLOWED[field.type]


def test_what_is_read_on_a_page_is_part_of_an_extraction() -> None:
    found = Extraction()
    assert all(isinstance(getattr(found, name), FieldValue) for name in READ)


def test_articles_of_an_earlier_program_keep_their_digest() -> None:
    assert VERSIONED == ("title", "content", "published", "authors")
    documents = json.loads(OLD.read_text(encoding="utf-8"))["documents"]
    assert len(documents) == 2
    for doc in documents:
        stored = codec.from_dict(doc["data"], version=1, cluster=None, gone=False)
        assert codec.digest(stored).hex() == doc["digest"]
        assert (
            json.loads(json.dumps(codec.to_dict(stored), default=str)).keys() == doc["data"].keys()
        )


def test_answers_of_the_api_have_the_declared_fields() -> None:
    one = article("a1", "Bão số 5", "Mưa lớn.", authors=["An"], credits=["TTXVN"])
    whole = models.ArticleAnswer(**data.article_json(one)).model_dump()
    assert list(whole) == [*(f.name for f in FIELDS), "unsure"]
    hit = models.Hit(**data.hit_json(Hit(one, 1.0, "Mưa lớn."))).model_dump()
    assert hit["authors"] == ["An"] and hit["credits"] == ["TTXVN"]
    assert set(hit) > {f.name for f in FIELDS if f.in_hit}
    with pytest.raises(ValueError, match="Extra inputs"):
        models.Hit(**hit, content="Mưa lớn.")
