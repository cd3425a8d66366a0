"""Arrays and bytes that stay on disk and are read page by page as they are used."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array of numbers in numpy's own format."""
    np.save(path, array, allow_pickle=False)


def map_array(path: Path) -> NDArray[Any]:
    """Open an array written by `save_array`, read-only."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def map_bytes(path: Path) -> mmap.mmap | bytes:
    """Open a file as read-only bytes; an empty file, which cannot be mapped, gives empty bytes."""
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
