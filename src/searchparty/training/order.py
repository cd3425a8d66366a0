"""Which questions a step asks, and the seed of its episodes: pure functions of the run's seed, so that a resumed run goes on
with the same ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def questions_of_step(questions: Sequence[T], per_step: int, step: int, seed: int) -> list[T]:
    """The questions of step `step` (from 1). Each pass over all of them has an order of its own.

    A pass has as many whole steps as there are; the few questions left over are not asked in that pass, so that no step asks a
    question twice.

    Raises:
        ValueError: a step would need more questions than there are.
    """
    steps_per_pass = len(questions) // per_step
    if steps_per_pass == 0:
        raise ValueError(f"a step needs {per_step} questions, there are {len(questions)}")
    number, place = divmod(step - 1, steps_per_pass)
    order = np.random.default_rng([seed % 2**32, seed >> 32, number]).permutation(len(questions))
    return [questions[index] for index in order[place * per_step : (place + 1) * per_step]]


def derived_seed(seed: int, *names: str | int) -> int:
    """A seed below 2**63 for one part of a run, from the run's seed and the part's names."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
