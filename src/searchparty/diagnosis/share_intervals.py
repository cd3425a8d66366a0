"""How far a share or a mean of a diagnosis could be off: one question has several episodes, and an episode several passages.

Knows facts of episodes, not what is made of them. Questions are drawn again within their dataset, as an evaluation does, so
that both say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.facts import EpisodeFacts
from searchparty.evaluation.intervals import FloatArray, Interval, wilson_interval
from searchparty.evaluation.ratio_intervals import rate_interval, ratio_interval

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
    """For the sum of hits over the sum of trials, by drawing questions again; Wilson's where all questions with a trial have
    the same share, so that there is nothing to draw. None without any trial.
    """
    hits_Q, trials_Q, datasets = _by_question(facts, hits, trials)
    return rate_interval(hits_Q, trials_Q, datasets, resamples=resamples) if trials_Q.any() else None


def interval_of_mean(
    facts: Sequence[EpisodeFacts], amount: OfEpisode, resamples: int, trials: OfEpisode = lambda _: 1
) -> Interval | None:
    """For the sum of amounts over the sum of trials, by drawing questions again. Both ends equal the mean where all questions
    have the same one. None without any trial.
    """
    amounts_Q, trials_Q, datasets = _by_question(facts, amount, trials)
    return ratio_interval(amounts_Q, trials_Q, datasets, resamples=resamples) if trials_Q.any() else None


def _by_question(facts: Sequence[EpisodeFacts], hits: OfEpisode, trials: OfEpisode) -> tuple[FloatArray, FloatArray, list[str]]:
    """Hits, trials and dataset of each question."""
    sums: dict[str, tuple[float, float]] = {}
    datasets: dict[str, str] = {}
    for one in facts:
        hit, tried = sums.get(one.question_key, (0.0, 0.0))
        sums[one.question_key] = hit + (hits(one) or 0), tried + (trials(one) or 0)
        datasets[one.question_key] = one.dataset
    hits_Q, trials_Q = np.array(list(sums.values()), dtype=np.float64).T
    return hits_Q, trials_Q, list(datasets.values())
