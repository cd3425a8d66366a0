"""Approximate search through a FAISS index over stored vectors.

FAISS proposes rows; their scores and order come from the stored vectors, so that a hit has the same score as in exact search.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchparty.errors import UserError, missing_package
from searchparty.retrieval.building import Progress
from searchparty.retrieval.dense.deciding import Found, Queries
from searchparty.retrieval.dense.faiss_kinds import KINDS, LEAST_FOR_LISTS, REFINED, lists_for
from searchparty.retrieval.dense.vectors import Vectors

try:
    import faiss
except ImportError:
    raise missing_package("faiss-cpu", "faiss", "a FAISS index") from None

VERSION: str = faiss.__version__
_SPARE = 16
"""Rows asked for beyond k, since FAISS's own order is approximate."""
_ADDED_ROWS = 65_536
_TRAINING_ROWS_PER_LIST = 64
_LEAST_TRAINING_ROWS = 20_000


def build_faiss(vectors: Vectors, kind: str, path: Path, progress: Progress) -> None:
    """Train an index on a sample of the vectors, add all of them, and write it."""
    index = faiss.index_factory(
        vectors.dimension, KINDS[kind].recipe(len(vectors), vectors.dimension), faiss.METRIC_INNER_PRODUCT
    )
    progress(f"training the {kind} index", 0, None)
    if not index.is_trained:
        sample = min(
            len(vectors), max(_LEAST_TRAINING_ROWS, _TRAINING_ROWS_PER_LIST * lists_for(max(len(vectors), LEAST_FOR_LISTS)))
        )
        rows = np.sort(np.random.default_rng(0).choice(len(vectors), sample, replace=False))
        index.train(vectors.decoded(rows))
    for start in range(0, len(vectors), _ADDED_ROWS):
        progress(f"filling the {kind} index", start, len(vectors))
        index.add(np.ascontiguousarray(vectors.decoded(slice(start, start + _ADDED_ROWS))))
    try:
        faiss.write_index(index, str(path))
    except RuntimeError as error:
        raise UserError(f"{path}: cannot be written ({_line(error)}); make room and give the same command again") from None


class FaissSearch:
    """A `VectorSearch`. The index is memory-mapped; safe to call from several threads."""

    def __init__(self, vectors: Vectors, kind: str, path: Path, effort: int) -> None:
        """Open an index that `build_faiss` wrote. Raises UserError if it is of other vectors or cannot be read.

        Args:
            effort: value of the kind's knob; more finds more and takes longer.
        """
        try:
            self._index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise UserError(f"{path}: cannot be read ({_line(error)}); build the index again") from None
        if (self._index.ntotal, self._index.d) != (len(vectors), vectors.dimension):
            raise UserError(
                f"{path}: is over {self._index.ntotal} vectors of {self._index.d} numbers, beside it are {len(vectors)} of"
                f" {vectors.dimension}; build the index again"
            )
        parameters = faiss.ParameterSpace()
        if KINDS[kind].knob:
            parameters.set_index_parameter(self._index, KINDS[kind].knob, effort)
        if kind == "ivf":
            parameters.set_index_parameter(self._index, "k_factor_rf", REFINED)
        self._vectors = vectors

    def search(self, queries: NDArray[np.float32], k: int) -> Sequence[Found]:
        """At most `k` rows per query; fewer if the index finds fewer, which it says by row -1."""
        prepared = Queries.prepare(queries, self._vectors)
        _, rows_QK = self._index.search(prepared.values, min(k + _SPARE, len(self._vectors)))
        found = []
        for number, rows in enumerate(rows_QK):
            known = np.unique(rows[rows >= 0])
            scales = None if self._vectors.scales is None else self._vectors.scales[known]
            found.append(prepared.rank(number, known, self._vectors.values[known], scales, k))
        return found


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][-200:]
