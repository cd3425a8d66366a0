"""What a team did and used, per dataset and over all episodes, each number with its interval.

Knows scored episodes. Every mean is over the episodes asked for, whatever their ending (contract 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from searchparty.evaluation.estimates import estimate_means, estimate_rates
from searchparty.evaluation.intervals import MICRO, FloatArray
from searchparty.evaluation.scoring import RoleUse, ScoredEpisode

ALL = "all"
"""All episodes together, each with equal weight."""
RATES: Mapping[str, Callable[[ScoredEpisode], float]] = {
    "answered": lambda episode: float(episode.answer is not None),
    "no_search": lambda episode: float(episode.searches == 0),
}
"""Shares of episodes, by the names that `Behaviour` has for them."""
COUNTS: Mapping[str, Callable[[ScoredEpisode], float | None]] = {
    "searches": lambda episode: episode.searches,
    "empty_searches": lambda episode: episode.empty_searches,
    "steps": lambda episode: episode.steps,
    "input_tokens": lambda episode: _sum([use.input_tokens for use in episode.roles.values()]),
    "unique_input_tokens": lambda episode: _sum([use.unique_input_tokens for use in episode.roles.values()]),
    "output_tokens": lambda episode: _sum([use.output_tokens for use in episode.roles.values()]),
}
"""Means per episode; None where a model does not say."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the team did, over the episodes of one dataset or of all."""

    episodes: int
    answered: float
    """Share of episodes that ended with a well-formed answer."""
    no_search: float
    """Share of episodes without any search."""
    searches: float
    """Searches per episode."""
    empty_searches: float
    """Searches per episode that found nothing."""
    steps: float
    """Environment steps per episode."""
    input_tokens: float | None
    """Prompt tokens per episode, repeated history counted again; None where the models do not say."""
    unique_input_tokens: float | None
    """The same without repeated history."""
    output_tokens: float | None
    service_failures: int
    """Episodes that a failing model or retriever ended. They score 0 until a resumed run repeats them."""
    unscorable: int
    """Episodes of questions of which no golden answer survives normalisation."""
    stop_reasons: dict[str, int]
    intervals: dict[str, tuple[float, float]]
    """Of every number above that is a mean, 95 %, by drawing questions again; none where the number is not known."""


def behaviours(by_dataset: Mapping[str, Sequence[ScoredEpisode]]) -> dict[str, Behaviour]:
    """Dataset to behaviour; the last entry, `all`, takes all episodes together."""
    intervals = _intervals(by_dataset)
    together = [episode for episodes in by_dataset.values() for episode in episodes]
    return {name: _behaviour(episodes, intervals[name]) for name, episodes in {**by_dataset, ALL: together}.items()}


def tokens_per_episode(uses: Sequence[RoleUse], field: str, episodes: int) -> float | None:
    """The mean of a count of tokens; None if one of the counts is not known."""
    total = _sum([getattr(use, field) for use in uses])
    return None if total is None else total / episodes


def _behaviour(episodes: Sequence[ScoredEpisode], intervals: dict[str, tuple[float, float]]) -> Behaviour:
    reasons = Counter(episode.stop_reason for episode in episodes)
    means = {
        name: None if (total := _sum([measure(episode) for episode in episodes])) is None else total / len(episodes)
        for name, measure in {**RATES, **COUNTS}.items()
    }
    return Behaviour(
        episodes=len(episodes),
        **means,  # type: ignore[arg-type]  # only those of tokens may be None
        service_failures=reasons["model_failed"] + reasons["retriever_failed"],
        unscorable=sum(not episode.scorable for episode in episodes),
        stop_reasons=dict(reasons.most_common()),
        intervals=intervals,
    )


def _intervals(by_dataset: Mapping[str, Sequence[ScoredEpisode]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Dataset, or `all`, to the intervals of its numbers."""
    found: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in (*by_dataset, ALL)}
    for name, measure in {**RATES, **COUNTS}.items():
        values = {dataset: _by_question(episodes, measure) for dataset, episodes in by_dataset.items()}
        known = {dataset: values_Q for dataset, values_Q in values.items() if values_Q is not None}
        if not known:
            continue
        estimates = estimate_rates(known) if name in RATES else estimate_means(known)
        for dataset in known:
            found[dataset][name] = estimates[dataset].low, estimates[dataset].high
        if len(known) == len(by_dataset):
            whole = estimates[MICRO if len(known) > 1 else next(iter(known))]
            found[ALL][name] = whole.low, whole.high
    return found


def _by_question(episodes: Sequence[ScoredEpisode], measure: Callable[[ScoredEpisode], float | None]) -> FloatArray | None:
    """The mean of each question's samples [questions]; None if a value is not known."""
    values: dict[str, list[float]] = {}
    for episode in episodes:
        value = measure(episode)
        if value is None:
            return None
        values.setdefault(episode.question_key, []).append(value)
    return np.array([sum(own) / len(own) for own in values.values()])


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None if a part of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
