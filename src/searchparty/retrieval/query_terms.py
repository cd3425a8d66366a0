"""The term numbers of the words of queries, each worked out once. Knows no postings."""

from __future__ import annotations

from searchparty.retrieval.analysis import EnglishAnalyzer, surfaces
from searchparty.retrieval.terms import Terms

UNKNOWN = -1
"""In place of a term: a stop word, or a word that no passage holds."""
_MOST_REMEMBERED = 200_000
"""About 20 MB."""


class QueryTerms:
    """Safe to use from several threads."""

    def __init__(self, analyzer: EnglishAnalyzer, terms: Terms) -> None:
        self._remembered = _Remembered(analyzer, terms)

    def of(self, query: str) -> list[int]:
        """The terms of the query's words in order, repeated ones repeated, `UNKNOWN` where there is none."""
        if len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.clear()
        return list(map(self._remembered.__getitem__, surfaces(query)))


class _Remembered(dict[str, int]):
    """Term by surface; a missing one is looked up."""

    def __init__(self, analyzer: EnglishAnalyzer, terms: Terms) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._terms = terms

    def __missing__(self, surface: str) -> int:
        word = self._analyzer.reduce(surface)
        term = self._terms.find(word) if word else None
        number = UNKNOWN if term is None else term
        self[surface] = number
        return number
