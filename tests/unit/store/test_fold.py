"""Folding: one to one, and the same words for every way to write them."""

from __future__ import annotations

import codecs
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newscrawler.store import fold
from newscrawler.store.fold import (
    exact,
    exact_words,
    fold_words,
    folded,
    folded_words,
    has_diacritics,
    index_words,
    nfc,
    word_spans,
)


@pytest.mark.parametrize(
    ("text", "exact_form", "folded_form"),
    [
        ("Đường Hà Nội", "đường hà nội", "duong ha noi"),
        ("ĐẶNG", "đặng", "dang"),
        ("COVID-19, TP.HCM_x", "covid 19 tp hcm x", "covid 19 tp hcm x"),
        ("Größe ñandú Łódź", "größe ñandú łódź", "große nandu lodz"),
        ("İstanbul ISPARTA", "istanbul isparta", "istanbul isparta"),
        ("２０２４年", "２０２４ 年", "2024 年"),
        ("中国GDP增长", "中 国 gdp 增 长", "中 国 gdp 增 长"),
        ("日本語が", "日 本 語 が", "日 本 語 か"),
        ("ที่x", "ท ี ่ x", "ท x"),
        ("서울에", "서 울 에", "서 울 에"),
        ("العَرَبِيَّة", "العَرَبِيَّة", "العربية"),
        ("हिन्दी", "हिन्दी", "हिनदी"),
        ("", "", ""),
        ("… — !", "", ""),
    ],
)
def test_words(text: str, exact_form: str, folded_form: str) -> None:
    assert exact_words(text) == exact_form.split()
    assert folded_words(text) == folded_form.split()


def test_every_vietnamese_letter_folds_to_its_base() -> None:
    for base, letters in {
        "a": "àáảãạăằắẳẵặâầấẩẫậ", "e": "èéẻẽẹêềếểễệ", "i": "ìíỉĩị", "o": "òóỏõọôồốổỗộơờớởỡợ",
        "u": "ùúủũụưừứửữự", "y": "ỳýỷỹỵ", "d": "đ",
    }.items():  # fmt: skip
        assert len(letters) in (1, 5, 11, 17)
        for letter in letters + letters.upper():
            assert folded(letter) == base, letter


@given(st.text())
def test_both_forms_keep_every_offset(text: str) -> None:
    text = nfc(text)
    assert len(exact(text)) == len(folded(text)) == len(text)
    assert [e for _, _, e, _ in word_spans(text)] == exact_words(text)
    assert [f for _, _, _, f in word_spans(text) if f] == folded_words(text)


@given(st.text())
def test_words_do_not_depend_on_how_letters_are_composed(text: str) -> None:
    assert folded_words(unicodedata.normalize("NFD", text)) == folded_words(text)
    assert fold_words(exact_words(text)) == folded_words(text)


@given(st.text())
def test_words_hold_nothing_that_a_query_language_could_mean(text: str) -> None:
    for word in exact_words(text) + folded_words(text):
        assert word and not set(word) & set("\"'():*^-+ \t\n\0\ue000\ue001\ue002")


def test_has_diacritics() -> None:
    assert has_diacritics("Hà") and has_diacritics("đ")
    assert not has_diacritics("Ha Noi") and not has_diacritics("中国")


@given(
    st.text(
        alphabet=st.one_of(st.sampled_from("aàẩĐđ İßΣσẞ-_.,'’1²　 ไทย日本"), st.characters()),
        max_size=60,
    )
)
def test_words_of_the_index_are_those_of_a_query(text: str) -> None:
    found = index_words(text)
    assert found.exact.split() == exact_words(text)
    assert found.folded.split() == fold_words(exact_words(text))


def test_every_letter_of_the_fast_alphabet_is_cut_and_folded_as_elsewhere() -> None:
    for char in fold._alphabet().letters:
        test_words_of_the_index_are_those_of_a_query.hypothesis.inner_test(f"x{char} {char}y")


@given(st.text(alphabet="oOuUyYaeàáảãạèẻẽéẹỳỷỹýỵÀỲ q\u0301", max_size=30))
def test_tones_go_to_the_first_vowel_in_the_index_as_in_a_query(text: str) -> None:
    assert index_words(text).exact.split() == exact_words(text)


def test_text_of_the_fast_alphabet_needs_no_composing() -> None:
    letters = {c for c in map(chr, range(0x110000)) if fold._lower(c) in fold._alphabet().letters}
    assert len(letters) > 300  # the Kelvin sign among them, which is a k
    for first in letters - {"\ufffe"}:
        text = "".join(f"{first}{second} " for second in letters)
        assert index_words(text).exact.split() == exact_words(text)


def test_words_of_an_article_are_remembered_until_the_index_asks_for_them() -> None:
    batches = 400  # articles of two batches of a crawl, the most that lie between
    texts = [f"{number} " * 300 for number in range(batches)]
    fold._recent_index_words.cache_clear()
    for text in texts:
        index_words(text)
    for text in texts:
        index_words(f"the title of {text[:3]}")
        index_words(text)
    found = fold._recent_index_words.cache_info()
    assert (found.hits, found.misses) == (batches, batches)


def test_vietnamese_takes_the_fast_way() -> None:
    text = "“Hà Nội” – ƯỚC TÍNH 30 % người… đến; Nguyễn Văn Ả"
    assert "ả" in fold._alphabet().letters
    exact = fold.exact(text)
    coded, _ = codecs.charmap_encode(exact, "strict", fold._alphabet().codes)
    assert len(coded) == len(exact), "a byte a letter"
