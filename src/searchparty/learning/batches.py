"""Token sequences side by side in one row, without padding; and which sequences make a minibatch.

Knows token arrays; must not know losses or models. Axes: `_T` tokens of a row (or of one sequence), `_S` sequences of a row,
`_N` the row's selected tokens, those whose log-probability is wanted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from searchparty.credit.types import BoolArray, FloatArray, IntArray, SequenceKey


class Packable(Protocol):
    """What packing reads of a sequence: `credit.types.Signal` and `credit.sequences.TokenSequence` have it."""

    @property
    def key(self) -> SequenceKey: ...
    @property
    def role(self) -> str: ...
    @property
    def ids_T(self) -> IntArray: ...  # noqa: N802
    @property
    def trainable_T(self) -> BoolArray: ...  # noqa: N802


Item = TypeVar("Item", bound=Packable)


@dataclass(frozen=True)
class PackedRow(Generic[Item]):
    """One row of the model's input. Sequences must not see each other; `bounds_S` says where each begins.

    A sequence's tokens from its last selected one on are left out: nothing that is wanted depends on them.
    """

    sequences: Sequence[Item]
    places: Sequence[int]
    """Where each of them stands in what was packed."""
    selections: Sequence[NDArray[np.int64]]
    """For each sequence the indices of its selected tokens, ascending."""
    ids_T: torch.Tensor
    positions_T: torch.Tensor
    """Position of each token in its own sequence, from 0."""
    bounds_S: torch.Tensor
    """Begin of each sequence in the row, and the row's length: int32 [S + 1]."""
    longest: int
    """Tokens of the longest sequence in the row."""
    source_N: torch.Tensor
    """Where in the row the hidden state stands that predicts the selected token: one place before the token."""
    target_N: torch.Tensor
    """Ids of the selected tokens."""
    sequence_N: torch.Tensor
    """Index into `sequences` of each selected token."""

    def gather(self, array_of: Callable[[Item], FloatArray]) -> torch.Tensor:
        """A per-token array of every sequence at the selected tokens: float32 [N], on the row's device."""
        parts = [array_of(sequence)[chosen] for sequence, chosen in zip(self.sequences, self.selections, strict=True)]
        return torch.from_numpy(np.concatenate(parts).astype(np.float32)).to(self.ids_T.device)

    def scatter(self, values_N: torch.Tensor) -> list[FloatArray]:
        """The reverse of `gather`: for each sequence an array [its length] with 0 where no token was selected."""
        values = values_N.detach().float().cpu().numpy()
        arrays, begin = [], 0
        for sequence, chosen in zip(self.sequences, self.selections, strict=True):
            array = np.zeros(len(sequence.ids_T), np.float32)
            array[chosen] = values[begin : begin + len(chosen)]
            arrays.append(array)
            begin += len(chosen)
        return arrays


def pack(
    sequences: Sequence[Item], select: Callable[[Item], BoolArray], token_budget: int, device: torch.device
) -> list[PackedRow[Item]]:
    """Rows of at most `token_budget` tokens that hold every sequence with a selected token once, the fullest rows first.

    A sequence longer than the budget gets a row of its own.

    Raises:
        ValueError: if a sequence's first token is selected: nothing precedes it, so it has no log-probability.
    """
    chosen = [np.flatnonzero(select(sequence)) for sequence in sequences]
    for sequence, indices in zip(sequences, chosen, strict=True):
        if len(indices) and indices[0] == 0:
            raise ValueError(f"{sequence.key}: its first token is to be trained, but nothing precedes it")
    used = [place for place, indices in enumerate(chosen) if len(indices)]
    rows = fill_rows([int(chosen[place][-1]) for place in used], token_budget)
    return [_row(sequences, chosen, [used[index] for index in row], device) for row in rows]


def _row(
    packed: Sequence[Item], chosen: Sequence[NDArray[np.int64]], places: Sequence[int], device: torch.device
) -> PackedRow[Item]:
    sequences, selections = [packed[place] for place in places], [chosen[place] for place in places]
    lengths = [int(indices[-1]) for indices in selections]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.concatenate([sequence.ids_T[:length] for sequence, length in zip(sequences, lengths, strict=True)])
    source = np.concatenate([begin + indices - 1 for begin, indices in zip(bounds, selections, strict=False)])
    target = np.concatenate([sequence.ids_T[indices] for sequence, indices in zip(sequences, selections, strict=True)])
    positions = np.concatenate([np.arange(length) for length in lengths])

    def tensor(array: NDArray[np.integer], kind: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.from_numpy(array).to(device, kind)

    return PackedRow(
        sequences=sequences,
        places=places,
        selections=selections,
        ids_T=tensor(ids),
        positions_T=tensor(positions),
        bounds_S=tensor(bounds, torch.int32),
        longest=max(lengths),
        source_N=tensor(source),
        target_N=tensor(target),
        sequence_N=tensor(np.repeat(np.arange(len(sequences)), [len(indices) for indices in selections])),
    )


def fill_rows(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of `lengths` by row: best fit, longest first. No row exceeds `budget` unless it holds a single index."""
    rows: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (free tokens, row) of each row that has some, ascending
    for index in sorted(range(len(lengths)), key=lambda place: (-lengths[place], place)):
        best = bisect_left(room, (lengths[index], 0))
        if best == len(room):
            rows.append([index])
            left, row = budget - lengths[index], len(rows) - 1
        else:
            left, row = room.pop(best)
            rows[row].append(index)
            left -= lengths[index]
        if left > 0:
            insort(room, (left, row))
    return sorted(rows, key=lambda row: -sum(lengths[index] for index in row))


def split_minibatches(count: int, minibatches: int, *, seed: int, step: int) -> list[NDArray[np.int64]]:
    """The indices 0 to `count` - 1, shuffled by (seed, step), in `minibatches` parts whose sizes differ by at most one.

    Fewer parts if there are fewer indices: no part is empty.
    """
    order = np.random.default_rng([seed, step]).permutation(count)
    return [np.sort(part) for part in np.array_split(order, min(minibatches, count))]
