"""The best rows of stored vectors by dot product, exactly, in torch: on the CPU from the memory map, or on cards.

Three steps make the result the same for every block size, device and number of cards:
1. Vectors are multiplied in fast arithmetic, and of each group of consecutive rows only the best score is kept: the score
   matrix never exists as a whole. The best k rows lie in the k groups with the best maxima.
2. The rows of these groups, and of some more, are scored again in fast arithmetic, and the best rows are kept.
3. Every row that may still belong to the best k, given the error of fast arithmetic, is scored in float64 where it lies; the
   few sums that might be rounded otherwise on the CPU are made again there. `deciding` has the rules.
   A sum of d products in precision u is off by at most d · u · |query| · |vector| (Higham, Accuracy and Stability of Numerical
   Algorithms, 2nd ed., section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from searchparty.retrieval.dense.deciding import NOTHING, Found, Queries, best_of, best_places
from searchparty.retrieval.dense.placing import Shard, place
from searchparty.retrieval.dense.vectors import Vectors

BLOCK_ROWS = 65_536
GROUP_ROWS = 128
_SPARE = 16
"""Groups and rows kept beyond k, so that the margin of error is nearly always covered."""
_UNDERFLOW = 1e-30
"""Products too small for float32 are lost in fast arithmetic."""
_BATCH = 512
"""Queries scored at a time."""


@dataclass(frozen=True)
class _Kept:
    """Rows that were kept of a shard.

    Attributes:
        rows: corpus rows, [queries, rows].
        scores: fast scores, float32 [queries, rows].
        sums: float64 sums, [queries, rows].
        ceilings: no row that was left out has a higher fast score, [queries].
    """

    rows: torch.Tensor
    scores: torch.Tensor
    sums: torch.Tensor
    ceilings: torch.Tensor


class ExactSearch:
    """A `VectorSearch`. Safe to call from several threads on the CPU, from one on cards."""

    def __init__(
        self,
        vectors: Vectors,
        devices: Sequence[str] = ("cpu",),
        block_rows: int = BLOCK_ROWS,
        group_rows: int = GROUP_ROWS,
    ) -> None:
        """Put the vectors where they are searched; on the CPU nothing is read yet.

        Args:
            devices: `cpu`, or cards such as `cuda:0`; several share the rows evenly.
            block_rows: rows scored at a time.
            group_rows: rows of which one score is kept. Both change speed and memory, never a result.

        Raises:
            UserError: no such device, or the vectors do not fit; says how much is needed and free.
        """
        self._vectors = vectors
        self._shards = place(vectors, devices)
        self._group_rows = group_rows
        self._block_rows = -(-block_rows // group_rows) * group_rows

    @property
    def shards(self) -> Sequence[Shard]:
        """The vectors where they lie."""
        return self._shards

    def search(self, queries: NDArray[np.float32], k: int) -> list[Found]:
        """The best `k`, at least 1, rows for each of the query vectors, float32 [queries, dimension], all finite."""
        batches = range(0, len(queries), _BATCH)
        return [found for start in batches for found in self._search_batch(queries[start : start + _BATCH], k)]

    def _search_batch(self, queries: NDArray[np.float32], k: int) -> list[Found]:
        k = min(k, len(self._vectors))
        prepared = Queries.prepare(queries, self._vectors)
        kept = [self._candidates_of(shard, _on(shard, prepared), k + _SPARE) for shard in self._shards]
        # Only now are results awaited, so that all cards work at once.
        rows_QR, fast_QR, sums_QR = (
            np.concatenate([getattr(part, name).cpu().numpy() for part in kept], axis=1) for name in ("rows", "scores", "sums")
        )
        ceilings_Q = np.max([part.ceilings.cpu().numpy() for part in kept], axis=0).astype(np.float64)
        margins_Q = (self._vectors.dimension + 4) * _precision(self._vectors) * prepared.norms * self._vectors.largest_norm
        floors_Q = -np.partition(-fast_QR, k - 1, axis=1)[:, k - 1] - 2 * margins_Q - _UNDERFLOW
        possible_QR = fast_QR >= floors_Q[:, None]
        scores_QR, certain_QR = prepared.round(sums_QR, self._vectors)
        for number in np.flatnonzero((possible_QR & ~certain_QR).any(axis=1)).tolist():
            places = np.flatnonzero(possible_QR[number] & ~certain_QR[number])
            places = places[np.argsort(rows_QR[number, places])]
            scores_QR[number, places] = prepared.scores(number, *self._gather(rows_QR[number, places]))
        scores_QR[~possible_QR] = -np.inf
        best_QK = best_places(rows_QR, scores_QR, k)
        rows_QK, scores_QK = (np.take_along_axis(array, best_QK, axis=1) for array in (rows_QR, scores_QR))
        return [
            Found(rows_QK[number], scores_QK[number])
            if ceilings_Q[number] < floors_Q[number]
            else self._second_pass(prepared, number, float(floors_Q[number]), k)
            for number in range(len(queries))
        ]

    def _candidates_of(self, shard: Shard, queries: torch.Tensor, keep: int) -> _Kept:
        """Steps 1 and 2 for one shard, and the float64 sums of step 3."""
        maxima_QG = shard.group_maxima(queries, self._group_rows, self._block_rows)
        groups_QK, left_out_Q = _best(maxima_QG, keep)[1:]
        rows_QR, scores_QR = shard.scores_of_groups(queries, groups_QK, self._group_rows)
        best_QK, places_QK, also_left_out_Q = _best(scores_QR, min(keep, len(shard)))
        rows_QK = rows_QR.gather(1, places_QK)
        return _Kept(
            rows_QK + shard.first_row,
            best_QK,
            shard.sums(queries, rows_QK),
            torch.maximum(left_out_Q, also_left_out_Q),
        )

    def _second_pass(self, queries: Queries, number: int, floor: float, k: int) -> Found:
        """Decide among all rows of the margin, however many: long runs of nearly equal vectors end here."""
        best = NOTHING
        for shard in self._shards:
            one = _on(shard, queries)[number : number + 1]
            for start in range(0, len(shard), self._block_rows):
                scores = shard.scores(one, start, min(start + self._block_rows, len(shard)))
                rows = torch.nonzero(scores[0] >= floor).flatten().cpu().numpy() + (shard.first_row + start)
                if len(rows):
                    found = self._decide(queries, number, rows, k)
                    best = best_of(np.concatenate((best.rows, found.rows)), np.concatenate((best.scores, found.scores)), k)
        return best

    def _decide(self, queries: Queries, number: int, rows: NDArray[np.int64], k: int) -> Found:
        """The best `k` among `rows` by their exact scores."""
        rows = np.sort(rows)
        return queries.rank(number, rows, *self._gather(rows), k)

    def _gather(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
        """What is stored of some rows, given in ascending order."""
        parts = [shard.gather(rows) for shard in self._shards]
        values = np.concatenate([part[0] for part in parts])
        scales = np.concatenate([part[1] for part in parts if part[1] is not None]) if parts[0][1] is not None else None
        return values, scales


def _best(scores: torch.Tensor, keep: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The best `keep` of each row of `scores`, their places, and the best of what is left, minus infinity if nothing is."""
    values, places = torch.topk(scores, min(keep + 1, scores.shape[1]), dim=1)
    if values.shape[1] > keep:
        return values[:, :keep], places[:, :keep], values[:, keep]
    return values, places, torch.full_like(values[:, 0], -torch.inf)


def _on(shard: Shard, queries: Queries) -> torch.Tensor:
    """Query values where and in the form in which a shard multiplies them."""
    return torch.from_numpy(queries.values).to(device=shard.device, dtype=shard.arithmetic)


def _precision(vectors: Vectors) -> float:
    """Unit of rounding of the fast arithmetic. Four times float32's own, since cards cut sums off instead of rounding them;
    that of TF32 if this program allows it for float32 vectors."""
    tf32 = vectors.values.dtype == np.float32 and torch.backends.cuda.matmul.allow_tf32
    return 2.0**-22 + (2.0**-10 / vectors.dimension if tf32 else 0.0)
