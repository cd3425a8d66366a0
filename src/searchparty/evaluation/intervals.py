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

MACRO = "macro"
"""The mean over datasets, each with equal weight."""
MICRO = "micro"
"""The mean over all questions, each with equal weight."""
MACRO_LARGE = "macro of sets from 200 questions"
"""As macro, without small datasets, of which a few questions move the mean as much as many of a large one."""
LARGE = 200
"""Questions from which a dataset is not small."""
RESAMPLES = 10_000
"""Draws of an interval, unless there is a reason for fewer."""

_FEW = 64
"""Up to so many different values are all counted."""
_COMMON = 64
"""Of more, those that so many questions share are counted, which is then quicker than to draw them."""
_BLOCK = 256
"""Values of one block: two draws from it are 16 random bits, all of them used, so the sum of both is looked up at once."""
_AT_ONCE = 2**15
"""About so many values are drawn at once: they stay in a processor's cache."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval for a rate, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanIntervals:
    """Bootstrap intervals for the mean of each dataset and for means over datasets."""

    datasets: Mapping[str, Interval]
    pools: Mapping[str, Interval]
    """By the names that `pools` gives."""

    @property
    def macro(self) -> Interval:
        """For the mean over datasets with equal weight."""
        return self.pools[MACRO]


def pools(questions: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The ways to take datasets together, each as weights of datasets that add up to 1.

    Always macro; micro where there are several datasets; macro of the large ones where this leaves out some, but not all.

    Args:
        questions: dataset to its number of questions.
    """
    large = [name for name, count in questions.items() if count >= LARGE]
    total = sum(questions.values())
    ways = {MACRO: dict.fromkeys(questions, 1 / len(questions))}
    if len(questions) > 1:
        ways[MICRO] = {name: count / total for name, count in questions.items()}
    if 0 < len(large) < len(questions):
        ways[MACRO_LARGE] = dict.fromkeys(large, 1 / len(large))
    return ways


def wilson_interval(successes: float, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for the rate `successes / trials`; without trials, the whole of 0 to 1.

    Unlike the normal approximation it stays within 0 to 1 and keeps a width at 0 or all successes. Trials that earn a part of
    a success count as that part: they scatter less than whole ones, so the interval is wide enough. ValueError unless
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
    values_Q_by_dataset: Mapping[str, FloatArray], *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> MeanIntervals:
    """Percentile intervals for the mean of each dataset's values per question, and for the means of these means by `pools`.

    Questions are drawn again with replacement within their dataset, as many as it has, so that every dataset keeps its weight.
    Equal input and seed give equal intervals, and a dataset's interval does not depend on which others are present. Where all
    questions have one value there is nothing to draw and both ends equal it; for a rate of yes/no trials `wilson_interval` then
    says more.

    The draws are exact and quick. How often each different value occurs among n draws with replacement is multinomial, so
    values that many questions share are counted instead of drawn. The rest is cut into blocks of equal size; how many draws
    fall into each block is multinomial too, and those within a block are made in pairs. Values closer than 1e-12 count as one.
    50,000 questions take about a second of one processor, or less, whatever their values.

    ValueError without datasets, for one without questions, and for values that are not finite.
    """
    tails = [(1 - _require_confidence(confidence)) / 2, (1 + confidence) / 2]
    if not values_Q_by_dataset or resamples < 1:
        raise ValueError("at least one dataset and one resample are needed")
    means_by_dataset = {
        name: _resampled_means(name, values_Q, resamples, np.random.default_rng([seed, zlib.crc32(name.encode())]))
        for name, values_Q in values_Q_by_dataset.items()
    }
    ways = pools({name: len(values_Q) for name, values_Q in values_Q_by_dataset.items()})
    pooled = {
        way: np.sum([weight * means_by_dataset[name] for name, weight in weights.items()], axis=0)
        for way, weights in ways.items()
    }
    return MeanIntervals(
        datasets=MappingProxyType({name: _interval(means, tails) for name, means in means_by_dataset.items()}),
        pools=MappingProxyType({way: _interval(means, tails) for way, means in pooled.items()}),
    )


def _resampled_means(name: str, values_Q: FloatArray, resamples: int, random: np.random.Generator) -> FloatArray:
    """The mean of each of `resamples` draws of as many questions as there are [resamples]."""
    questions = len(values_Q)
    if questions == 0 or not np.all(np.isfinite(values_Q)):
        raise ValueError(f"{name}: at least one question is needed, and finite values only")
    different, counts = np.unique(np.round(values_Q, 12), return_counts=True)
    common = counts >= (1 if len(different) <= _FEW else _COMMON)
    rare = np.repeat(different[~common], counts[~common])
    blocks = rare[: len(rare) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    rest = rare[blocks.size :]
    shares = np.concatenate([counts[common], np.full(len(blocks), _BLOCK), [len(rest)] if len(rest) else []])
    drawn = random.multinomial(questions, shares / questions, size=resamples)
    counted = np.count_nonzero(common)
    sums: FloatArray = drawn[:, :counted] @ different[common]
    quick = np.random.Generator(np.random.SFC64(random.integers(2**63))) if len(blocks) else random
    for block, draws in zip(blocks, drawn.T[counted : counted + len(blocks)], strict=True):
        _add_pairs(sums, block, draws, quick)
    if len(rest):
        _add_single_draws(sums, rest, drawn[:, -1], random)
    return sums / questions


def _add_pairs(sums: FloatArray, block: FloatArray, draws: NDArray[np.int64], random: np.random.Generator) -> None:
    """As `_add_single_draws`, of `_BLOCK` values and quicker."""
    of_two = np.add.outer(block, block).ravel()
    pairs = draws // 2
    together = max(1, _AT_ONCE // max(1, int(pairs.max())))
    for begin in range(0, len(sums), together):
        part = slice(begin, begin + together)
        bits = random.bit_generator.random_raw(int(pairs[part].sum()) // 4 + 1).view(np.uint16)
        _add_runs(sums[part], of_two.take(bits.astype(np.intp)), pairs[part])
    sums += np.where(draws % 2, block[random.integers(_BLOCK, size=len(sums))], 0.0)


def _add_single_draws(sums: FloatArray, values: FloatArray, draws: NDArray[np.int64], random: np.random.Generator) -> None:
    """Add to each sum as many of `values`, drawn with replacement, as `draws` says. All have one entry per resample."""
    together = max(1, _AT_ONCE // len(values))
    for begin in range(0, len(sums), together):
        part = slice(begin, begin + together)
        _add_runs(sums[part], values[random.integers(len(values), size=draws[part].sum())], draws[part])


def _add_runs(sums: FloatArray, picked: FloatArray, lengths: NDArray[np.int64]) -> None:
    """Add to each sum the next `lengths` of `picked`, which may hold more than all of these."""
    some = np.flatnonzero(lengths)
    if len(some):
        begins = (np.cumsum(lengths) - lengths)[some]
        sums[some] += np.add.reduceat(picked[: lengths.sum()], begins)


def _interval(means: FloatArray, tails: list[float]) -> Interval:
    low, high = np.quantile(means, tails)
    return Interval(float(low), float(high))


def _require_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    return confidence
