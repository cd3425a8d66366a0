"""BM25 as sparse vectors, for a server that multiplies each query word by its rarity (Qdrant's modifier `idf`).

The score is the inner product of query and passage:
score(q, p) = Σ_t count(t in q) · idf(t) · tf / (tf + k1 · (1 − b + b · |p| / mean length)),
where the passage's part is stored and the rarity idf(t) = ln(1 + (N − df + 0.5) / (df + 0.5)) is the server's: the formula
of `BM25Index`. A word's number is a 32-bit hash of it; among ten million words one in 400 shares its number with another.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence


def passage_vector(words: Sequence[str], k1: float, b: float, mean_words: float) -> dict[int, float]:
    """Weight of each word's number in a passage with these words."""
    length = k1 * (1 - b + b * len(words) / mean_words)
    return _summed({word: count / (count + length) for word, count in Counter(words).items()})


def query_vector(words: Sequence[str]) -> dict[int, float]:
    """How often each word's number stands in a query."""
    return _summed({word: float(count) for word, count in Counter(words).items()})


def _summed(weights: dict[str, float]) -> dict[int, float]:
    by_number: dict[int, float] = {}
    for word, weight in weights.items():
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "little")
        by_number[number] = by_number.get(number, 0.0) + weight
    return by_number
