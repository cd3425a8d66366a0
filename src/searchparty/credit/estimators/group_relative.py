"""Group-relative advantages: a sample is compared with others that started from the same place."""

from __future__ import annotations

from typing import Literal

import numpy as np

from searchparty.credit.estimators.base import Estimates, Estimator, GroupCounts, Samples
from searchparty.credit.reductions import numbered
from searchparty.episodes.groups import CandidateGroup, EpisodeGroup

EQUAL_WITHIN = 1e-6
"""Outcomes closer than this to their group's mean count as equal, so that rounding is not taken for a difference."""


class GroupRelative(Estimator):
    """A_k = coefficient · (R_k − mean) / deviation, the same at every trainable token of sequence k.

    Groups are explicit (contract 5): the episodes of one question, or the candidates of one call in one episode. A group is
    made of votes: an episode in the first case, whose sequences share the vote evenly however many agents of the role it had,
    and a candidate in the second. With n votes and share s_k = 1 / (sequences in the vote of k):

        mean = Σ s_k R_k / n        deviation² = Σ s_k (O_k − Σ s_k O_k / n)² / (n − 1)

    R is the whole reward, O its outcome without the KL penalty. A group of one vote, or of equal outcomes, gives advantage 0
    and is counted. The penalty is left out of the deviation because it is small and never exactly equal: divided by its own
    deviation, it would make noise as large as a right answer in every group in which nothing else differs.

    Source: Shao et al. 2024, DeepSeekMath, section 4.1.2 (outcome supervision); without deviation Liu et al. 2025,
    Understanding R1-Zero-like training, section 3.2.
    """

    needs_reward = True

    name: Literal["group-relative"] = "group-relative"
    compare: Literal["episodes", "candidates"]
    """What is compared: the episodes of one question, or the candidates of one call in one episode."""
    normalise: bool = True
    """Whether to divide by the deviation."""
    coefficient: float = 1.0

    def estimate(self, samples: Samples) -> Estimates:
        """See the class. Arrays with suffix `_S` have one entry per sequence, `_G` per group."""
        heads = samples.sequences.heads
        if not heads:
            return Estimates(np.zeros(0), groups=GroupCounts(0, 0, 0))
        keys = [head.key for head in heads]
        if self.compare == "episodes":
            group_S = numbered([EpisodeGroup(key.question_key) for key in keys])
            vote_S = numbered([(key.question_key, key.sample) for key in keys])
        else:
            calls = [(head.key.question_key, head.key.sample, head.key.agent, head.call) for head in heads]
            group_S = numbered([CandidateGroup(*call) for call in calls])
            vote_S = numbered(keys)
        share_S = 1.0 / np.bincount(vote_S)[vote_S]
        votes_G = np.rint(np.bincount(group_S, weights=share_S))

        total_S = samples.rewards.total_S
        outcome_S = samples.rewards.outcome_S
        mean_G = np.bincount(group_S, weights=share_S * total_S) / votes_G
        outcome_mean_G = np.bincount(group_S, weights=share_S * outcome_S) / votes_G
        difference_S = outcome_S - outcome_mean_G[group_S]
        largest_G = np.zeros(len(votes_G))
        np.maximum.at(largest_G, group_S, np.abs(difference_S))

        single_G, equal_G = votes_G == 1, largest_G <= EQUAL_WITHIN
        teaches_G = ~single_G & ~equal_G
        scale_G = np.zeros(len(votes_G))
        scale_G[teaches_G] = 1.0
        if self.normalise:
            variance_G = np.bincount(group_S, weights=share_S * difference_S**2)[teaches_G] / (votes_G[teaches_G] - 1)
            scale_G[teaches_G] = 1.0 / np.sqrt(variance_G)
        advantage_S = self.coefficient * (total_S - mean_G[group_S]) * scale_G[group_S]
        return Estimates(
            np.repeat(advantage_S, samples.layout.tokens_S),
            groups=GroupCounts(len(votes_G), int(single_G.sum()), int((equal_G & ~single_G).sum())),
        )
