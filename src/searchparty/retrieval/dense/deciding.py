"""The last word on scores: float64 sums rounded to float32, ranked with ties by ascending row.

Whatever finds candidates (blocks on a card, a FAISS index), the same rows get the same scores and the same order: those of one
routine on the CPU, or of sums made elsewhere wherever these are certain to be rounded to the same float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from searchparty.retrieval.dense.vectors import Vectors


@dataclass(frozen=True)
class Found:
    """The best rows of one query: int64 [hits] and their scores, float32 [hits], best first, ties by ascending row."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


class VectorSearch(Protocol):
    """Finds the best of stored vectors for query vectors."""

    def search(self, queries: NDArray[np.float32], k: int) -> Sequence[Found]:
        """At most `k`, at least 1, rows for each of the query vectors, float32 [queries, dimension], all finite."""


@dataclass(frozen=True)
class Queries:
    """Query vectors as they are compared: each divided by a power of two so that its components lie in [-1, 1], and rounded to
    float16 where the stored vectors are no wider than that, so that every device multiplies the same numbers.

    Attributes:
        values: float32 [queries, dimension], already rounded.
        factors: the powers of two, float64 [queries].
    """

    values: NDArray[np.float32]
    factors: NDArray[np.float64]

    @classmethod
    def prepare(cls, queries: NDArray[np.float32], vectors: Vectors) -> Queries:
        """Queries for comparison with stored vectors."""
        exponents = np.frexp(np.abs(queries).max(axis=1, initial=0.0))[1]
        values = np.ldexp(queries, -exponents[:, None]).astype(np.float32)
        if vectors.values.dtype != np.float32:
            values = values.astype(np.float16).astype(np.float32)
        return cls(values, np.ldexp(1.0, exponents))

    @property
    def norms(self) -> NDArray[np.float64]:
        """Lengths of the values, float64 [queries]."""
        return np.asarray(np.linalg.norm(self.values.astype(np.float64), axis=1))

    def rank(
        self, number: int, rows: NDArray[np.int64], values: NDArray[Any], scales: NDArray[np.float32] | None, k: int
    ) -> Found:
        """The best `k` of some rows for one query.

        Args:
            number: which query.
            rows: the rows, each once.
            values, scales: what is stored of them, see `Vectors`.
        """
        return best_of(rows, self.scores(number, values, scales), k)

    def scores(self, number: int, values: NDArray[Any], scales: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """Scores of some rows for one query, float32 [rows]. None depends on which rows are scored with it."""
        sums: NDArray[np.float64] = (values.astype(np.float64) * self.values[number].astype(np.float64)).sum(axis=1)
        if scales is not None:
            sums *= scales.astype(np.float64)
        scores: NDArray[np.float32] = (sums * self.factors[number]).astype(np.float32)
        return scores

    def round(self, sums: NDArray[np.float64], vectors: Vectors) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Scores from float64 sums that were made in any order on any device.

        Args:
            sums: products of the values and stored vectors, times their scales, float64 [queries, rows].
            vectors: the stored vectors.

        Returns:
            scores, float32 [queries, rows], and whether `scores` is certain to say the same of each.
        """
        exact = sums * self.factors[:, None]
        doubts = (self._doubts(vectors) * self.factors)[:, None]
        low, high = ((exact + sign * doubts).astype(np.float32) for sign in (-1, 1))
        return exact.astype(np.float32), low == high

    def _doubts(self, vectors: Vectors) -> NDArray[np.float64]:
        """How far apart two orders of summing can be, float64 [queries].

        float64 holds multiples of 2^-e below 2^(53-e) exactly. Products of two float16 numbers are multiples of 2^-48, and no
        part of their sum exceeds |query| · |vector|; products with int8 are multiples of 2^-24 and far smaller than 2^29. Else
        twice the bound of Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
        """
        largest = self.norms * vectors.largest_norm
        if vectors.values.dtype == np.int8:
            return np.zeros_like(largest)
        doubts = (vectors.dimension + 4) * 2.0**-52 * largest
        return np.where(largest < 2.0**5, 0.0, doubts) if vectors.values.dtype == np.float16 else doubts


def best_of(rows: NDArray[np.int64], scores: NDArray[np.float32], k: int) -> Found:
    """The best `k` of scored rows."""
    order = best_places(rows, scores, k)
    return Found(rows[order], scores[order])


def best_places(rows: NDArray[np.int64], scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Where the best `k` along the last axis stand, best first, ties by ascending row."""
    order: NDArray[np.int64] = np.lexsort((rows, -scores))[..., :k]
    return order


NOTHING = Found(np.empty(0, np.int64), np.empty(0, np.float32))
