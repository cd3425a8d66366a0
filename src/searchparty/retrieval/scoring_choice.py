"""Which code scores a query: numpy from the first, compiled code once it is worth loading. Their answers are the same bits."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from searchparty.retrieval.scoring import Postings, best_rows

Search = Callable[[Postings, Sequence[Sequence[int]], int], tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]]
Found = tuple[list[int], list[float]]
"""Rows and scores, best first."""

QUERIES_BEFORE_COMPILING = 100
"""Loading compiled code takes seconds, the first time on a machine half a minute: not for a handful of queries."""
MOST_HITS_COMPILED = 100
"""For more hits a query numpy's selection is the faster one."""


class BestRows:
    """`best_rows` by the fastest means at hand. Safe to use from several threads.

    After some queries compiled code is loaded beside the searching, in a thread of its own; numpy answers meanwhile, and for
    good where numba (extra `fast`) is not installed.
    """

    def __init__(self) -> None:
        self._asked = 0
        self._compiled: Search | None = None
        self._loading: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code answers by now."""
        return self._compiled is not None

    def __call__(
        self, postings: Postings, term_counts: Mapping[int, int], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """As `scoring.best_rows`."""
        query = [term for term, count in term_counts.items() for _ in range(count)]
        rows, scores = self.of_many(postings, [query], k)[0]
        return np.array(rows, np.int64), np.array(scores, np.float32)

    def of_many(self, postings: Postings, queries: Sequence[Sequence[int]], k: int) -> list[Found]:
        """The best rows of each query, whose terms are given, repeated ones repeated; those below 0 are left out."""
        if k <= MOST_HITS_COMPILED and self._compiled is not None:
            rows_QK, scores_QK, found_Q = self._compiled(postings, queries, k)
            entries = zip(rows_QK.tolist(), scores_QK.tolist(), found_Q.tolist(), strict=True)
            return [(rows[:found], scores[:found]) for rows, scores, found in entries]
        return [self._one(postings, Counter(term for term in query if term >= 0), k) for query in queries]

    def _one(self, postings: Postings, term_counts: Mapping[int, int], k: int) -> Found:
        if not term_counts:
            return [], []
        rows, scores = best_rows(postings, term_counts, k)
        if self._loading is None:
            self._asked += 1
            if self._asked >= QUERIES_BEFORE_COMPILING:
                self.prepare(postings)
        return rows.tolist(), scores.tolist()

    def prepare(self, postings: Postings) -> None:
        """Begin to load compiled code now: many queries are going to come."""
        with self._lock:
            if self._loading is None:
                self._loading = threading.Thread(target=self._load, args=(postings,), name="scoring-compiler", daemon=True)
                self._loading.start()

    def wait(self) -> None:
        """Until compiled code is loaded, if it is being loaded."""
        if self._loading is not None:
            self._loading.join()

    def _load(self, postings: Postings) -> None:
        try:
            from searchparty.retrieval.maxscore import compiled_best_rows_of_many
        except ImportError:
            return
        compiled_best_rows_of_many(postings, [[0]], 1)
        self._compiled = compiled_best_rows_of_many
