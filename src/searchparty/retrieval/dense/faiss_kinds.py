"""The FAISS indexes that can be built over stored vectors, as data. Knows names only, not FAISS."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from searchparty.errors import UserError

FAISS_FILE = "faiss.index"
"""The file of such an index in the folder of a dense one."""
EXACT = "exact"
"""No FAISS index: every vector is compared."""
_TRAINING_VECTORS_PER_LIST = 39
"""Below this FAISS warns that its clusters are badly trained."""
LEAST_FOR_LISTS = 16 * _TRAINING_VECTORS_PER_LIST
"""A 4-bit quantiser has 16 clusters of its own."""


@dataclass(frozen=True)
class FaissKind:
    """One kind of index.

    Attributes:
        recipe: FAISS's factory string for a number of vectors and a dimension.
        knob: FAISS's name of the parameter that trades speed for recall; empty if there is none.
        efforts: values of the knob to choose from, ascending, for a number of vectors.
    """

    recipe: Callable[[int, int], str]
    knob: str
    efforts: Callable[[int], list[int]]


def lists_for(vectors: int) -> int:
    """Number of clusters for at least `LEAST_FOR_LISTS` vectors.

    Four times the square root of the vectors as a power of two, or fewer if there are too few vectors to train each.
    """
    wanted = 1 << round(math.log2(4 * math.sqrt(vectors)))
    return min(wanted, vectors // _TRAINING_VECTORS_PER_LIST)


def _inverted_lists(vectors: int, dimension: int) -> str:
    if dimension % 4:
        raise UserError(
            f"an ivf index needs vectors whose length is a multiple of 4, these have {dimension}; choose hnsw or sq8"
        )
    if vectors < LEAST_FOR_LISTS:
        raise UserError(f"an ivf index needs {LEAST_FOR_LISTS} passages to be trained, here are {vectors}; choose exact")
    return f"IVF{lists_for(vectors)},PQ{dimension // 4}x4fs,Refine(SQ8)"


def _probes(vectors: int) -> list[int]:
    lists = lists_for(vectors)
    return [*(2**power for power in range(3, 20) if 2**power < lists), lists]


KINDS = {
    "flat": FaissKind(lambda vectors, dimension: "Flat", "", lambda vectors: [0]),
    "ivf": FaissKind(_inverted_lists, "nprobe", _probes),
    "hnsw": FaissKind(lambda vectors, dimension: "HNSW32", "efSearch", lambda vectors: [64, 128, 256, 512, 1024]),
    "sq8": FaissKind(lambda vectors, dimension: "SQ8", "", lambda vectors: [0]),
}
"""Kinds by name. `ivf`: clusters, 4-bit product quantisation scanned in registers, refined by 8-bit vectors; small and fast,
for millions of passages. `hnsw`: a graph; fast, large, slow to build. `sq8`: a scan over 8-bit vectors. `flat`: a scan over all
numbers."""
REFINED = 16
"""How many times more candidates than hits an `ivf` index refines."""
SEARCHES = (EXACT, *KINDS)
"""Every way to search stored vectors."""
