"""Turns text into the words that BM25 counts. The same analyser must read passages and queries; knows nothing of indexes.

The steps are those of Lucene's English analyser as Anserini runs it: split, drop the possessive, lower-case, drop stop words,
Porter stemmer. NFKC comes first, so that composed and decomposed accents, ligatures and full-width letters are one word each.
Splitting follows the Unicode word rule where questions need it: one-letter words stay; `U.S.`, `3.14`, `1,000` and `don't`
are one word each; a Chinese character or a hiragana is a word of its own.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Mapping
from typing import ClassVar, cast

import Stemmer

# fmt: off
STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of", "on",
    "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
})
# fmt: on
"""Lucene's English list."""

_UNSPACED = r"\u2e80-\u2fdf\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts written without spaces: Han and hiragana."""
_WORD_PATTERN = re.compile(
    rf"[^\W{_UNSPACED}]+"
    rf"(?:['’.,](?:(?<=[^\W\d_]['’.])(?=[^\W\d_])|(?<=\d[.,])(?=\d))[^\W{_UNSPACED}]+)*"
    rf"|[{_UNSPACED}]"
)
_POSSESSIVES = ("'s", "’s")
_MOST_REMEMBERED = 1_000_000


def surfaces(text: str) -> list[str]:
    """The words of `text` in order as they stand there, but for their case and composition."""
    return cast(list[str], _WORD_PATTERN.findall(unicodedata.normalize("NFKC", text).lower()))


class EnglishAnalyzer:
    """Words of English text, stemmed. Safe to use from several threads."""

    settings: ClassVar[Mapping[str, str]] = {
        "language": "english",
        "unicode": "nfkc-lower",
        "words": "unicode-words-1",
        "stop_words": "lucene-33",
        "stemmer": "porter",
    }
    """Written into an index; an index is only opened by an analyser with equal settings."""

    def __init__(self) -> None:
        self._stem = Stemmer.Stemmer("porter").stemWord
        # The stemmer works in a buffer of its own, so only one thread may be inside it.
        self._stemming = threading.Lock()
        self._remembered: dict[str, str] = {}

    def words(self, text: str) -> list[str]:
        """The stemmed words of `text` in order, repeated ones repeated. Empty if it holds only stop words and punctuation."""
        remembered = self._remembered
        found = []
        for surface in surfaces(text):
            word = remembered.get(surface)
            if word is None:
                word = remembered[surface] = self.reduce(surface)
            if word:
                found.append(word)
        if len(remembered) > _MOST_REMEMBERED:
            remembered.clear()
        return found

    def reduce(self, surface: str) -> str:
        """The stem of one of the `surfaces`; empty for a stop word."""
        if surface.endswith(_POSSESSIVES):
            surface = surface[:-2]
        if surface in STOP_WORDS:
            return ""
        with self._stemming:
            return str(self._stem(surface))
