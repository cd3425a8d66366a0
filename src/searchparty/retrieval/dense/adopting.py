"""Takes over vectors that someone else has made, in corpus order: as they are, or in another storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from searchparty.errors import UserError
from searchparty.retrieval.building import Progress
from searchparty.retrieval.dense.encoder import Encoder
from searchparty.retrieval.dense.encoding import Encoded, append_numbers
from searchparty.retrieval.dense.flat_file import map_flat_index
from searchparty.retrieval.dense.vectors import FLAT_FILE, SCALES_FILE, VECTORS_FILE, Storage, store

_ROWS = 65_536


def adopt_vectors(
    source: Path, passages: int, encoder: Encoder, storage: Storage | None, folder: Path, progress: Progress
) -> Encoded:
    """Bring the vectors of a FAISS flat index into the empty `folder`.

    Args:
        source: the index; with `storage` None it stays where it is and is only pointed at.
        storage: the numbers to store copies in.

    Raises:
        UserError: another number of vectors than passages, another dimension than the encoder's, NaN or infinity.
    """
    given = map_flat_index(source)
    if len(given) != passages:
        raise UserError(
            f"{source}: holds {len(given)} vectors, the corpus {passages} passages; give the corpus that it was made from"
        )
    if given.shape[1] != encoder.dimension:
        raise UserError(
            f"{source}: its vectors have {given.shape[1]} numbers, those of {encoder.name} have {encoder.dimension}; give the"
            " model that it was made with"
        )
    if storage is None:
        (folder / FLAT_FILE).symlink_to(source.resolve())
    largest = 0.0
    for start in range(0, passages, _ROWS):
        progress("reading vectors", start, passages)
        block = np.array(given[start : start + _ROWS])
        unusable = np.flatnonzero(~np.isfinite(block).all(axis=1))
        if len(unusable):
            raise UserError(f"{source}: vector {start + int(unusable[0])} holds NaN or infinity; encode the passages again")
        stored = store(block, storage or "float32")
        largest = max(largest, stored.largest_norm)
        if storage is not None:
            append_numbers(folder / VECTORS_FILE, stored.values)
        if stored.scales is not None:
            append_numbers(folder / SCALES_FILE, stored.scales)
    return Encoded(passages, largest)
