"""How much each token counts: from numbers of tokens to weights that sum to 1.

Every reduction gives one weight per sequence, which each of its trainable tokens carries. Axis suffix `_S`: sequences that take
part, all of which have at least one trainable token.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ReductionName = Literal["token-mean", "sequence-mean", "episode-mean"]
ReductionScope = Literal["all", "role"]

CountArray = NDArray[np.int64]
WeightArray = NDArray[np.float64]


def token_mean(tokens_S: CountArray, episode_S: CountArray) -> WeightArray:
    """1 / (all tokens). Every token counts the same, so long sequences and chatty episodes count more."""
    return np.full(len(tokens_S), 1.0 / tokens_S.sum())


def sequence_mean(tokens_S: CountArray, episode_S: CountArray) -> WeightArray:
    """1 / (sequences · tokens of the sequence). Every sequence counts the same, so episodes with many agents count more."""
    return 1.0 / (len(tokens_S) * tokens_S)


def episode_mean(tokens_S: CountArray, episode_S: CountArray) -> WeightArray:
    """1 / (episodes · tokens of the episode). Every episode has one vote, shared evenly by its tokens (contract 6)."""
    tokens_E = np.bincount(episode_S, weights=tokens_S)
    return np.asarray(1.0 / (np.count_nonzero(tokens_E) * tokens_E[episode_S]))


REDUCTIONS: Mapping[ReductionName, Callable[[CountArray, CountArray], WeightArray]] = {
    "token-mean": token_mean,
    "sequence-mean": sequence_mean,
    "episode-mean": episode_mean,
}


def token_weights(
    name: ReductionName,
    scope: ReductionScope,
    tokens: Sequence[int] | CountArray,
    episodes: Sequence[Hashable],
    roles: Sequence[str],
) -> WeightArray:
    """The weight of each trainable token of every sequence [S].

    Args:
        scope: `all` makes the weights of all tokens together sum to 1. `role` makes those of each role sum to 1, and a vote of
            an episode is then one within each role.
        tokens: trainable tokens per sequence, each at least 1.
        episodes: which episode a sequence comes from.
        roles: which role it is of.
    """
    tokens_S = np.asarray(tokens, dtype=np.int64)
    episode_S = numbered(episodes)
    scope_S = numbered(roles) if scope == "role" else np.zeros(len(tokens_S), dtype=np.int64)
    weights_S = np.zeros(len(tokens_S))
    for number in np.unique(scope_S):
        members = scope_S == number
        weights_S[members] = REDUCTIONS[name](tokens_S[members], episode_S[members])
    return weights_S


def numbered(labels: Sequence[Hashable]) -> CountArray:
    """Labels as numbers from 0, in the order in which they first appear."""
    number_of = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.fromiter(map(number_of.__getitem__, labels), np.int64, len(labels))
