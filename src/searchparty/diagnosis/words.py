"""Texts as sequences of words: does one text name another, and what does it say beyond what is known already.

Knows strings only. Words are runs of letters and digits, lower case, diacritics kept; articles are left out.
"""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_ARTICLES = frozenset(("a", "an", "the"))
_COMMON = frozenset(
    _WORD.findall(
        "about after all also and any are as at be been before but by can could did do does for from found had has have he "
        "her his how i if in into is it its last list many more most name named no none not nothing of on one only or other "
        "passage report says she so some such than that their them then there these they this those to was were what when "
        "where which while who whom whose why will with would yes"
    )
)
"""English words that say nothing about a passage."""


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in order."""
    return tuple(_spaced(text).split())


def names(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text one after another. A phrase without words is named nowhere."""
    wanted = _spaced(phrase)
    return wanted != "  " and wanted in _spaced(text)


def content_words(text: str) -> set[str]:
    """The words that say something: common English ones left out."""
    return {word for word in words_of(text) if word not in _COMMON}


@lru_cache(2_000)
def _spaced(text: str) -> str:
    """The words with one space before and after each. A few texts are remembered, since passages come again."""
    return f" {' '.join(word for word in _WORD.findall(text.lower()) if word not in _ARTICLES)} "
