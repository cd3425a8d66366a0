"""How much of what exact search finds an approximate index finds too, on queries cut out of the corpus itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchparty.retrieval.dense.deciding import Found, VectorSearch
from searchparty.retrieval.store import PassageStore

QUERIES = 200
DEPTH = 10
_WORDS = 10


def sample_queries(passages: PassageStore, count: int = QUERIES) -> list[str]:
    """Ten consecutive words of each of `count` passages, drawn with a fixed seed. Passages without text give none."""
    generator = np.random.default_rng(0)
    rows = generator.choice(len(passages), min(count, len(passages)), replace=False)
    queries = []
    for row in rows.tolist():
        words = passages[row].text.split()
        start = int(generator.integers(0, max(1, len(words) - _WORDS + 1)))
        queries.append(" ".join(words[start : start + _WORDS]))
    return [query for query in queries if query]


def recall(search: VectorSearch, truth: Sequence[Found], queries: NDArray[np.float32], k: int = DEPTH) -> float:
    """Share of the `k` best that are found. A row that ties with the last of them counts as well as that one.

    Args:
        truth: the best `k` of exact search for each query.
    """
    shares = [
        np.count_nonzero(np.isin(found.rows, best.rows) | (found.scores >= best.scores[-1])) / len(best.rows)
        for found, best in zip(search.search(queries, k), truth, strict=True)
    ]
    return float(np.mean(shares))
