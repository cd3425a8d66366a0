"""The analyser: which words a text holds."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.retrieval.analysis import STOP_WORDS, EnglishAnalyzer


def words(text: str) -> list[str]:
    return EnglishAnalyzer().words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S. economy's running-dogs in 3.14 C++ café Beyoncé's x", "u. economi run dog 3.14 c café beyoncé x"),
        ("the of and", ""),
        ("1,000 men; 2,3", "1,000 men 2,3"),
        ("end.Next 3.a a.3", "end.next 3 3"),
        ("don't Don’t", "don't don’t"),
        ("iPhone手机", "iphon 手 机"),
        ("ﬁlm Ｆｉｌｍ", "film film"),
        ("", ""),
    ],
)
def test_text_is_split_and_stemmed(text: str, expected: str) -> None:
    assert words(text) == expected.split()


def test_there_are_the_33_stop_words_of_lucene() -> None:
    assert len(STOP_WORDS) == 33


@given(st.text())
def test_composed_and_decomposed_accents_give_the_same_words(text: str) -> None:
    assert words(unicodedata.normalize("NFC", text)) == words(unicodedata.normalize("NFD", text))


@given(st.lists(st.text(), max_size=5))
def test_words_do_not_depend_on_what_was_read_before(texts: list[str]) -> None:
    analyzer = EnglishAnalyzer()
    assert [analyzer.words(text) for text in texts] == [words(text) for text in texts]
