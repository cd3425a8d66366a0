"""How far a rate could be off: intervals for counts and for means over questions.

Knows numbers only. Two kinds, since two kinds of rate occur. `wilson_interval` is for independent yes/no trials, one per
question or episode. `bootstrap_means` is for means over questions of anything, above all avg@k: the k samples of a question
share its difficulty, so questions and not samples are drawn again.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_DRAWS_AT_ONCE = 2_000_000
"""Question draws held in memory at a time: 16 MB of indices."""
_FEW_VALUES = 1_000
"""Up to so many different values the draws of each are counted instead of made one by one."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval for a rate, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanIntervals:
    """Bootstrap intervals for the mean of each dataset and for the macro mean."""

    datasets: Mapping[str, Interval]
    macro: Interval
    """For the mean over datasets with equal weight."""


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for the rate `successes / trials`; without trials, the whole of 0 to 1.

    Unlike the normal approximation it stays within 0 to 1 and keeps a width at 0 or all successes. ValueError unless
    0 <= successes <= trials and 0 < confidence < 1. Source: Wilson 1927.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must lie between 0 and the number of trials, got {successes} of {trials}")
    z = NormalDist().inv_cdf(0.5 + _require_confidence(confidence) / 2)
    if trials == 0:
        return Interval(0.0, 1.0)
    rate = successes / trials
    denominator = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / denominator
    half_width = z / denominator * sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    low = 0.0 if successes == 0 else centre - half_width
    high = 1.0 if successes == trials else centre + half_width
    return Interval(low, high)


def bootstrap_means(
    values_Q_by_dataset: Mapping[str, FloatArray], *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> MeanIntervals:
    """Percentile intervals for the mean of each dataset's values per question, and for the mean of these means.

    Questions are drawn again with replacement within their dataset, as many as it has, so that every dataset keeps its weight.
    Equal input and seed give equal intervals, and a dataset's interval does not depend on which others are present. Where all
    questions have one value there is nothing to draw and both ends equal it; for a rate of yes/no trials `wilson_interval` then
    says more.

    ValueError without datasets, for one without questions, and for values that are not finite.
    """
    tails = [(1 - _require_confidence(confidence)) / 2, (1 + confidence) / 2]
    if not values_Q_by_dataset or resamples < 1:
        raise ValueError("at least one dataset and one resample are needed")
    means_by_dataset = {
        name: _resampled_means(name, values_Q, resamples, np.random.default_rng([seed, zlib.crc32(name.encode())]))
        for name, values_Q in values_Q_by_dataset.items()
    }
    datasets = {name: _interval(means, tails) for name, means in means_by_dataset.items()}
    macro = _interval(np.mean(list(means_by_dataset.values()), axis=0), tails)
    return MeanIntervals(datasets=MappingProxyType(datasets), macro=macro)


def _resampled_means(name: str, values_Q: FloatArray, resamples: int, random: np.random.Generator) -> FloatArray:
    """The mean of each of `resamples` draws of as many questions as there are [resamples]."""
    questions = len(values_Q)
    if questions == 0 or not np.all(np.isfinite(values_Q)):
        raise ValueError(f"{name}: at least one question is needed, and finite values only")
    different, counts = np.unique(values_Q, return_counts=True)
    if len(different) <= min(_FEW_VALUES, questions // 2):
        # How often each value is drawn among n draws with replacement is multinomial: the same bootstrap, in fewer steps.
        drawn = random.multinomial(questions, counts / questions, size=resamples)
        means: FloatArray = drawn @ different / questions
        return means
    at_once = max(1, _DRAWS_AT_ONCE // questions)
    parts = [
        values_Q[random.integers(questions, size=(min(at_once, resamples - done), questions))].mean(axis=1)
        for done in range(0, resamples, at_once)
    ]
    return np.concatenate(parts)


def _interval(means: FloatArray, tails: list[float]) -> Interval:
    low, high = np.quantile(means, tails)
    return Interval(float(low), float(high))


def _require_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    return confidence
