"""Reads the vectors out of a FAISS flat index by memory map, without FAISS and without copying them.

Layout, little-endian: the letters `IxFI` (dot product) or `IxF2` (squared distance), dimension (int32), vectors (int64), two
unused int64, one byte, the metric (int32), the number of floats (uint64), the floats.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchparty.errors import UserError
from searchparty.files import require_file

_HEADER = struct.Struct("<4siqqqBiQ")


def map_flat_index(path: Path) -> NDArray[Any]:
    """Vectors of a flat index of dot products, float32 [vectors, dimension].

    Raises:
        UserError: no such file, another kind of index, or one that is cut short.
    """
    size = require_file(path).stat().st_size
    with path.open("rb") as stream:
        head = stream.read(_HEADER.size)
    kind = head[:4]
    if kind in (b"IxF2", b"IxFl"):
        raise UserError(f"{path}: is a flat index of distances, one of dot products (inner product) is needed")
    if kind != b"IxFI" or len(head) < _HEADER.size:
        raise UserError(f"{path}: is no FAISS flat index; give one, or leave it out and have the passages encoded")
    _, dimension, count, _, _, _, _, floats = _HEADER.unpack(head)
    needed = _HEADER.size + 4 * count * dimension
    if floats != count * dimension or size != needed:
        raise UserError(
            f"{path}: has {size} bytes, {needed} are needed for its {count} vectors of {dimension} numbers; was its download or"
            " copy cut off?"
        )
    return np.memmap(path, dtype=np.float32, mode="c", offset=_HEADER.size, shape=(count, dimension))
