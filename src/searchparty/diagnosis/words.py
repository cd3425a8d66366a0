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


@lru_cache(20_000)
def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in order."""
    return tuple(word for word in _WORD.findall(text.lower()) if word not in _ARTICLES)


def names(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text one after another. A phrase without words is named nowhere."""
    wanted, there = words_of(phrase), words_of(text)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(there)} "


def content_words(text: str) -> set[str]:
    """The words that say something: common English ones left out."""
    return {word for word in words_of(text) if word not in _COMMON}
