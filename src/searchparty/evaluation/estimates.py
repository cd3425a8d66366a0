"""A mean with its 95 % interval, for each dataset and over datasets: the form in which every number is shown.

Takes columns of scores by question and chooses the interval; knows nothing of runs or tables.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from math import hypot

import numpy as np

from searchparty.evaluation.intervals import FloatArray, Interval, bootstrap_means, pools, wilson_interval

_EQUAL = 1e-12
"""Values closer than this are one."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions with its 95 % interval; questions, not samples, are drawn again."""

    value: float
    low: float
    high: float

    def text(self, scale: float, digits: int, *, signed: bool = False) -> str:
        """`value [low, high]`, each times `scale`, with a sign if asked."""
        sign = "+" if signed else ""
        value, low, high = (f"{scale * end:{sign}.{digits}f}" for end in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def estimate_means(values_Q_by_dataset: Mapping[str, FloatArray]) -> dict[str, Estimate]:
    """Means of anything by bootstrap: per dataset, then by the names of `pools`."""
    intervals = bootstrap_means(values_Q_by_dataset)
    means = {dataset: float(values_Q.mean()) for dataset, values_Q in values_Q_by_dataset.items()}
    found = {dataset: _estimate(mean, intervals.datasets[dataset]) for dataset, mean in means.items()}
    for way, weights in _pools(values_Q_by_dataset).items():
        found[way] = _estimate(_weighed(means, weights), intervals.pools[way])
    return found


def estimate_rates(values_Q_by_dataset: Mapping[str, FloatArray]) -> dict[str, Estimate]:
    """Means of values from 0 to 1, as `estimate_means`, but with a width where all questions of a dataset have one value.

    There is nothing to draw then, and Wilson's interval is given instead. A mean over datasets takes its interval from theirs:
    its end is as far away as the root of the sum of their squared, weighed distances, since datasets are independent (MOVER;
    Zou and Donner 2008).
    """
    found = estimate_means(values_Q_by_dataset)
    flat = {name: values_Q for name, values_Q in values_Q_by_dataset.items() if np.ptp(values_Q) < _EQUAL}
    for dataset, values_Q in flat.items():
        mean = min(1.0, max(0.0, found[dataset].value))
        found[dataset] = _estimate(mean, wilson_interval(mean * len(values_Q), len(values_Q)))
    return _pooled_again(found, flat, values_Q_by_dataset, lowest=0.0)


def estimate_differences(values_Q_by_dataset: Mapping[str, FloatArray]) -> dict[str, Estimate]:
    """Means of paired differences from -1 to 1, as `estimate_means`, but with a width where all questions of a set differ by
    the same: one question, above all, is no proof. Equal systems differ by 0, from 0 to 0.

    The width is Wilson's, of the difference moved to 0 to 1; means over datasets as in `estimate_rates`.
    """
    found = estimate_means(values_Q_by_dataset)
    flat = {
        name: values_Q
        for name, values_Q in values_Q_by_dataset.items()
        if np.ptp(values_Q) < _EQUAL and abs(found[name].value) > _EQUAL
    }
    for dataset, values_Q in flat.items():
        moved = wilson_interval(len(values_Q) * min(1.0, max(0.0, (found[dataset].value + 1) / 2)), len(values_Q))
        found[dataset] = Estimate(found[dataset].value, 2 * moved.low - 1, 2 * moved.high - 1)
    return _pooled_again(found, flat, values_Q_by_dataset, lowest=-1.0)


def _pooled_again(
    found: dict[str, Estimate], flat: Container[str], values_Q_by_dataset: Mapping[str, FloatArray], *, lowest: float
) -> dict[str, Estimate]:
    """With the intervals of the means over datasets, of which some are flat, made from those of the datasets."""
    for way, weights in _pools(values_Q_by_dataset).items():
        if any(name in flat for name in weights):
            mean = found[way].value
            below = hypot(*(weight * (found[name].value - found[name].low) for name, weight in weights.items()))
            above = hypot(*(weight * (found[name].high - found[name].value) for name, weight in weights.items()))
            found[way] = Estimate(mean, max(lowest, mean - below), min(1.0, mean + above))
    return found


def _pools(values_Q_by_dataset: Mapping[str, FloatArray]) -> dict[str, dict[str, float]]:
    return pools({dataset: len(values_Q) for dataset, values_Q in values_Q_by_dataset.items()})


def _weighed(means: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * means[name] for name, weight in weights.items())


def _estimate(mean: float, interval: Interval) -> Estimate:
    return Estimate(mean, interval.low, interval.high)
