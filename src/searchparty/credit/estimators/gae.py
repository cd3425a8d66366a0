"""Generalised advantage estimation over the tokens that the policy chose, and over no others (contract 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from searchparty.credit.estimators.base import Estimates, Estimator, Sample, per_token

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
        values = []
        for sample in samples:
            if sample.values_T is None and sample.tokens:
                raise ValueError(f"{sample.sequence.key}: the critic gave no values")
            values.append(np.zeros(0) if sample.values_T is None else sample.values_T[sample.sequence.trained])
        rewards = [np.zeros(len(value)) for value in values]
        for reward, sample in zip(rewards, samples, strict=True):
            reward[-1:] = sample.reward.outcome - sample.reward.penalty
            if sample.reference_penalty_T is not None:
                reward -= sample.reference_penalty_T[sample.sequence.trained]
        raw = generalised_advantages(rewards, values, self.discount, self.trace_decay)
        used = whitened(raw) if self.whitening == "tokens" else raw
        advantages, returns = [], []
        for sample, own, advantage, value in zip(samples, raw, used, values, strict=True):
            advantages.append(per_token(sample.sequence, self.coefficient * advantage))
            returns.append(per_token(sample.sequence, own + value))
        return Estimates(advantages, returns)


def whitened(advantages: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """All entries together with mean 0 and deviation 1; 0 if they are equal up to rounding."""
    if not advantages or not (every := np.sort(np.concatenate(advantages))).size:  # sorted: sums are those of any order
        return list(advantages)
    mean, deviation = every.mean(), every.std()
    if deviation <= 1e-8 * max(1.0, np.abs(every).max()):
        return [np.zeros_like(one) for one in advantages]
    return [(one - mean) / deviation for one in advantages]


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
