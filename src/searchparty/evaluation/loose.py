"""A second form of answers in which spelling counts less, for a column beside the score and never for the score.

It says how much of what a script calls wrong is writing: `São Paulo` for `Sao Paulo`, `1914–18` for `1914-18`, `Ⅳ` for `IV`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

_DASHES = "‐‑‒–—―−﹘﹣－"
_QUOTES = "‘’‚‛‹›ʼʻ′＇`´“”„‟«»″＂"
_LETTERS = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
_REPLACED = str.maketrans(dict.fromkeys(_DASHES, "-") | dict.fromkeys(_QUOTES, "'") | _LETTERS)
_LATIN_MARKS = range(0x0300, 0x0370)
"""Accents of the Latin, Greek and Cyrillic scripts. Marks of other scripts are vowels or part of a letter and stay."""


@lru_cache(20_000)
def fold_spelling(text: str) -> str:
    """One form for compatible characters (NFKC), dashes, quotation marks, case, accents; invisible characters are dropped."""
    compatible = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold().translate(_REPLACED))
    marked = unicodedata.normalize("NFD", compatible)
    kept = (letter for letter in marked if ord(letter) not in _LATIN_MARKS and unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", "".join(kept)).translate(_REPLACED)


def loosened(normalise: Callable[[str], str], text: str) -> str:
    """A script's normal form with the spelling folded. Texts whose normal forms are equal stay equal."""
    return normalise(fold_spelling(normalise(text)))
