"""BM25 over an index folder that is opened by memory map: nothing is compiled and next to nothing is read at the start.

score(q, p) = Σ_t count(t in q) · idf(t) · tf / (tf + k1 · (1 − b + b · |p| / average length)),
idf(t) = ln(1 + (N − df + 0.5) / (df + 0.5)),
Lucene's form since version 8, without the constant factor k1 + 1 and with exact lengths. The title is part of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchparty.retrieval.analysis import EnglishAnalyzer
from searchparty.retrieval.bm25_build import load_postings, write_bm25_folder
from searchparty.retrieval.building import Progress, new_index_folder, no_progress
from searchparty.retrieval.manifest import Manifest, load_manifest, refuse_other_settings
from searchparty.retrieval.query_terms import QueryTerms
from searchparty.retrieval.scoring_choice import BestRows
from searchparty.retrieval.store import PassageStore
from searchparty.retrieval.terms import Terms
from searchparty.retrieval.types import Hit

NAME = "bm25"


class BM25Index:
    """A `Retriever` over a folder that `build` made. Exact, deterministic, safe to use from several threads at once."""

    def __init__(self, folder: Path) -> None:
        """Open an index. Raises UserError if it is of another version, cut short, or read with other settings than built."""
        self.manifest: Manifest = load_manifest(folder)
        analyzer = EnglishAnalyzer()
        refuse_other_settings(folder, self.manifest, analyzer.settings)
        self.passages = PassageStore(folder)
        self._query_terms = QueryTerms(analyzer, Terms(folder))
        self._postings = load_postings(folder, len(self.passages))
        self._best_rows = BestRows()

    @classmethod
    def build(
        cls,
        corpus: Path,
        folder: Path,
        *,
        format: str | None = None,
        k1: float = 0.9,
        b: float = 0.4,
        overwrite: bool = False,
        progress: Progress = no_progress,
    ) -> BM25Index:
        """Build an index over a corpus file into `folder`, which appears only when it is complete, and open it.

        Args:
            corpus: a file that `read_corpus` can read.
            folder: where the index goes.
            format: name of the corpus format; None finds it by content.
            k1: how slowly a repeated word stops adding to the score, at least 0.
            b: how much long passages are marked down, from 0 to 1.
            overwrite: replace an index that is there already.
            progress: told about each stage.

        Raises:
            UserError: faults of the corpus or of the target folder.
        """
        with new_index_folder(folder, overwrite) as unfinished:
            write_bm25_folder(corpus, unfinished, NAME, format, k1, b, progress)
        return cls(folder)

    @property
    def identity(self) -> str:
        """Settings and corpus in one line."""
        return self.manifest.identity

    def __len__(self) -> int:
        return len(self.passages)

    def prepare(self, *, wait: bool = False) -> None:
        """Load compiled scoring for the many queries that are going to come, in a thread beside the searching.

        Args:
            wait: until it is loaded.
        """
        self._best_rows.prepare(self._postings)
        if wait:
            self._best_rows.wait()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by corpus order; none for a query without a known word."""
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        found = self._best_rows.of_many(self._postings, [self._query_terms.of(query) for query in queries], k)
        return [
            [
                Hit(passage, rank, score)
                for rank, (passage, score) in enumerate(zip(self.passages.at(rows), scores, strict=True), start=1)
            ]
            for rows, scores in found
        ]
