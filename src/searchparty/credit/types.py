"""What credit hands to the learner: token arrays and nothing else.

Knows no model and no file. Axis suffix `_T`: tokens of one history.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]
IndexArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


class SequenceKey(NamedTuple):
    """Where a token sequence comes from: one agent's history in one episode, up to and with one candidate of its last call."""

    question_key: str
    sample: int
    agent: str
    candidate: int


@dataclass(slots=True)
class Signal:
    """What is learned from one sequence. All arrays have length T; entries at tokens that are not trainable are 0.

    The learner minimises the sum over tokens of `weights_T` times the token's loss, so how episodes of different length
    count is decided here and not in the learner (contract 6).
    """

    key: SequenceKey
    role: str
    ids_T: IntArray
    """The whole history, exactly as the engine was given it and sampled from it."""
    trainable_T: BoolArray
    """Tokens that the policy sampled. Born with the spans (contract 2), never derived from ids or text."""
    old_logprobs_T: FloatArray
    """Log-probability under the sampling policy."""
    advantages_T: FloatArray
    weights_T: FloatArray
    """Share of each token in the update's objective; over all sequences of an update they sum to 1 per role that learns, or
    to 1 in all, as the named reduction says."""
    returns_T: FloatArray | None = None
    """Targets of the critic; None for estimators without one."""
    values_T: FloatArray | None = None
    """What the critic said before the update, of which advantages and returns were made; None for estimators without one."""
    placed: InitVar[bool] = False
    """True only for arrays that `layout.Layout` made: they fit by construction and are not looked at once more."""

    def __post_init__(self, placed: bool) -> None:
        """Raises ValueError if an array has another length, or says something about a token that is not trainable."""
        if placed:
            return
        length = len(self.ids_T)
        arrays = {"old_logprobs_T": self.old_logprobs_T, "advantages_T": self.advantages_T, "weights_T": self.weights_T}
        if self.returns_T is not None:
            arrays["returns_T"] = self.returns_T
        if self.values_T is not None:
            arrays["values_T"] = self.values_T
        said_T = self.trainable_T
        for name, array in (("trainable_T", self.trainable_T), *arrays.items()):
            if array.shape != (length,):
                raise ValueError(f"{self.key}: {name} has shape {array.shape}, ids_T has {length} tokens")
            said_T = said_T | (array != 0)
        if np.count_nonzero(said_T) != np.count_nonzero(self.trainable_T):
            names = ", ".join(name for name, array in arrays.items() if array[~self.trainable_T].any())
            raise ValueError(f"{self.key}: {names} is not 0 at a token that is not trainable")
