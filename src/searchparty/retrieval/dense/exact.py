"""The best rows of stored vectors by dot product, exactly, in torch: on the CPU from the memory map, or on cards.

Two steps make the result the same for every block size, device and number of cards:
1. Blocks of rows are scored in fast arithmetic and only the best few of each block are kept, so that the score matrix never
   exists as a whole. The error of this step is bounded: a sum of d products in precision u is off by at most
   d · u · |query| · |vector| (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1).
2. Every row that may still belong to the best k within that bound is decided upon by `Queries.rank`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from searchparty.retrieval.dense.deciding import NOTHING, Found, Queries, best_of
from searchparty.retrieval.dense.placing import Shard, place
from searchparty.retrieval.dense.vectors import Vectors

BLOCK_ROWS = 65_536
_SPARE = 32
"""Rows kept beyond k, so that the margin of error is nearly always covered by the first pass."""
_UNDERFLOW = 1e-30
"""Products too small for float32 are lost in the first step."""
_BATCH = 1024
"""Queries scored at a time."""


class ExactSearch:
    """Searches stored vectors from front to back. Safe to call from several threads on the CPU, from one on cards."""

    def __init__(self, vectors: Vectors, devices: Sequence[str] = ("cpu",), block_rows: int = BLOCK_ROWS) -> None:
        """Put the vectors where they are searched; on the CPU nothing is read yet.

        Args:
            devices: `cpu`, or cards such as `cuda:0`; several share the rows evenly.
            block_rows: rows scored at a time. Changes speed and memory, never a result.

        Raises:
            UserError: no such device, or the vectors do not fit; says how much is needed and free.
        """
        self._vectors = vectors
        self._shards = place(vectors, devices)
        self._block_rows = block_rows

    def search(self, queries: NDArray[np.float32], k: int) -> list[Found]:
        """The best `k`, at least 1, rows for each of the query vectors, float32 [queries, dimension], all finite."""
        batches = range(0, len(queries), _BATCH)
        return [found for start in batches for found in self._search_batch(queries[start : start + _BATCH], k)]

    def _search_batch(self, queries: NDArray[np.float32], k: int) -> list[Found]:
        k = min(k, len(self._vectors))
        prepared = Queries.prepare(queries, self._vectors)
        rows, scores = self._best_of_blocks(prepared, min(k + _SPARE, len(self._vectors)))
        margins = (self._vectors.dimension + 4) * _precision(self._vectors) * prepared.norms * self._vectors.largest_norm
        floors = scores[:, k - 1] - 2 * margins - _UNDERFLOW
        covered = (scores[:, -1] < floors) | (scores.shape[1] == len(self._vectors))
        return [
            self._decide(prepared, number, rows[number][scores[number] >= floors[number]], k)
            if covered[number]
            else self._second_pass(prepared, number, float(floors[number]), k)
            for number in range(len(queries))
        ]

    def _best_of_blocks(self, queries: Queries, keep: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `keep` rows of each query with the best fast scores, and these scores, best first."""
        rows, scores = [], []
        for shard in self._shards:
            on_device = _on(shard, queries)
            best: tuple[torch.Tensor, torch.Tensor] | None = None
            for start, block_scores in self._blocks(shard, on_device):
                values, places = torch.topk(block_scores, min(keep, block_scores.shape[1]), dim=1)
                places = places + (shard.first_row + start)
                if best is not None:
                    values, places = torch.cat((best[0], values), dim=1), torch.cat((best[1], places), dim=1)
                    values, order = torch.topk(values, min(keep, values.shape[1]), dim=1)
                    places = places.gather(1, order)
                best = values, places
            assert best is not None
            scores.append(best[0])
            rows.append(best[1])
        # Only now are results awaited, so that all cards work at once.
        all_scores = np.concatenate([part.cpu().numpy() for part in scores], axis=1).astype(np.float64)
        all_rows = np.concatenate([part.cpu().numpy() for part in rows], axis=1)
        order_QK = np.argsort(-all_scores, axis=1, kind="stable")[:, :keep]
        return np.take_along_axis(all_rows, order_QK, axis=1), np.take_along_axis(all_scores, order_QK, axis=1)

    def _blocks(self, shard: Shard, queries: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """First row within the shard, and fast scores [queries, rows], block by block."""
        for start in range(0, len(shard), self._block_rows):
            yield start, shard.scores(queries, start, min(start + self._block_rows, len(shard)))

    def _second_pass(self, queries: Queries, number: int, floor: float, k: int) -> Found:
        """Decide among all rows of the margin, however many: long runs of nearly equal vectors end here."""
        best = NOTHING
        for shard in self._shards:
            one = _on(shard, queries)[number : number + 1]
            for start, scores in self._blocks(shard, one):
                rows = torch.nonzero(scores[0] >= floor).flatten().cpu().numpy() + (shard.first_row + start)
                if len(rows):
                    found = self._decide(queries, number, rows, k)
                    best = best_of(np.concatenate((best.rows, found.rows)), np.concatenate((best.scores, found.scores)), k)
        return best

    def _decide(self, queries: Queries, number: int, rows: NDArray[np.int64], k: int) -> Found:
        """The best `k` among `rows` by their exact scores."""
        rows = np.sort(rows)
        parts = [shard.gather(rows) for shard in self._shards]
        values = np.concatenate([part[0] for part in parts])
        scales = np.concatenate([part[1] for part in parts if part[1] is not None]) if parts[0][1] is not None else None
        return queries.rank(number, rows, values, scales, k)


def _on(shard: Shard, queries: Queries) -> torch.Tensor:
    """Query values where and in the form in which a shard multiplies them."""
    return torch.from_numpy(queries.values).to(device=shard.device, dtype=shard.arithmetic)


def _precision(vectors: Vectors) -> float:
    """Unit of rounding of the fast arithmetic. Four times float32's own, since cards cut sums off instead of rounding them;
    that of TF32 if this program allows it for float32 vectors."""
    tf32 = vectors.values.dtype == np.float32 and torch.backends.cuda.matmul.allow_tf32
    return 2.0**-22 + (2.0**-10 / vectors.dimension if tf32 else 0.0)
