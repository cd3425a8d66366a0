"""Arrays and bytes that stay on disk and are read page by page as they are used."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array of numbers in numpy's own format."""
    np.save(path, array, allow_pickle=False)


def new_array(path: Path, dtype: type[np.generic], length: int) -> NDArray[Any]:
    """A writable array of zeros in a file, in the form of `save_array`.

    Its place on the disk is taken at once: a mapped file that finds the disk full later would end the process without a word.

    Raises:
        OSError: there is no room.
    """
    array = open_memmap(path, mode="w+", dtype=dtype, shape=(length,))
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, path.stat().st_size)
    return array


def map_array(path: Path) -> NDArray[Any]:
    """Open an array written by `save_array`, read-only."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def map_bytes(path: Path) -> mmap.mmap | bytes:
    """Open a file as read-only bytes; an empty file, which cannot be mapped, gives empty bytes."""
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
