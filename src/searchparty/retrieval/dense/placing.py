"""Stored vectors where they are searched: in the memory map of the CPU, or copied once onto one or several cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from searchparty.errors import UserError
from searchparty.retrieval.dense.devices import find_device
from searchparty.retrieval.dense.vectors import Vectors

try:
    from searchparty.retrieval.dense.fused import can_fuse, fused_maxima, fused_scores
except ImportError:  # Triton comes with torch for cards only
    can_fuse = fused_maxima = fused_scores = None  # type: ignore[assignment]

_COPY_ROWS = 262_144
_WORKSPACE = 2 << 30
"""Bytes kept free on a card for scores and maxima."""
_GATHERED_BYTES = 256 << 20
"""Vectors copied together at one time."""


@dataclass(frozen=True)
class Shard:
    """Consecutive rows on one device.

    Attributes:
        first_row: row in the corpus of its first vector.
        values: [rows, dimension] in the dtype of the storage.
        scales: float32 [rows] for int8, else None.
    """

    first_row: int
    values: torch.Tensor
    scales: torch.Tensor | None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        return self.values.device

    @property
    def arithmetic(self) -> torch.dtype:
        """What is multiplied: float16 on a card unless the vectors are float32; CPUs are fast in float32 only."""
        narrow = self.values.dtype != torch.float32 and self.device.type == "cuda"
        return torch.float16 if narrow else torch.float32

    def scores(self, queries: torch.Tensor, start: int, end: int) -> torch.Tensor:
        """Fast scores of rows start to end, float32 [queries, rows]. Sums are kept in float32 whatever is multiplied."""
        block = self.values[start:end].to(self.arithmetic)
        narrow = self.arithmetic == torch.float16
        scores = torch.mm(queries, block.T, out_dtype=torch.float32) if narrow else queries @ block.T
        return scores if self.scales is None else scores.mul_(self.scales[start:end])

    def group_maxima(self, queries: torch.Tensor, group_rows: int, block_rows: int) -> torch.Tensor:
        """The best fast score of each group of consecutive rows, float32 [queries, groups]; the last group may be short.

        Args:
            block_rows: rows whose scores exist at one time, a multiple of `group_rows`.
        """
        groups = -(-len(self) // group_rows)
        if self._can_fuse(group_rows):
            return fused_maxima(queries, self.values, self.scales, group_rows)
        maxima_QG = torch.empty((len(queries), groups), device=self.device)
        for start in range(0, len(self), block_rows):
            end = min(start + block_rows, len(self))
            scores = self.scores(queries, start, end)
            first, missing = start // group_rows, -(end - start) % group_rows
            if missing:
                scores = torch.nn.functional.pad(scores, (0, missing), value=-torch.inf)
            grouped = scores.view(len(queries), -1, group_rows)
            torch.amax(grouped, dim=2, out=maxima_QG[:, first : first + grouped.shape[1]])
        return maxima_QG

    def scores_of_groups(
        self, queries: torch.Tensor, groups_QK: torch.Tensor, group_rows: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows within the shard, int64, and fast scores, float32, of all rows of some groups, each [queries, rows].

        A row behind the last one scores minus infinity.
        """
        offsets = torch.arange(group_rows, device=self.device)
        rows_QR = (groups_QK[:, :, None] * group_rows + offsets).flatten(1)
        beyond_QR = rows_QR >= len(self)
        rows_QR = rows_QR.clamp(max=len(self) - 1)
        if self._can_fuse(group_rows):
            return rows_QR, fused_scores(queries, self.values, self.scales, groups_QK, group_rows)
        return rows_QR, self._sums(queries, rows_QR, torch.float32).masked_fill_(beyond_QR, -torch.inf)

    def sums(self, queries: torch.Tensor, rows_QR: torch.Tensor) -> torch.Tensor:
        """Products of the queries and some rows of the shard, times the rows' scales, float64 [queries, rows]."""
        return self._sums(queries, rows_QR, torch.float64)

    def _sums(self, queries: torch.Tensor, rows_QR: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        sums_QR = torch.empty(rows_QR.shape, dtype=dtype, device=self.device)
        at_a_time = max(1, _GATHERED_BYTES // (dtype.itemsize * rows_QR.shape[1] * self.values.shape[1]))
        for start in range(0, len(queries), at_a_time):
            rows = rows_QR[start : start + at_a_time]
            products = torch.bmm(self.values[rows].to(dtype), queries[start : start + at_a_time, :, None].to(dtype))
            sums_QR[start : start + at_a_time] = products[:, :, 0]
        return sums_QR if self.scales is None else sums_QR.mul_(self.scales[rows_QR].to(dtype))

    def _can_fuse(self, group_rows: int) -> bool:
        """Whether the kernels for cards take these vectors in groups of this size."""
        return self.arithmetic == torch.float16 and can_fuse is not None and can_fuse(group_rows)

    def gather(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
        """Values and scales of those of the ascending corpus rows that lie in this shard."""
        first, last = np.searchsorted(rows, (self.first_row, self.first_row + len(self)))
        places = torch.from_numpy(rows[first:last] - self.first_row).to(self.device)
        scales = None if self.scales is None else self.scales[places].cpu().numpy()
        return self.values[places].cpu().numpy(), scales


def place(
    vectors: Vectors, devices: Sequence[str], free_bytes: Callable[[torch.device], int | None] | None = None
) -> list[Shard]:
    """Divide the rows evenly among the devices; one that is named twice gets two shares.

    Args:
        free_bytes: bytes free on a device, None for no limit; by default the card is asked.

    Raises:
        UserError: no such device, or one without the room.
    """
    targets = [find_device(name) for name in devices]
    if not targets:
        raise UserError("no device is named for the vectors; use cpu, cuda, or cuda:0,cuda:1")
    bounds = np.linspace(0, len(vectors), len(targets) + 1).astype(int).tolist()
    parts = list(zip(targets, bounds[:-1], bounds[1:], strict=True))
    row_bytes = vectors.values.dtype.itemsize * vectors.dimension + (0 if vectors.scales is None else 4)
    for device in dict.fromkeys(targets):
        rows = sum(end - start for target, start, end in parts if target == device)
        _check_room(device, rows * row_bytes, (free_bytes or _free_bytes)(device))
    return [_shard(vectors, device, start, end) for device, start, end in parts if end > start]


def _free_bytes(device: torch.device) -> int | None:
    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else None


def _check_room(device: torch.device, needed: int, free: int | None) -> None:
    if free is not None and needed + _WORKSPACE > free:
        raise UserError(
            f"device {device}: the vectors need {(needed + _WORKSPACE) / 1e9:.1f} GB there, {free / 1e9:.1f} GB are free; name"
            " more cards, store the vectors as float16 or int8, or search on the cpu"
        )


def _shard(vectors: Vectors, device: torch.device, start: int, end: int) -> Shard:
    return Shard(
        start,
        _copy(vectors.values[start:end], device),
        None if vectors.scales is None else _copy(vectors.scales[start:end], device),
    )


def _copy(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    """A tensor on the device; on the CPU it is a view of the array itself. Cards are filled piece by piece."""
    if device.type == "cpu":
        return torch.from_numpy(array)
    tensor = torch.empty(array.shape, dtype=torch.from_numpy(array[:0]).dtype, device=device)
    for start in range(0, len(array), _COPY_ROWS):
        tensor[start : start + _COPY_ROWS].copy_(torch.from_numpy(array[start : start + _COPY_ROWS]))
    return tensor
