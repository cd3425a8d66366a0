"""Neighbours removed: of the passages that one title has, only the best one is a hit."""

from __future__ import annotations

from collections.abc import Sequence

from searchparty.retrieval.types import Hit, Retriever
from searchparty.retrieval.wrapping import Wrapping

_FIRST_FACTOR = 4
"""How many times the hits that are asked for are fetched at first."""
_MOST_FETCHED = 2048


class OnePerTitle(Wrapping):
    """A `Retriever` that keeps the best passage of each title of another one. Passages without a title are all kept."""

    def __init__(self, retriever: Retriever) -> None:
        super().__init__([retriever])
        self._retriever = retriever

    @property
    def identity(self) -> str:
        """That titles are unique, and the identity of the retriever."""
        return f"one-per-title[{self._retriever.identity}]"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, each of another title; fewer only if the retriever's first 2,048 hold no more titles."""
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        hits: list[list[Hit]] = [[] for _ in queries]
        open_, fetched = list(range(len(queries))), _FIRST_FACTOR * k
        while open_:
            found = self._retriever.search([queries[number] for number in open_], fetched)
            for number, of_query in zip(open_, found, strict=True):
                hits[number] = _unique(of_query, k)
            if fetched >= max(_MOST_FETCHED, k):
                break
            open_ = [
                number
                for number, of_query in zip(open_, found, strict=True)
                if len(of_query) == fetched and len(hits[number]) < k
            ]
            fetched *= 2
        return hits


def _unique(hits: Sequence[Hit], k: int) -> list[Hit]:
    titles: set[str] = set()
    kept = []
    for hit in hits:
        if hit.passage.title and hit.passage.title in titles:
            continue
        titles.add(hit.passage.title)
        kept.append(hit)
    return [Hit(hit.passage, rank, hit.score) for rank, hit in enumerate(kept[:k], start=1)]
