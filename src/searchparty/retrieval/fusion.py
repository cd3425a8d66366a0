"""Several retrievers as one: their rankings, or their scores, are added up. Knows no retriever.

Reciprocal rank fusion (Cormack, Clarke, Büttcher, SIGIR 2009): score(p) = Σ_r weight_r / (60 + rank_r(p)), over the retrievers
that found p. Weighted sum: score(p) = Σ_r weight_r · (score_r(p) − lowest_r) / (highest_r − lowest_r), with the lowest and
highest score among what r found for the query; a retriever that did not find p adds 0, like the last of what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchparty.errors import UserError
from searchparty.retrieval.types import Hit, Passage, Retriever
from searchparty.retrieval.wrapping import Wrapping

RANK_CONSTANT = 60
DEPTH = 100
"""Hits that are taken from each retriever at least."""

Shares = Callable[[Sequence[Hit]], list[float]]
"""What each hit of one ranking adds to its passage's score, before the weight."""


@dataclass(frozen=True)
class Weighted:
    """A retriever and how much its ranking counts, above 0."""

    retriever: Retriever
    weight: float = 1.0


class FusedRetriever(Wrapping):
    """A `Retriever` over others. Passages are the same if id, title and text are. As safe to share as the others are."""

    def __init__(self, parts: Sequence[Weighted], method: str = "reciprocal-rank", depth: int = DEPTH) -> None:
        """Args:
        parts: the retrievers.
        method: a name in `METHODS`.
        depth: hits taken from each retriever, or as many as are asked for if that is more.

        Raises:
            UserError: an unknown method, no retriever, a weight that is not positive.
        """
        if method not in METHODS:
            raise UserError(f"no fusion is called {method!r}; choose one of: {', '.join(METHODS)}")
        if not parts or not all(part.weight > 0 for part in parts):
            raise UserError("fusion needs at least one retriever, and weights above 0")
        super().__init__(part.retriever for part in parts)
        self._parts = parts
        self._method = method
        self._depth = depth

    @property
    def identity(self) -> str:
        """Method, and weight and identity of each part."""
        parts = ", ".join(f"{part.weight:g} x {part.retriever.identity}" for part in self._parts)
        return f"fused({self._method},depth={self._depth})[{parts}]"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query. Of equal scores the passage of the earlier retriever comes first, then the better rank.

        Raises:
            ServiceFailure: if one of the retrievers could not be asked; a ranking that lacks a part would be another ranking.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        depth = max(k, self._depth)
        rankings = [part.retriever.search(queries, depth) for part in self._parts]
        return [self._fuse([ranking[number] for ranking in rankings], k) for number in range(len(queries))]

    def _fuse(self, rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
        scores: dict[Passage, float] = {}
        for part, hits in zip(self._parts, rankings, strict=True):
            for hit, share in zip(hits, METHODS[self._method](hits), strict=True):
                scores[hit.passage] = scores.get(hit.passage, 0.0) + part.weight * share
        best = sorted(scores.items(), key=lambda scored: -scored[1])[:k]
        return [Hit(passage, rank, score) for rank, (passage, score) in enumerate(best, start=1)]


def _reciprocal_ranks(hits: Sequence[Hit]) -> list[float]:
    return [1 / (RANK_CONSTANT + hit.rank) for hit in hits]


def _scaled_scores(hits: Sequence[Hit]) -> list[float]:
    """Scores from 0 to 1. If all are equal, each is 1: they were found."""
    lowest = min((hit.score for hit in hits), default=0.0)
    span = max((hit.score for hit in hits), default=0.0) - lowest
    return [(hit.score - lowest) / span if span > 0 else 1.0 for hit in hits]


METHODS: dict[str, Shares] = {"reciprocal-rank": _reciprocal_ranks, "weighted": _scaled_scores}
"""Ways to fuse by name."""
