"""How far a mean over episodes could be off where questions have unequally many of them.

Knows numbers only. Questions are drawn again within their dataset, with all their episodes together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from searchparty.evaluation.intervals import MACRO, MICRO, RESAMPLES, FloatArray, Interval, bootstrap_means, wilson_interval

_EQUAL = 1e-12
"""Shares closer than this are one."""


def ratio_interval(
    amounts_Q: FloatArray, trials_Q: FloatArray, datasets: Sequence[str], *, resamples: int = RESAMPLES
) -> Interval:
    """95 %, for the sum of amounts over the sum of trials: a ratio of means over questions, whose spread is that of linearised
    values.

    Args:
        amounts_Q, trials_Q: of each question, with at least one trial in all.
        datasets: the dataset of each question.
    """
    ratio = amounts_Q.sum() / trials_Q.sum()
    values_Q = ratio + (amounts_Q - ratio * trials_Q) / trials_Q.mean()
    names = np.array(datasets)
    by_dataset = {str(name): values_Q[names == name] for name in np.unique(names)}
    return bootstrap_means(by_dataset, resamples=resamples).pools[MICRO if len(by_dataset) > 1 else MACRO]


def rate_interval(hits_Q: FloatArray, trials_Q: FloatArray, datasets: Sequence[str], *, resamples: int = RESAMPLES) -> Interval:
    """As `ratio_interval`, of a rate from 0 to 1: Wilson's where all questions have the same one, so that nothing is drawn."""
    tried = trials_Q > 0
    shares = hits_Q[tried] / trials_Q[tried]
    if np.ptp(shares) < _EQUAL:
        return wilson_interval(min(float(shares.sum()), len(shares)), len(shares))
    drawn = ratio_interval(hits_Q, trials_Q, datasets, resamples=resamples)
    return Interval(max(0.0, drawn.low), min(1.0, drawn.high))
