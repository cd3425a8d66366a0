"""Whether stored vectors are those of the passages beside them, by the encoder at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from searchparty.errors import UserError
from searchparty.retrieval.dense.encoder import SAME_VECTOR, Encoder, checked
from searchparty.retrieval.dense.vectors import Vectors
from searchparty.retrieval.store import PassageStore

_PROBES = 3


def refuse_other_vectors(place: Path, passages: PassageStore, vectors: Vectors, encoder: Encoder, built_with: str) -> None:
    """Encode the first, the middle and the last passage again and compare.

    Raises:
        UserError: another model, pooling or prefix, or another order of passages; all of these show at once.
    """
    rows = np.unique(np.linspace(0, len(passages) - 1, _PROBES).astype(np.int64))
    texts = [passages[row].contents for row in rows.tolist()]
    encoded = checked(encoder.encode_passages(texts), len(texts), encoder)
    stored = vectors.decoded(rows)
    distances = np.linalg.norm(encoded - stored, axis=1)
    lengths = np.maximum(np.linalg.norm(encoded, axis=1), np.linalg.norm(stored, axis=1))
    strange = np.flatnonzero(~(distances <= SAME_VECTOR * lengths))
    if len(strange):
        row = int(rows[strange[0]])
        raise UserError(
            f"{place}: the vector of passage {passages[row].id!r} (row {row}) is not what {encoder.name} makes of it; use"
            f" {built_with} with the prefixes and pooling that made the vectors, or encode the passages again: the vectors may"
            " be in another order"
        )
