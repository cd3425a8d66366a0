"""The best passages of one query from BM25 postings, exactly, in plain numpy. Knows term numbers and row numbers, no text.

The method is MaxScore (Turtle and Flood, 1995) term by term: the terms with the greatest possible share of a score come first;
once the terms that are left cannot lift an untouched passage into the best k, their long lists are only looked up for the
passages still in the running. Scores are added up in float32 in one fixed order, so pruning never changes a result, not even
in its last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDING = 2e-7
"""Bound on the relative error of one float32 addition, with room to spare."""
_LOOKUP_ADVANTAGE = 4
"""Looking a passage up in a list costs about as much as adding this many list entries."""


@dataclass(frozen=True)
class Postings:
    """Weights of terms in passages, grouped by term and within a term by ascending row. May be memory-mapped.

    Attributes:
        rows: row of the passage, int32 [postings].
        weights: share of the term in the passage's score, above 0, float32 [postings].
        starts: term t owns the postings from `starts[t]` up to `starts[t + 1]`, int64 [terms + 1].
        ceilings: greatest weight of each term, float32 [terms].
        passages: number of passages in the corpus.
    """

    rows: NDArray[np.int32]
    weights: NDArray[np.float32]
    starts: NDArray[np.int64]
    ceilings: NDArray[np.float32]
    passages: int


def best_rows(postings: Postings, term_counts: Mapping[int, int], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rows and scores of the best `k` passages that hold at least one of the terms: best first, ties by ascending row.

    Args:
        postings: the index.
        term_counts: how often each term stands in the query; a term that stands there twice counts twice.
        k: at least 1.
    """
    ceilings = {term: float(postings.ceilings[term]) * count for term, count in term_counts.items()}
    terms = sorted(term_counts, key=lambda term: (-ceilings[term], term))
    outstanding = sum(ceilings.values())
    slack = ROUNDING * (len(terms) + 1)
    scores = np.zeros(postings.passages, dtype=np.float32)
    longest_list = postings.rows[:0]
    candidates: NDArray[np.int64] | None = None

    for term in terms:
        begin, end = int(postings.starts[term]), int(postings.starts[term + 1])
        rows, weights = postings.rows[begin:end], postings.weights[begin:end]
        if term_counts[term] > 1:
            weights = weights * np.float32(term_counts[term])
        if candidates is not None and len(candidates) * _LOOKUP_ADVANTAGE < len(rows):
            _add_to_candidates(scores, candidates, rows, weights)
        else:
            np.add.at(scores, rows, weights)
        outstanding = max(outstanding - ceilings[term], 0.0)
        if len(rows) > len(longest_list):
            longest_list = rows

        contenders = longest_list if candidates is None else candidates
        if len(contenders) >= k:
            in_reach = _kth_greatest(scores[contenders], k) * (1.0 - slack) - outstanding * (1.0 + slack)
            if candidates is not None:
                candidates = candidates[scores[candidates] >= in_reach]
            elif in_reach > 0:
                candidates = np.flatnonzero(scores >= in_reach)

    if candidates is None:
        candidates = np.flatnonzero(scores)
    return _best(candidates, scores[candidates], k)


def _add_to_candidates(
    scores: NDArray[np.float32], candidates: NDArray[np.int64], rows: NDArray[np.int32], weights: NDArray[np.float32]
) -> None:
    """Add one term's weights, but only to the candidates that stand in its list."""
    places = np.searchsorted(rows, candidates)
    places[places == len(rows)] = 0
    present = rows[places] == candidates
    scores[candidates[present]] += weights[places[present]]


def _kth_greatest(values: NDArray[np.float32], k: int) -> float:
    return float(np.partition(values, len(values) - k)[len(values) - k])


def _best(rows: NDArray[np.int64], scores: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The best `k` of ascending rows, best first, ties by ascending row."""
    if len(rows) > k:
        kept = scores >= _kth_greatest(scores, k)
        rows, scores = rows[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")[:k]
    return rows[order], scores[order]
