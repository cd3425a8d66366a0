"""Generalised advantage estimation over the tokens that the policy chose, and over no others (contract 7)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from searchparty.credit.estimators.base import Estimates, Estimator, Samples
from searchparty.credit.types import IndexArray


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

    def estimate(self, samples: Samples) -> Estimates:
        """See the class. Raises ValueError if the critic said nothing of a sequence with trainable tokens."""
        tokens_S, penalty_N, critic = samples.layout.tokens_S, samples.reference_penalty_N, samples.critic
        nothing_N = np.zeros_like(samples.old_logprobs_N)
        speaks_S = tokens_S > 0
        unvalued_S = speaks_S if critic is None else speaks_S & ~critic.known_S
        if unvalued_S.any():
            raise ValueError(f"{samples.sequences.heads[int(unvalued_S.argmax())].key}: the critic gave no values")
        values_N = (nothing_N if critic is None else critic.said_N).astype(np.float64)
        rewards_N = -(nothing_N if penalty_N is None else penalty_N).astype(np.float64)
        last = np.cumsum(tokens_S)[speaks_S] - 1
        rewards_N[last] += (samples.rewards.outcome_S - samples.rewards.penalty_S)[speaks_S]
        advantages_N = generalised_advantages(rewards_N, values_N, tokens_S, self.discount, self.trace_decay)
        used_N = whitened(advantages_N) if self.whitening == "tokens" else advantages_N
        return Estimates(self.coefficient * used_N, advantages_N + values_N)


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
    rewards_N: NDArray[np.floating], values_N: NDArray[np.floating], tokens_S: IndexArray, discount: float, trace_decay: float
) -> NDArray[np.float64]:
    """The recursion, from the last token back, in all sequences at once [N].

    Step k is one operation on the tokens that exactly k others follow: those of the sequences that are long enough, which stand
    first if the longest does. Nothing is padded.

    Args:
        rewards_N: one entry per trainable token, sequence after sequence.
        values_N: likewise.
        tokens_S: number of trainable tokens of each sequence.
    """
    ends_S = np.cumsum(tokens_S)
    ahead_N = np.append(values_N[1:], 0.0)
    ahead_N[ends_S[tokens_S > 0] - 1] = 0.0
    advantages_N = np.asarray(rewards_N + discount * ahead_N - values_N, np.float64)
    longer_than = (len(tokens_S) - np.cumsum(np.bincount(tokens_S))).tolist()
    places = ends_S[np.argsort(-tokens_S, kind="stable")]
    for following, sequences in enumerate(longer_than):
        places = places[:sequences] - 1
        if following:
            advantages_N[places] += discount * trace_decay * advantages_N[places + 1]
    return advantages_N
