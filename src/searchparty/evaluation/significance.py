"""Whether a difference could be chance: exact and randomisation tests, corrections for several, and what could have been seen.

Knows numbers only. Arrays with suffix `_Q` have one entry per question, the same questions in the same order for both systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value for two systems on the same questions, one attempt each.

    Args:
        only_first, only_second: questions that only the one or only the other answered right. Those that both or neither
            answered say nothing.

    Under the hypothesis of no difference a discordant question falls to either side with chance 1/2; without any, p is 1.
    Source: McNemar 1947, in its exact form.
    """
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(discordant, count) for count in range(fewer + 1))
    return float(min(1.0, 2 * tail / 2**discordant))


def randomisation_p(differences_Q_by_dataset: Mapping[str, FloatArray], *, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided p-value of the macro mean of paired differences, by exchanging the two systems at random question by question.

    All samples of a question are exchanged together. The observed labelling counts as one of the draws, so p is never 0.
    Source: Fisher's randomisation test; Phipson and Smyth 2010 for the added one.

    ValueError without datasets or for one without questions.
    """
    if not differences_Q_by_dataset or any(len(values) == 0 for values in differences_Q_by_dataset.values()):
        raise ValueError("at least one dataset, and one question of each, are needed")
    random = np.random.default_rng(seed)
    observed, drawn = 0.0, np.zeros(draws)
    for _, differences_Q in sorted(differences_Q_by_dataset.items()):
        weight = 1.0 / (len(differences_Q_by_dataset) * len(differences_Q))
        observed += weight * float(differences_Q.sum())
        sizes, counts = np.unique(np.abs(differences_Q), return_counts=True)
        for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
            if size > 0:  # of `count` differences of one size, how many keep their sign is binomial
                drawn += weight * size * (2.0 * random.binomial(count, 0.5, size=draws) - count)
    tolerance = 1e-12
    return float((1 + np.count_nonzero(np.abs(drawn) >= abs(observed) - tolerance)) / (1 + draws))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that keep the chance of any false finding among several comparisons at the level they are read at.

    Source: Holm 1979. In the order given.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def smallest_detectable(
    differences_Q_by_dataset: Mapping[str, FloatArray], *, confidence: float = 0.95, power: float = 0.8
) -> float:
    """The macro difference that these questions would have shown with the given power, if differences scatter as these do.

    `(z_{1 - (1 - confidence)/2} + z_power) · sqrt(Σ_d s_d² / n_d) / D` with s_d the deviation (n − 1) of the differences of
    dataset d. A dataset of one question tells nothing of its scatter: the result is then infinite. 0 where nothing scatters.
    """
    if any(len(values) < 2 for values in differences_Q_by_dataset.values()):
        return float("inf")
    normal = NormalDist()
    variance = sum(float(values.var(ddof=1)) / len(values) for values in differences_Q_by_dataset.values())
    distance = normal.inv_cdf(0.5 + confidence / 2) + normal.inv_cdf(power)
    return distance * sqrt(variance) / len(differences_Q_by_dataset)
