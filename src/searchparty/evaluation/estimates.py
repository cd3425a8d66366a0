"""A mean with its 95 % interval, for each dataset and over datasets: the form in which every number is shown.

Takes columns of scores by question and chooses the interval; knows nothing of runs or tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot

from searchparty.evaluation.intervals import FloatArray, Interval, bootstrap_means, pools, wilson_interval


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
    """Means of anything, differences among it, by bootstrap: per dataset, then by the names of `pools`."""
    intervals = bootstrap_means(values_Q_by_dataset)
    means = {dataset: float(values_Q.mean()) for dataset, values_Q in values_Q_by_dataset.items()}
    found = {dataset: _estimate(mean, intervals.datasets[dataset]) for dataset, mean in means.items()}
    for way, weights in _pools(values_Q_by_dataset).items():
        found[way] = _estimate(_weighed(means, weights), intervals.pools[way])
    return found


def estimate_rates(values_Q_by_dataset: Mapping[str, FloatArray]) -> dict[str, Estimate]:
    """Means of values from 0 to 1, as `estimate_means`, but with a width where all questions of a dataset have 0, or all 1.

    There is nothing to draw then, and Wilson's interval is given instead. A mean over datasets takes its interval from theirs:
    its end is as far away as the root of the sum of their squared, weighed distances, since datasets are independent (MOVER;
    Zou and Donner 2008).
    """
    found = estimate_means(values_Q_by_dataset)
    flat = {dataset for dataset in values_Q_by_dataset if found[dataset].value in (0.0, 1.0)}
    for dataset in flat:
        mean, questions = found[dataset].value, len(values_Q_by_dataset[dataset])
        found[dataset] = _estimate(mean, wilson_interval(round(mean * questions), questions))
    for way, weights in _pools(values_Q_by_dataset).items():
        if flat & weights.keys():
            mean = found[way].value
            below = hypot(*(weight * (found[name].value - found[name].low) for name, weight in weights.items()))
            above = hypot(*(weight * (found[name].high - found[name].value) for name, weight in weights.items()))
            found[way] = Estimate(mean, max(0.0, mean - below), min(1.0, mean + above))
    return found


def _pools(values_Q_by_dataset: Mapping[str, FloatArray]) -> dict[str, dict[str, float]]:
    return pools({dataset: len(values_Q) for dataset, values_Q in values_Q_by_dataset.items()})


def _weighed(means: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * means[name] for name, weight in weights.items())


def _estimate(mean: float, interval: Interval) -> Estimate:
    return Estimate(mean, interval.low, interval.high)
