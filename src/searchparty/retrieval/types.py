"""The words of retrieval: passages, hits, and what every retriever can do. No index, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Passage:
    """One unit of the corpus. `text` excludes the title; a passage without a title has an empty one."""

    id: str
    title: str
    text: str

    @property
    def contents(self) -> str:
        """Title and text as one string, the form that is indexed and that Search-R1's dialect carries: `"title"\\ntext`."""
        return f'"{self.title}"\n{self.text}'


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found for a query. `rank` starts at 1; scores of different retrievers are not comparable."""

    passage: Passage
    rank: int
    score: float


class Retriever(Protocol):
    """Finds passages. Safe to call from several threads at once."""

    @property
    def identity(self) -> str:
        """Names retriever, settings and corpus so that equal identities give equal hits; recorded with every run."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most `k` hits per query, best first, ties by corpus order.

        A query without a known word has no hits. `k` larger than the corpus returns what there is.

        Raises:
            ServiceFailure: if the retriever could not be asked. An empty list always means: asked, nothing found.
        """
