"""A second, slower look at what another retriever found: its best candidates are scored again and put in the new order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from searchparty.errors import UserError
from searchparty.retrieval.types import Hit, Passage, Retriever
from searchparty.retrieval.wrapping import Wrapping

CANDIDATES = 50


class Ranker(Protocol):
    """Scores passages for a query. Called from one thread at a time."""

    @property
    def identity(self) -> str:
        """Model and settings in one line."""

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[Passage]]) -> list[list[float]]:
        """A score for each passage of each query, higher is better. A query may have no passages."""


class RerankedRetriever(Wrapping):
    """A `Retriever` whose hits come from another one and whose order and scores come from a ranker."""

    def __init__(self, retriever: Retriever, ranker: Ranker, candidates: int = CANDIDATES) -> None:
        """Args:
        candidates: hits taken from the retriever, or as many as are asked for if that is more.
        """
        super().__init__([retriever])
        self._retriever = retriever
        self._ranker = ranker
        self._candidates = candidates

    @property
    def identity(self) -> str:
        """Ranker, number of candidates, and the identity of the retriever."""
        return f"reranked({self._ranker.identity},candidates={self._candidates})[{self._retriever.identity}]"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, ties in the order of the retriever.

        Raises:
            UserError: the ranker gave NaN for a passage, or another number of scores than passages.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        found = self._retriever.search(queries, max(k, self._candidates))
        scores = self._ranker.score(queries, [[hit.passage for hit in hits] for hits in found])
        if list(map(len, scores)) != list(map(len, found)) or any(map(math.isnan, (one for all_ in scores for one in all_))):
            raise UserError(f"{self._ranker.identity}: gave NaN, or not one score for each passage; check the model's files")
        return [_ranked(hits, new, k) for hits, new in zip(found, scores, strict=True)]


def _ranked(hits: Sequence[Hit], scores: Sequence[float], k: int) -> list[Hit]:
    best = sorted(zip(hits, scores, strict=True), key=lambda scored: -scored[1])[:k]
    return [Hit(hit.passage, rank, score) for rank, (hit, score) in enumerate(best, start=1)]
