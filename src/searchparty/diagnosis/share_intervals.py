"""How far a share of a diagnosis could be off, where one question has several episodes, and episodes several passages.

Knows facts of episodes, not what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.facts import EpisodeFacts
from searchparty.evaluation.intervals import Interval, bootstrap_means, wilson_interval

OfEpisode = Callable[[EpisodeFacts], float | None]
"""A count of one episode; None counts as 0."""


def interval_of_losses(facts: Sequence[EpisodeFacts], interface: Interface, resamples: int) -> Interval:
    """Wilson's where each question has one episode, since few losses are frequent."""
    lost: OfEpisode = lambda one: one.lost_at is interface  # noqa: E731
    if len({one.question_key for one in facts}) == len(facts):
        return wilson_interval(sum(map(bool, map(lost, facts))), len(facts))
    interval = interval_of_share(facts, lost, resamples)
    assert interval is not None  # an episode is a trial
    return interval


def interval_of_share(
    facts: Sequence[EpisodeFacts], hits: OfEpisode, resamples: int, trials: OfEpisode = lambda _: 1
) -> Interval | None:
    """For the sum of hits over the sum of trials, by drawing questions again as an evaluation does, so that both say the same;
    Wilson's where all questions with a trial have the same share, so that there is nothing to draw. None without any trial.
    """
    by_question: dict[str, tuple[float, float]] = {}
    for one in facts:
        hit, tried = by_question.get(one.question_key, (0.0, 0.0))
        by_question[one.question_key] = hit + (hits(one) or 0), tried + (trials(one) or 0)
    hits_Q, trials_Q = np.array(list(by_question.values())).T
    shares = [hit / tried for hit, tried in by_question.values() if tried]
    if not shares:
        return None
    if len(set(shares)) == 1:
        return wilson_interval(round(sum(shares)), len(shares))
    # The share is a ratio of means over questions, whose spread is that of these values (linearised).
    share = hits_Q.sum() / trials_Q.sum()
    values_Q = share + (hits_Q - share * trials_Q) / trials_Q.mean()
    datasets = {one.dataset for one in facts}
    name = datasets.pop() if len(datasets) == 1 else ""
    drawn = bootstrap_means({name: values_Q}, resamples=resamples).datasets[name]
    return Interval(max(0.0, drawn.low), min(1.0, drawn.high))
