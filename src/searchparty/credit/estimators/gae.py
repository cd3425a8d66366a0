"""Generalised advantage estimation over the tokens that the policy chose, and over no others (contract 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from searchparty.credit.estimators.base import Estimates, Estimator, Sample, layout_of
from searchparty.credit.types import FloatArray

BLOCK = 256
"""Sequences of similar length that are worked on at once; bounds the memory that one long sequence costs."""


class GeneralisedAdvantage(Estimator):
    """A_k = δ_k + γλ A_{k+1} with δ_k = r_k + γ V_{k+1} − V_k, and the critic's target A_k + V_k.

    k counts trainable tokens only, over all turns of the sequence: the token after the last of one turn is the first of the
    next, whatever was observed between them. After the last, V and A are 0. The last trainable token gets the sequence's whole
    reward; each token, the last included, loses its own penalty for the distance from the reference. Values elsewhere are never
    read.

    Sources: Schulman et al. 2015, High-dimensional continuous control using generalized advantage estimation, equations
    (11) to (16); the rewards of tokens as in Ouyang et al. 2022.
    """

    needs_reward = True
    needs_values = True

    name: Literal["gae"] = "gae"
    discount: Annotated[float, Field(ge=0, le=1)] = 1.0
    """γ, per trainable token."""
    trace_decay: Annotated[float, Field(ge=0, le=1)] = 1.0
    """λ."""
    whitening: Literal["none", "tokens"] = "none"
    """`tokens`: the advantages of all the role's tokens of a batch together are brought to mean 0 and deviation 1; the critic's
    targets are not. With equal advantages everywhere they become 0."""
    coefficient: float = 1.0
    """Scales the advantages, not the critic's targets."""

    def estimate(self, samples: Sequence[Sample]) -> Estimates:
        """See the class. Raises ValueError if a sample with trainable tokens has no values."""
        for sample in samples:
            if sample.values_T is None and sample.tokens:
                raise ValueError(f"{sample.sequence.key}: the critic gave no values")
        layout = layout_of(samples)
        values_N = layout.collect([_or_zeros(sample.values_T, sample) for sample in samples])
        rewards_N = -layout.collect([_or_zeros(sample.reference_penalty_T, sample) for sample in samples]).astype(np.float64)
        speaks_S = layout.tokens_S > 0
        last = np.cumsum(layout.tokens_S)[speaks_S] - 1
        rewards_N[last] += np.array([sample.reward.outcome - sample.reward.penalty for sample in samples])[speaks_S]
        chosen = generalised_advantages(layout.split(rewards_N), layout.split(values_N), self.discount, self.trace_decay)
        advantages_N = np.concatenate([np.zeros(0), *chosen])
        used_N = whitened(advantages_N) if self.whitening == "tokens" else advantages_N
        return Estimates(layout.place(self.coefficient * used_N), layout.place(advantages_N + values_N))


def _or_zeros(array_T: FloatArray | None, sample: Sample) -> FloatArray:
    return np.zeros(len(sample.sequence.ids_T), np.float32) if array_T is None else array_T


def whitened(advantages_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """All entries together with mean 0 and deviation 1; 0 if they are equal up to rounding."""
    every = np.sort(advantages_N)  # so that sums are those of any order
    if not every.size:
        return advantages_N
    mean, deviation = every.mean(), every.std()
    if deviation <= 1e-8 * max(1.0, np.abs(every).max()):
        return np.zeros_like(advantages_N)
    return np.asarray((advantages_N - mean) / deviation)


def generalised_advantages(
    rewards: Sequence[NDArray[np.floating]], values: Sequence[NDArray[np.floating]], discount: float, trace_decay: float
) -> list[NDArray[np.float64]]:
    """The recursion, over many sequences at once.

    Args:
        rewards: per sequence, one entry per trainable token.
        values: of the same lengths.
    """
    lengths = [len(value) for value in values]
    shortest_first = sorted(range(len(values)), key=lengths.__getitem__)
    advantages: list[NDArray[np.float64]] = [np.zeros(0)] * len(values)
    for start in range(0, len(values), BLOCK):
        block = shortest_first[start : start + BLOCK]
        found = _block_advantages([rewards[n] for n in block], [values[n] for n in block], discount, trace_decay)
        for number, advantage in zip(block, found, strict=True):
            advantages[number] = advantage
    return advantages


def _block_advantages(
    rewards: Sequence[NDArray[np.floating]], values: Sequence[NDArray[np.floating]], discount: float, trace_decay: float
) -> list[NDArray[np.float64]]:
    """The recursion in one matrix: rows are tokens, columns are sequences that end in the same row."""
    longest = max(len(value) for value in values)
    reward_KS, value_KS = np.zeros((longest, len(values))), np.zeros((longest + 1, len(values)))
    for number, (reward, value) in enumerate(zip(rewards, values, strict=True)):
        reward_KS[longest - len(value) :, number] = reward
        value_KS[longest - len(value) : longest, number] = value
    advantage_KS = reward_KS + discount * value_KS[1:] - value_KS[:-1]
    for row in range(longest - 2, -1, -1):
        advantage_KS[row] += discount * trace_decay * advantage_KS[row + 1]
    return [advantage_KS[longest - len(value) :, number] for number, value in enumerate(values)]
