"""Writing tensors to safetensors files with the faults of the disk as what they are: OSError, with the number that says why."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

_NUMBER = re.compile(r"os error (\d+)")


def write_tensors(tensors: Mapping[str, torch.Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write contiguous tensors.

    Raises:
        OSError: the file cannot be written, for instance because the disk is full.
    """
    try:
        save_file(dict(tensors), path, metadata=metadata)
    except SafetensorError as error:
        found = _NUMBER.search(str(error))
        if found is None and "I/O" not in str(error):
            raise
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from error
