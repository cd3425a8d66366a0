"""Many sequences side by side, so that one call speaks to all their tokens. Knows where they lie, not what they mean.

Axis suffixes: `_S` sequences, `_T` tokens of one sequence, `_N` trainable tokens of all sequences, in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.sequences import TokenSequence
from searchparty.credit.types import BoolArray, FloatArray


class Layout:
    """Where the trainable tokens of some sequences lie when these follow one another."""

    def __init__(self, sequences: Sequence[TokenSequence]) -> None:
        """
        Args:
            sequences: in the order of everything that goes in and comes out here.
        """
        count = len(sequences)
        lengths_S = np.fromiter((len(sequence.ids_T) for sequence in sequences), np.intp, count)
        self.tokens_S = np.fromiter((len(sequence.trained) for sequence in sequences), np.intp, count)
        """Number of trainable tokens."""
        self._ends = np.cumsum(lengths_S).tolist()
        self._starts = [0, *self._ends][:count]
        own_N = np.concatenate([np.zeros(0, np.intp), *(sequence.trained for sequence in sequences)])
        self._trained_N = own_N + np.repeat(np.asarray(self._starts, np.intp), self.tokens_S)

    def collect(self, arrays: Sequence[FloatArray]) -> NDArray[np.float32]:
        """What per-token arrays, one [T] a sequence, hold at the trainable tokens [N]."""
        whole: NDArray[np.float32] = np.concatenate([np.zeros(0, np.float32), *arrays])
        return np.asarray(whole[self._trained_N])

    def place(self, values_N: NDArray[np.floating]) -> list[FloatArray]:
        """The way back: one [T] a sequence, 0 where no token is trained."""
        whole = np.zeros(self._ends[-1] if self._ends else 0, dtype=np.float32)
        whole[self._trained_N] = values_N
        return [whole[start:end] for start, end in zip(self._starts, self._ends, strict=True)]

    def spread(self, values_S: NDArray[np.floating]) -> list[FloatArray]:
        """One value a sequence, at each of its trainable tokens."""
        return self.place(np.repeat(values_S, self.tokens_S))

    def split(self, values_N: NDArray[np.floating]) -> list[NDArray[np.floating]]:
        """Values of trainable tokens, cut into those of each sequence."""
        ends = np.cumsum(self.tokens_S).tolist()
        return [values_N[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def any(self, flags_N: BoolArray) -> BoolArray:
        """Which sequences have a flag at one of their trainable tokens at least [S]."""
        sequence_N = np.repeat(np.arange(len(self.tokens_S)), self.tokens_S)
        return np.bincount(sequence_N[flags_N], minlength=len(self.tokens_S)) > 0
