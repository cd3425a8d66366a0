"""The vocabulary of an index on disk: sorted words, found by binary search. Nothing is read when it is opened."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import numpy as np

from searchparty.retrieval.mapped import map_array, map_bytes, save_array

WORDS_FILE = "terms.txt"
OFFSETS_FILE = "term_offsets.npy"


def save_terms(folder: Path, sorted_words: Sequence[bytes]) -> None:
    """Write the words, which must be in ascending byte order and distinct. A word's position is its term number."""
    (folder / WORDS_FILE).write_bytes(b"".join(sorted_words))
    save_array(folder / OFFSETS_FILE, np.fromiter(accumulate(map(len, sorted_words), initial=0), dtype=np.int64))


class Terms:
    """Finds the number of a word. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self._words = map_bytes(folder / WORDS_FILE)
        self._offsets = map_array(folder / OFFSETS_FILE)
        self.find = lru_cache(maxsize=65_536)(self._find)
        """Term number of a word, or None if no passage holds it."""

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def _word(self, term: int) -> bytes:
        return self._words[self._offsets[term] : self._offsets[term + 1]]

    def _find(self, word: str) -> int | None:
        encoded = word.encode()
        term = bisect_left(range(len(self)), encoded, key=self._word)
        return term if term < len(self) and self._word(term) == encoded else None
