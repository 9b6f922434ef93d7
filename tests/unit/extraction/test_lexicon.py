"""The words of languages: files that keep to their schema, forms that mean what they say,
one reading of them."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules

import jsonschema
import pytest

import newscrawler.extraction
import newscrawler.selectorsets
import newscrawler.web
from newscrawler.extraction import (
    authors,
    boilerplate,
    byline_text,
    generic,
    lexicon,
    vietnamese,
)
from newscrawler.selectorsets import content, related_blocks
from newscrawler.web import trim

FILES = lexicon.languages()
SCHEMA, CLASS_SCHEMA, MONTHS_SCHEMA = (
    json.loads((files(lexicon) / f"{name}.schema.json").read_text(encoding="utf-8"))
    for name in ("lexicon", "class_names", "months")
)
CLASS_NAMES = lexicon.class_names()
SOURCES = {
    found.name: inspect.getsource(import_module(found.name))
    for package in (newscrawler.extraction, newscrawler.selectorsets, newscrawler.web)
    for found in iter_modules(package.__path__, f"{package.__name__}.")
}
#: Compared as they are written.
AS_WRITTEN = {
    "byline.glued",
    "byline.signed",
    "clock.behind",
    "clock.whole_hour",
    "firm.kind",
    "name.degree",
    "name.like_a_word",
}
#: What the grammar of dates in Vietnamese (month, hour, minute) and Thai (a short April) has itself.
IN_DATES = {"tháng", "giờ", "phút", "เม"}
#: Patterns whose words are no list of names: module -> such words in them.
NOT_OF_CLASSES = {
    "extraction.boilerplate": {
        "article body content story",  # before "widget": a box that an article is built of
        "author tag topic",  # before "-x": what a post is filed under
    },
    "extraction.keywords": {
        "author section source type",  # before a colon, in a keyword that a machine wrote
        "section taglist tags wrap",  # one name in its parts
    },
    "extraction.regions": {"footer header meta"},  # behind "post-"
    "selectorsets.lint": {"caption figure picture"},  # in a selector
    "web.sniff": {"article body main meta section"},  # tags
}
MONTHS = json.loads((files(lexicon) / "months.json").read_text(encoding="utf-8"))


def test_there_are_languages_and_lists():
    assert len(FILES) > 25 and {"vi", "en", "de", "mul"} <= set(FILES)
    assert len(lexicon.words("role.name")) > 150


@pytest.mark.parametrize("language", FILES)
def test_a_file_keeps_to_the_schema(language):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(FILES[language], SCHEMA)
    assert FILES[language]["language"] == language


def test_a_file_that_breaks_the_schema_is_refused():
    for wrong in ({"role.names": ["x"]}, {"role.name": ["x", "x"]}, {"role.name": [r"\w+"]}, {}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"language": "de", "name": "German", "words": wrong}, SCHEMA)


@pytest.mark.parametrize("language", FILES)
def test_forms_are_in_lower_case_and_make_patterns(language):
    for key, forms in FILES[language]["words"].items():
        for form in forms:
            assert key in AS_WRITTEN or form == form.lower(), f"{key}: {form}"
            assert form == form.strip(), f"{key}: {form!r}"
        re.compile(lexicon.source(key))


def test_every_list_is_read_and_every_list_that_is_read_exists():
    read = {
        key for text in SOURCES.values() for key in re.findall(r"[<\"]([a-z]+\.[a-z_]+)[>\"]", text)
    }
    listed = set(SCHEMA["properties"]["words"]["properties"])
    assert listed == {key for file in FILES.values() for key in file["words"]}
    listed |= {f"class.{use}" for use in CLASS_NAMES["uses"]}
    assert listed <= read, listed - read
    assert listed == set(lexicon._lists())


@pytest.mark.parametrize(
    ("form", "spellings"),
    [
        ("text[e]", {"text", "texte"}),
        ("<đại|thiếu> <tá|úy>", {"đại tá", "đại úy", "thiếu tá", "thiếu úy"}),
        ("[<user|site>[ ]]admin", {"admin", "useradmin", "user admin", "siteadmin", "site admin"}),
        ("autor*in", {"autor*in"}),
    ],
)
def test_a_form_stands_for_its_spellings(form, spellings):
    assert set(lexicon.spellings(form)) == spellings


@pytest.mark.parametrize("form", ["redaktion~", "more …", "text[e"])
def test_a_form_without_end_is_no_word_of_a_set(form):
    with pytest.raises(ValueError):
        list(lexicon.spellings(form))


def test_signs_of_regular_expressions_are_text_in_a_form():
    assert re.fullmatch(lexicon.source("agency.name"), "vnanet.vn")
    assert not re.fullmatch(lexicon.source("agency.name"), "vnanetxvn")
    label = lexicon.Pattern(r"(?:<byline.label>): (?P<name>\w+)")
    assert (found := label.fullmatch("Author(s): Jane")) and found["name"] == "Jane"


def test_no_word_hides_a_longer_phrase():
    """ "tekst" is a label, and so is "tekst og foto": the name begins behind the whole of it."""
    assert authors.clean(["Tekst og foto: Kari Nordmann"]) == ["Kari Nordmann"]
    assert authors.without_label("Autorin / Autor: Jane Roe") == "Jane Roe"


def test_the_class_names_keep_to_their_schema():
    jsonschema.Draft202012Validator.check_schema(CLASS_SCHEMA)
    jsonschema.validate(CLASS_NAMES, CLASS_SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"uses": {}, "names": {"related": ["contents"]}}, CLASS_SCHEMA)


def test_one_name_is_read_by_each_use_that_it_states():
    """ "binh-luan" (comments) is one line of the file, and five patterns know it by that line."""
    assert len(CLASS_NAMES["names"]) > 300
    assert {"content", "comments", "byline", "date_of_another"} <= set(
        CLASS_NAMES["names"]["binh[-]luan"]
    )
    for pattern in (boilerplate._NAMED, boilerplate._FOREIGN, byline_text.FOREIGN):
        assert pattern.search("box binh-luan") and pattern.search("binhluan")
    assert related_blocks.NAMED.search("lien-quan") and trim._CHROME.search("lien-quan")
    for standfirst in (generic._STANDFIRST, content._STANDFIRST):
        assert standfirst.search("sapo") and not standfirst.search("text")


@pytest.mark.parametrize("use", CLASS_NAMES["uses"])
def test_a_use_of_class_names_finds_its_own_forms(use):
    pattern = lexicon.Pattern(f"(?:<class.{use}>)").compiled
    for form, uses in CLASS_NAMES["names"].items():
        if use in uses and not re.search(r"[~!…]", form):
            assert all(pattern.fullmatch(name) for name in lexicon.spellings(form)), form


def test_a_look_behind_knows_names_of_any_length():
    footer = lexicon.Pattern(r"(?<!<class.post>-)footer")
    assert footer.search("site-footer") and footer.search("footer")
    assert not footer.search("entry-footer") and not footer.search("article-footer")


@pytest.mark.parametrize("module", SOURCES)
def test_class_names_stand_in_their_file_alone(module):
    """A pattern with two of the names as alternatives is a list that will disagree with the file.
    Names of attributes and of tags, and words before or behind a name of the file, are not meant.
    """
    names = {
        name
        for form in CLASS_NAMES["names"]
        if not re.search(r"[~!…]", form) and len(form) > 3
        for name in lexicon.spellings(form)
    }
    written = set()
    for node in ast.walk(ast.parse(SOURCES[module])):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "|" in node.value:
            parts = set(re.split(r"[|()?:]+", node.value)) & names
            written |= {" ".join(sorted(parts))} if len(parts) > 2 else set()
    assert written <= NOT_OF_CLASSES.get(module.removeprefix("newscrawler."), set())


@pytest.mark.parametrize(("module", "allowed"), [("text", set()), ("dates", IN_DATES)])
def test_words_of_languages_stand_in_their_files_alone(module, allowed):
    """Words that ASCII cannot write give themselves away; signs and ranges of letters do not."""
    tree = ast.parse(SOURCES[f"newscrawler.extraction.{module}"])
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and isinstance(node.body[0], ast.Expr)
    }
    written = {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in docstrings
        for word in re.findall(r"[^\W\d_]{2,}", re.sub(r"\[[^\]]*\]|\\.", " ", node.value))
        if not word.isascii()
    }
    assert written == allowed


def test_the_names_of_months_keep_to_their_schema():
    jsonschema.Draft202012Validator.check_schema(MONTHS_SCHEMA)
    jsonschema.validate(MONTHS, MONTHS_SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(MONTHS | {"13": MONTHS["1"]}, MONTHS_SCHEMA)


def test_a_name_of_a_month_is_one_as_dates_look_it_up():
    known = lexicon.months()
    assert len(known) > 1000
    assert known["january"] == 1 and known["mai"] == 5 and known["ธันวาคม"] == 12
    assert all(name == name.casefold() for name in known)
    assert len(known) == sum(map(len, MONTHS.values())), "a name is of one month, and stands once"


def test_frequent_words_are_of_one_language():
    """ "det" is Danish, Norwegian and Swedish: each file says so for itself."""
    assert all("det" in lexicon.words_of(code, "text.frequent") for code in ("da", "no", "sv"))
    assert "det" not in lexicon.words_of("nl", "text.frequent")
    assert lexicon.words_of("xx", "text.frequent") == frozenset()
    assert lexicon.words_of("vi", "text.frequent") == frozenset()


def test_fixed_lines_are_told_apart_by_their_kind():
    for key, what in (("line.box", "box"), ("line.end", "end"), ("line.away", "away")):
        assert len(lexicon.words(key)) > 8
        for phrase in lexicon.words(key):
            assert vietnamese.kind(f"{phrase.capitalize()}:") == what, phrase
    assert vietnamese.kind("Tin của một ngày bình thường") == ""


def test_what_is_imported_reads_no_file_and_compiles_no_pattern():
    """A command that never extracts does not pay for the words."""
    code = (
        "from newscrawler.extraction import extract, lexicon, authors;"
        "assert not lexicon._lists.cache_info().currsize, 'the files were read';"
        "assert 'compiled' not in vars(authors._LABEL);"
        "assert authors.clean(['By Jane Roe']) == ['Jane Roe'];"
        "assert 'compiled' in vars(authors._LABEL) and lexicon._lists.cache_info().misses == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
