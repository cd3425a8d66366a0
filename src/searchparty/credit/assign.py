"""Credit for one batch of episodes: from what happened, and what is known of it, to what every token learns.

Knows the plan's words and no algorithm by name. Draws nothing at random: equal input gives equal output.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from searchparty.credit.estimators.base import Estimates, Sample
from searchparty.credit.evidence import Evidence
from searchparty.credit.gathering import Gathered, gather
from searchparty.credit.layout import Layout
from searchparty.credit.plan import CreditPlan
from searchparty.credit.reductions import token_weights
from searchparty.credit.result import CreditResult, RoleCounts
from searchparty.credit.reward_mix import Reward
from searchparty.credit.suspicions import suspicions
from searchparty.credit.types import FloatArray, Signal
from searchparty.episodes.types import Episode


def assign_credit(episodes: Sequence[Episode], plan: CreditPlan, evidence: Evidence) -> CreditResult:
    """Carry out a plan.

    Raises:
        UserError: an agent that is to learn has no token ids or log-probabilities, or a role that the plan does not name.
        ValueError: evidence is missing or does not fit the episodes, or an episode is there twice.
    """
    with _collector_at_rest():
        return _assign(episodes, plan, evidence)


def _assign(episodes: Sequence[Episode], plan: CreditPlan, evidence: Evidence) -> CreditResult:
    gathered = gather(episodes, plan, evidence)
    advantages: list[FloatArray] = [np.zeros(0, dtype=np.float32)] * len(gathered.samples)
    returns: list[FloatArray | None] = [None] * len(gathered.samples)
    places_of: dict[str, list[int]] = {name: [] for name in plan.roles}
    for place, sample in enumerate(gathered.samples):
        places_of[sample.sequence.role].append(place)
    counts = {}
    for name, role in plan.roles.items():
        places = places_of[name]
        samples = [gathered.samples[place] for place in places]
        estimates = role.estimator.estimate(samples) if role.learns else Estimates([])
        for number, place in enumerate(places):
            advantages[place] = estimates.advantages[number]
            returns[place] = None if estimates.returns is None else estimates.returns[number]
        counts[name] = _count(name, gathered, samples, estimates)
    findings = [*gathered.findings, *suspicions(episodes, plan, evidence, counts, gathered.set_aside)]
    return CreditResult(_signals(gathered.samples, advantages, returns, plan), counts, dict(gathered.set_aside), findings)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """No garbage collection meanwhile: nothing here is circular, and every pass would walk through all episodes in memory."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _count(name: str, gathered: Gathered, samples: Sequence[Sample], estimates: Estimates) -> RoleCounts:
    rewards = gathered.rewards[name]
    return RoleCounts(
        episodes=gathered.episodes[name],
        sequences=len(rewards),
        tokens=sum(sample.tokens for sample in samples),
        scored_tokens=sum(sample.tokens for sample in samples if sample.teacher_logprobs_T is not None),
        moving_tokens=sum(int(np.count_nonzero(advantage_T)) for advantage_T in estimates.advantages),
        groups=estimates.groups,
        rewards=_means(rewards),
    )


def _means(rewards: Sequence[Reward]) -> dict[str, float]:
    """Mean of each part over the sequences that have it."""
    columns: dict[str, list[float]] = defaultdict(list)
    for reward in rewards:
        for part, value in reward.parts.items():
            columns[part].append(value)
    if rewards:
        columns["outcome"] = [reward.outcome for reward in rewards]
        columns["penalty"] = [reward.penalty for reward in rewards]
        if referred := [reward.reference_penalty for reward in rewards if "reference_divergence" in reward.parts]:
            columns["reference_penalty"] = referred
        columns["total"] = [reward.total for reward in rewards]
    return {part: sum(values) / len(values) for part, values in columns.items()}


def _at_trainable(sample: Sample) -> FloatArray | None:
    """The critic's values where they count, 0 elsewhere [T]."""
    values_T = sample.values_T
    return None if values_T is None else np.where(sample.sequence.trainable_T, values_T, 0).astype(np.float32)


def _signals(
    samples: Sequence[Sample], advantages: Sequence[FloatArray], returns: Sequence[FloatArray | None], plan: CreditPlan
) -> list[Signal]:
    """Weigh the tokens and hand them out. A sequence without trainable tokens has nothing to say and is left out."""
    taking_part = [place for place, sample in enumerate(samples) if sample.tokens]
    sequences = [samples[place].sequence for place in taking_part]
    weights = token_weights(
        plan.reduction,
        plan.over,
        [samples[place].tokens for place in taking_part],
        [(sequence.key.question_key, sequence.key.sample) for sequence in sequences],
        [sequence.role for sequence in sequences],
    )
    weights_of = Layout(sequences).spread(weights)
    return [
        Signal(
            sequence.key,
            sequence.role,
            sequence.ids_T,
            sequence.trainable_T,
            sequence.old_logprobs_T,
            advantages[place],
            weights_T,
            returns[place],
            None if returns[place] is None else _at_trainable(samples[place]),
        )
        for place, sequence, weights_T in zip(taking_part, sequences, weights_of, strict=True)
    ]
