"""Whether sequences were compared with those that the plan declares, and with enough of them (contract 5)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from searchparty.credit.plan import CreditPlan
from searchparty.episodes.types import Episode
from searchparty.training.audit_report import Proved, Rule, Violation, of_episode, of_sequence
from searchparty.training.audit_sequences import Paired
from searchparty.training.grouping import group_name


def attempt_faults(episodes: Sequence[Episode], samples: int | None) -> Iterator[Violation]:
    """Questions that were not attempted as often as declared, and attempts that are there twice.

    Args:
        samples: declared attempts per question; None if that is not known.
    """
    attempts: dict[str, list[int]] = {}
    for episode in episodes:
        attempts.setdefault(episode.question_key, []).append(episode.sample)
    for question, found in attempts.items():
        expected = list(range(len(found) if samples is None else samples))
        if sorted(found) != expected:
            unexpected = next((sample for sample in found if found.count(sample) > 1 or sample not in expected), None)
            missing = next((sample for sample in expected if sample not in found), None)
            sample = unexpected if unexpected is not None else missing
            assert sample is not None
            yield of_episode((question, sample), Rule.GROUPS, "samples of the question", sorted(found), expected)


def group_faults(paired: Paired, plan: CreditPlan, proved: Proved) -> Iterator[Violation]:
    """Advantages where there was nothing to compare with: in a group of a single vote.

    A vote is an episode in a group of episodes, and a candidate in a group of candidates.
    """
    votes: dict[tuple[str, str], set[Hashable]] = {}
    for history in [*(one.history for one in paired.trained), *paired.empty]:
        name = group_name(plan.roles[history.role], history.key, history.call)
        if name:
            key = history.key
            vote = (key.question_key, key.sample) if name == f"episodes of {key.question_key}" else key
            votes.setdefault((history.role, name), set()).add(vote)
    single = {group for group, members in votes.items() if len(members) == 1}
    proved.groups += len(votes)
    proved.singletons += len(single)
    for one in paired.trained:
        name = one.recorded.group
        if (one.history.role, name) in single and np.count_nonzero(one.recorded.advantages_T):
            token = int(np.flatnonzero(one.recorded.advantages_T)[0])
            found, expected = one.recorded.advantages_T[token], f"0: {name!r} has one vote"
            near = one.history.near(token)
            yield of_sequence(one.history.key, Rule.GROUPS, "advantages", found, expected, token, near)
