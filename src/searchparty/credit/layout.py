"""Many sequences side by side, so that one call speaks to all their tokens. Knows where they lie, not what they mean.

Axis suffixes: `_S` sequences, `_T` tokens of one sequence, `_M` tokens of all sequences, `_N` their trainable tokens; both one
sequence after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.types import BoolArray, FloatArray, IndexArray

Entry = TypeVar("Entry", bound=np.generic)


class Layout:
    """Where the sequences lie, and where in them the trainable tokens."""

    def __init__(self, lengths_S: IndexArray, trainable_M: BoolArray) -> None:
        """
        Args:
            lengths_S: tokens of each sequence, in the order of everything that goes in and comes out here.
            trainable_M: which of all these tokens are trained.
        """
        self.lengths_S = lengths_S
        self.trainable_M = trainable_M
        ends_S = np.cumsum(lengths_S)
        self._trained_N = np.flatnonzero(trainable_M)
        trained_before_S = np.searchsorted(self._trained_N, ends_S)
        self.tokens_S: IndexArray = np.diff(trained_before_S, prepend=0)
        """Number of trainable tokens."""
        self._cuts = slices(ends_S)
        self._trained_cuts = slices(trained_before_S)

    def only(self, kept_S: BoolArray) -> Layout:
        """That of some of the sequences."""
        return Layout(self.lengths_S[kept_S], self.trainable_M[np.repeat(kept_S, self.lengths_S)])

    def cut(self, values_M: NDArray[Entry]) -> list[NDArray[Entry]]:
        """Values of all tokens, cut into those of each sequence [T]."""
        return [values_M[own] for own in self._cuts]

    def split(self, values_N: NDArray[Entry]) -> list[NDArray[Entry]]:
        """Values of trainable tokens, cut into those of each sequence."""
        return [values_N[own] for own in self._trained_cuts]

    def collect(self, arrays: Sequence[FloatArray]) -> FloatArray:
        """What per-token arrays, one [T] a sequence, hold at the trainable tokens [N]."""
        whole_M: FloatArray = np.concatenate([np.zeros(0, np.float32), *arrays])
        return whole_M[self._trained_N]

    def place(self, values_N: NDArray[np.floating[Any]]) -> list[FloatArray]:
        """The way back: one [T] a sequence, 0 where no token is trained."""
        whole_M = np.zeros(len(self.trainable_M), np.float32)
        whole_M[self._trained_N] = values_N
        return self.cut(whole_M)

    def spread(self, values_S: NDArray[np.floating[Any]]) -> list[FloatArray]:
        """One value a sequence, at each of its trainable tokens."""
        return self.place(np.repeat(values_S, self.tokens_S))

    def any(self, flags_N: BoolArray) -> BoolArray:
        """Which sequences have a flag at one of their trainable tokens at least [S]."""
        sequence_N = np.repeat(np.arange(len(self.tokens_S)), self.tokens_S)
        return np.bincount(sequence_N[flags_N], minlength=len(self.tokens_S)) > 0


def slices(ends_S: IndexArray) -> list[slice]:
    """Where things lie that follow one another from 0 on, each with its end."""
    ends = ends_S.tolist()
    return list(map(slice, [0, *ends], ends))
