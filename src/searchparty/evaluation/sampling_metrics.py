"""Rates over repeated runs of the same questions: avg@k, pass@k and all-k-right, per dataset and over datasets.

Knows arrays of scores, not answers or episodes. Arrays are `[questions, samples]` with suffix `_QS`, or hold one value per
question with suffix `_Q`. Every rate is the mean over questions of a value per question, so any of them can go through
`intervals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb
from statistics import fmean
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SamplingRates:
    """The rates of one dataset, or of several taken together. All are between 0 and 1."""

    questions: int
    samples: int
    """k, the number of samples of every question."""
    average: float
    """avg@k: the expected score of a single run."""
    any_correct: float
    """pass@k: questions that at least one of the k runs answered."""
    all_correct: float
    """Questions that all k runs answered."""


@dataclass(frozen=True, slots=True)
class SamplingSummary:
    """The same rates at three levels."""

    datasets: Mapping[str, SamplingRates]
    macro: SamplingRates
    """Mean over datasets, each with equal weight whatever its size; `questions` is their sum."""
    micro: SamplingRates
    """All questions in one pool, each with equal weight."""


def samples_array(scores: Iterable[Iterable[float]]) -> FloatArray:
    """Scores of each question's samples as an array `[questions, samples]`.

    ValueError if there is no question or no sample, if questions have different numbers of samples (an unfinished run: its
    missing samples must be made or recorded as failures, never left out), or if a value is not between 0 and 1.
    """
    rows = [list(row) for row in scores]
    counts = sorted({len(row) for row in rows})
    if not counts or counts[0] == 0:
        raise ValueError("at least one question, and one sample of each, are needed")
    if len(counts) > 1:
        raise ValueError(f"all questions need the same number of samples, found from {counts[0]} to {counts[-1]}")
    scores_QS = np.array(rows, dtype=np.float64)
    if not np.all((scores_QS >= 0) & (scores_QS <= 1)):
        raise ValueError("scores must lie between 0 and 1")
    return scores_QS


def average_by_question(scores_QS: FloatArray) -> FloatArray:
    """Mean score of each question's samples [questions]; its mean is avg@k. Graded scores such as F1 are taken as well."""
    average_Q: FloatArray = scores_QS.mean(axis=1)
    return average_Q


def any_correct_by_question(correct_QS: FloatArray) -> FloatArray:
    """1 for each question that at least one of its k samples answers; its mean is the plain pass@k."""
    any_Q: FloatArray = _right_or_wrong(correct_QS).max(axis=1)
    return any_Q


def all_correct_by_question(correct_QS: FloatArray) -> FloatArray:
    """1 for each question that all of its k samples answer."""
    all_Q: FloatArray = _right_or_wrong(correct_QS).min(axis=1)
    return all_Q


def unbiased_pass_by_question(correct_QS: FloatArray, k: int) -> FloatArray:
    """The chance that k of a question's n samples, drawn without replacement, hold a right one: `1 - C(n - c, k) / C(n, k)`.

    c is the number of right samples. The mean over questions estimates pass@k without bias from more than k samples, and for k
    = n it is the plain pass@k. ValueError unless 1 <= k <= n. Source: Chen et al. 2021, Evaluating Large Language Models
    Trained on Code.
    """
    samples = correct_QS.shape[1]
    if not 1 <= k <= samples:
        raise ValueError(f"pass@k needs k from 1 to the {samples} samples of each question, got {k}")
    right_Q = _right_or_wrong(correct_QS).sum(axis=1).astype(int)
    return np.array([1 - comb(samples - right, k) / comb(samples, k) for right in right_Q.tolist()])


def sampling_rates(correct_QS: FloatArray) -> SamplingRates:
    """The three rates of one set of questions; every value of `correct_QS` is 0 or 1."""
    questions, samples = correct_QS.shape
    return SamplingRates(
        questions=questions,
        samples=samples,
        average=float(average_by_question(correct_QS).mean()),
        any_correct=float(any_correct_by_question(correct_QS).mean()),
        all_correct=float(all_correct_by_question(correct_QS).mean()),
    )


def summarise_samples(correct_QS_by_dataset: Mapping[str, FloatArray]) -> SamplingSummary:
    """The rates per dataset, macro and micro. ValueError without datasets, or if they differ in samples per question."""
    datasets = {name: sampling_rates(correct_QS) for name, correct_QS in correct_QS_by_dataset.items()}
    if not datasets:
        raise ValueError("at least one dataset is needed")
    samples = {rates.samples for rates in datasets.values()}
    if len(samples) > 1:
        counts = ", ".join(f"{name} {rates.samples}" for name, rates in datasets.items())
        raise ValueError(f"all datasets need the same number of samples per question, found {counts}")
    macro = SamplingRates(
        questions=sum(rates.questions for rates in datasets.values()),
        samples=samples.pop(),
        average=fmean(rates.average for rates in datasets.values()),
        any_correct=fmean(rates.any_correct for rates in datasets.values()),
        all_correct=fmean(rates.all_correct for rates in datasets.values()),
    )
    micro = sampling_rates(np.concatenate(list(correct_QS_by_dataset.values())))
    return SamplingSummary(datasets=MappingProxyType(datasets), macro=macro, micro=micro)


def _right_or_wrong(correct_QS: FloatArray) -> FloatArray:
    if not np.all((correct_QS == 0) | (correct_QS == 1)):
        raise ValueError("right or wrong is needed: every value 0 or 1, not a graded score")
    return correct_QS
