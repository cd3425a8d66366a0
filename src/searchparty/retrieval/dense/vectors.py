"""Vectors on disk, one after the other in corpus order, memory-mapped: as float32, float16, or int8 with a scale per vector.

An int8 vector v stands for scale · v with scale = max |component| / 127. Knows nothing of texts or models.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from searchparty.errors import UserError
from searchparty.retrieval.dense.flat_file import map_flat_index

Storage = Literal["float32", "float16", "int8"]
STORAGES: tuple[Storage, ...] = get_args(Storage)
VECTORS_FILE = "vectors.bin"
SCALES_FILE = "vector_scales.bin"
FLAT_FILE = "vectors.faiss"
"""A FAISS flat index of someone else's, in place of the two."""


@dataclass(frozen=True)
class Vectors:
    """Stored vectors. May be memory-mapped.

    Attributes:
        values: [vectors, dimension] in the dtype of the storage.
        scales: float32 [vectors] for int8, else None.
        largest_norm: no vector is longer than this.
    """

    values: NDArray[Any]
    scales: NDArray[np.float32] | None
    largest_norm: float

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self.values.shape[1])

    def decoded(self, rows: NDArray[np.int64] | slice) -> NDArray[np.float32]:
        """The vectors of some rows as float32 [rows, dimension]."""
        return decode(self.values[rows], None if self.scales is None else self.scales[rows])


def store(vectors: NDArray[np.float32], storage: Storage) -> Vectors:
    """Finite float32 vectors in the numbers of a storage. Raises UserError if float16 cannot hold a component."""
    scales: NDArray[np.float32] | None = None
    if storage == "int8":
        scales = (np.abs(vectors).max(axis=1, initial=0.0) / np.float32(127)).astype(np.float32)
        divisors = np.where(scales > 0, scales, np.float32(1))
        values: NDArray[Any] = np.clip(np.rint(vectors / divisors[:, None]), -127, 127).astype(np.int8)
    elif storage == "float16":
        largest = float(np.abs(vectors).max(initial=0.0))
        if largest > float(np.finfo(np.float16).max):
            raise UserError(f"a vector has a component of {largest:g}, more than float16 can hold; store float32 or int8")
        values = vectors.astype(np.float16)
    else:
        values = vectors
    norms = np.linalg.norm(decode(values, scales).astype(np.float64), axis=1)
    return Vectors(values, scales, float(norms.max(initial=0.0)))


def decode(values: NDArray[Any], scales: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """Stored numbers as float32 vectors."""
    vectors: NDArray[np.float32] = np.asarray(values, dtype=np.float32)
    return vectors if scales is None else vectors * scales[:, None]


def load_vectors(folder: Path, storage: Storage, count: int, dimension: int, largest_norm: float) -> Vectors:
    """Open the vectors of an index folder by memory map. Raises UserError if the files hold another number of them."""
    if (folder / FLAT_FILE).exists():
        adopted = map_flat_index(folder / FLAT_FILE)
        if adopted.shape != (count, dimension):
            raise UserError(
                f"{folder / FLAT_FILE}: holds {' x '.join(map(str, adopted.shape))} numbers, {count} x {dimension} are needed"
            )
        return Vectors(adopted, None, largest_norm)
    values = _map(folder / VECTORS_FILE, np.dtype(storage), (count, dimension))
    scales = _map(folder / SCALES_FILE, np.dtype(np.float32), (count,)) if storage == "int8" else None
    return Vectors(values, scales, largest_norm)


def _map(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    needed = int(np.prod(shape)) * dtype.itemsize
    found = path.stat().st_size if path.is_file() else 0
    if found != needed:
        raise UserError(
            f"{path}: has {found} bytes, {needed} are needed for {' x '.join(map(str, shape))} numbers of {dtype.name}; build"
            " the index again with: searchparty index build --overwrite"
        )
    # Copy on write: torch has no read-only tensors, and nothing that is written would reach the file.
    return np.memmap(path, dtype=dtype, mode="c", shape=shape)
