"""Credit for one batch of episodes: from what happened, and what is known of it, to what every token learns.

Knows the plan's words and no algorithm by name. Draws nothing at random: equal input gives equal output.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from operator import itemgetter

import numpy as np

from searchparty.credit.estimators.base import Estimates
from searchparty.credit.evidence import Evidence
from searchparty.credit.gathering import Gathered, gather
from searchparty.credit.plan import CreditPlan
from searchparty.credit.reductions import WeightArray, token_weights
from searchparty.credit.result import CreditResult, RoleCounts
from searchparty.credit.suspicions import suspicions
from searchparty.credit.types import Signal
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
    estimates = {name: plan.roles[name].estimator.estimate(samples) for name, samples in gathered.samples.items()}
    counts = {name: _count(name, gathered, estimates.get(name)) for name in plan.roles}
    findings = [*gathered.findings, *suspicions(episodes, plan, evidence, counts, gathered.set_aside)]
    return CreditResult(_signals(gathered, estimates, plan), counts, dict(gathered.set_aside), findings)


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


def _count(name: str, gathered: Gathered, estimates: Estimates | None) -> RoleCounts:
    """`estimates` is None for a role that does not learn."""
    rewards, samples = gathered.rewards[name], gathered.samples.get(name)
    scored_S = None if samples is None or samples.teacher is None else samples.teacher.known_S
    return RoleCounts(
        episodes=gathered.episodes[name],
        sequences=len(rewards.outcome_S),
        tokens=0 if samples is None else int(samples.layout.tokens_S.sum()),
        scored_tokens=0 if samples is None or scored_S is None else int(samples.layout.tokens_S[scored_S].sum()),
        moving_tokens=0 if estimates is None else int(np.count_nonzero(estimates.advantages_N.astype(np.float32))),
        groups=None if estimates is None else estimates.groups,
        rewards=rewards.means(),
    )


def _signals(gathered: Gathered, estimates: Mapping[str, Estimates], plan: CreditPlan) -> list[Signal]:
    """Weigh the tokens and hand them out. A sequence without trainable tokens has nothing to say and is left out."""
    weights = _weights(gathered, plan)
    signals: list[tuple[int, Signal]] = []
    for name, samples in gathered.samples.items():
        layout, found = samples.layout, estimates[name]
        absent = [None] * len(layout.tokens_S)
        columns = (
            layout.cut(samples.sequences.ids_M),
            layout.cut(layout.trainable_M),
            layout.place(samples.old_logprobs_N),
            layout.place(found.advantages_N),
            layout.spread(weights[name]),
            absent if found.returns_N is None else layout.place(found.returns_N),
            absent if found.returns_N is None or samples.critic is None else layout.place(samples.critic.said_N),
        )
        agents, speaks = gathered.places[name].tolist(), layout.tokens_S.tolist()
        rows = compress(zip(agents, samples.sequences.heads, *columns, strict=True), speaks)
        for agent, head, ids_T, trainable_T, old_T, advantages_T, weights_T, returns_T, values_T in rows:
            said = advantages_T, weights_T, returns_T, values_T
            signals.append((agent, Signal(head.key, name, ids_T, trainable_T, old_T, *said, placed=True)))
    return [signal for _, signal in sorted(signals, key=itemgetter(0))]


def _weights(gathered: Gathered, plan: CreditPlan) -> dict[str, WeightArray]:
    """Of the trainable tokens of every sequence [S], by role."""
    heads = [head for samples in gathered.samples.values() for head in samples.sequences.heads]
    by_role = [samples.layout.tokens_S for samples in gathered.samples.values()]
    tokens_S = np.concatenate([np.zeros(0, np.intp), *by_role])
    taking_part = list(compress(heads, tokens_S))
    weights_S = np.zeros(len(heads))
    weights_S[tokens_S > 0] = token_weights(
        plan.reduction,
        plan.over,
        tokens_S[tokens_S > 0],
        [(head.key.question_key, head.key.sample) for head in taking_part],
        [head.role for head in taking_part],
    )
    ends = np.cumsum(list(map(len, by_role)))
    return dict(zip(gathered.samples, np.split(weights_S, ends[:-1]), strict=True))
