"""Log-probabilities under a frozen model, over packed rows: what a teacher or a reference is asked for.

Knows token arrays; must not know why they are scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from searchparty.credit.types import BoolArray, FloatArray
from searchparty.learning.batches import Packable, pack
from searchparty.learning.faults import memory_advice
from searchparty.learning.logprobs import token_logprobs
from searchparty.learning.packed_model import PackedModel


class PackedScorer:
    """Scores sequences with `model`, a causal language model of transformers, whose weights it never changes."""

    def __init__(self, model: Any, tokens_per_pass: int) -> None:
        model.requires_grad_(False)
        self._packed = PackedModel(model)
        self._tokens_per_pass = tokens_per_pass

    def logprobs(self, sequences: Sequence[Packable]) -> list[FloatArray]:
        """Log-probabilities at temperature 1 of the trainable tokens, 0 elsewhere: one array [T] per sequence."""
        arrays = [np.zeros(len(sequence.ids_T), np.float32) for sequence in sequences]
        with memory_advice(self._tokens_per_pass, 1.0), self._packed.active(), torch.no_grad():
            for row in pack(sequences, _trainable, self._tokens_per_pass, self._packed.device):
                hidden = self._packed.hidden(row)
                logprobs, _ = token_logprobs(hidden, self._packed.head.weight, row.target_N, None)
                for place, array in zip(row.places, row.scatter(logprobs), strict=True):
                    arrays[place] = array
        return arrays


def _trainable(sequence: Packable) -> BoolArray:
    return sequence.trainable_T
