"""Reads the container format GGUF, versions 2 and 3: metadata and where the tensors lie. Knows nothing of models.

The reader of the `gguf` package builds one array object per string, seconds for a vocabulary; this one reads what is needed.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from searchparty.errors import UserError, missing_package
from searchparty.files import require_file

MAGIC = b"GGUF"
STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Type numbers of the metadata values, as `struct` codes."""


@dataclass(frozen=True)
class TensorEntry:
    """Where one tensor lies. `shape` is in the order of numpy, rows first; `offset` counts from the start of the file."""

    name: str
    shape: tuple[int, ...]
    type_number: int
    offset: int


class GGUFFile:
    """One opened file: `metadata` by key and `tensors` by name."""

    def __init__(self, path: Path) -> None:
        """Raises UserError for a file that is not GGUF or is cut short."""
        self.path = path
        with require_file(path).open("rb") as stream:
            self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        try:
            self._read_header()
        except (struct.error, UnicodeDecodeError, KeyError, IndexError):
            raise UserError(f"{path}: the GGUF file is damaged or cut short; fetch it again") from None

    def _read_header(self) -> None:
        if self._bytes[:4] != MAGIC:
            raise UserError(f"{self.path}: not a GGUF file; give a GGUF file, a model folder or a model name")
        version, tensor_count, value_count = struct.unpack_from("<IQQ", self._bytes, 4)
        if version not in (2, 3):
            raise UserError(f"{self.path}: GGUF version {version} is not supported (2 and 3 are); convert the file anew")
        self._at = 24
        self.metadata: dict[str, Any] = {}
        for _ in range(value_count):
            key = self._string()
            self.metadata[key] = self._value(self._scalar("I"))
        entries = [self._entry() for _ in range(tensor_count)]
        alignment = self.metadata.get("general.alignment", 32)
        start = -(-self._at // alignment) * alignment
        self.tensors = {name: TensorEntry(name, shape, kind, start + offset) for name, shape, kind, offset in entries}

    def _entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        shape = tuple(self._scalar("Q") for _ in range(self._scalar("I")))[::-1]
        return name, shape, self._scalar("I"), self._scalar("Q")

    def _scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{code}")
        return value

    def _string(self) -> str:
        length = self._scalar("Q")
        raw = self._bytes[self._at : self._at + length]
        if len(raw) != length:
            raise IndexError
        self._at += length
        return raw.decode("utf-8")

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._scalar(SCALARS[kind])
        element, count = self._scalar("I"), self._scalar("Q")
        if element in SCALARS:
            code = f"<{count}{SCALARS[element]}"
            values = struct.unpack_from(code, self._bytes, self._at)
            self._at += struct.calcsize(code)
            return list(values)
        return [self._value(element) for _ in range(count)]

    def tensor(self, name: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """A tensor, dequantised to float32.

        Raises:
            UserError: if the file ends before the tensor does, or its quantisation is not known.
        """
        try:
            from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
            from gguf.quants import dequantize
        except ImportError:
            raise missing_package("gguf", "train", f"reading {self.path.name}") from None
        entry = self.tensors[name]
        try:
            kind = GGMLQuantizationType(entry.type_number)
            block_values, block_bytes = GGML_QUANT_SIZES[kind]
            row_bytes = entry.shape[-1] // block_values * block_bytes
            size = math.prod(entry.shape[:-1]) * row_bytes
            if entry.offset + size > len(self._bytes):
                raise UserError(f"{self.path}: the file ends inside tensor {name}; fetch it again")
            raw = np.frombuffer(self._bytes, dtype=np.uint8, count=size, offset=entry.offset)
            values = dequantize(raw.reshape(*entry.shape[:-1], row_bytes), kind)
        except (NotImplementedError, ValueError, KeyError):
            raise UserError(f"{self.path}: tensor {name} has an unknown quantisation (type {entry.type_number})") from None
        return np.ascontiguousarray(values.reshape(entry.shape), dtype=np.float32)

    def bits_per_weight(self, name: str) -> float:
        """How finely a tensor is stored."""
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        block_values, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(self.tensors[name].type_number)]
        return float(8 * block_bytes / block_values)
