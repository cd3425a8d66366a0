"""What a team did and used, per dataset and over all episodes, each number with its interval.

Knows scored episodes. Every mean is over the episodes asked for, whatever their ending (contract 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


Measured = dict[str, FloatArray | None]
"""Name of a number to its value in each episode; None where some episode's is not known."""


def behaviours(by_dataset: Mapping[str, Sequence[ScoredEpisode]]) -> dict[str, Behaviour]:
    """Dataset to behaviour; the last entry, `all`, takes all episodes together."""
    measured = {dataset: _measured(episodes) for dataset, episodes in by_dataset.items()}
    intervals = _intervals(by_dataset, measured)
    found = {name: _behaviour(episodes, measured[name], intervals[name]) for name, episodes in by_dataset.items()}
    together = [episode for episodes in by_dataset.values() for episode in episodes]
    return {**found, ALL: _behaviour(together, _joined(list(measured.values())), intervals[ALL])}


def tokens_per_episode(uses: Sequence[RoleUse], field: str, episodes: int) -> float | None:
    """The mean of a count of tokens; None if one of the counts is not known."""
    total = _sum([getattr(use, field) for use in uses])
    return None if total is None else total / episodes


def _measured(episodes: Sequence[ScoredEpisode]) -> Measured:
    found: Measured = {}
    for name, measure in {**RATES, **COUNTS}.items():
        values = [measure(episode) for episode in episodes]
        found[name] = None if None in values else np.array(values, dtype=np.float64)
    return found


def _joined(parts: Sequence[Measured]) -> Measured:
    joined: Measured = {}
    for name in parts[0]:
        known = [values for part in parts if (values := part[name]) is not None]
        joined[name] = np.concatenate(known) if len(known) == len(parts) else None
    return joined


def _behaviour(episodes: Sequence[ScoredEpisode], measured: Measured, intervals: dict[str, tuple[float, float]]) -> Behaviour:
    reasons = Counter(episode.stop_reason for episode in episodes)
    means = {name: None if values is None else float(values.mean()) for name, values in measured.items()}
    return Behaviour(
        episodes=len(episodes),
        **means,  # type: ignore[arg-type]  # only those of tokens may be None
        service_failures=reasons["model_failed"] + reasons["retriever_failed"],
        unscorable=sum(not episode.scorable for episode in episodes),
        stop_reasons=dict(reasons.most_common()),
        intervals=intervals,
    )


def _intervals(
    by_dataset: Mapping[str, Sequence[ScoredEpisode]], measured: Mapping[str, Measured]
) -> dict[str, dict[str, tuple[float, float]]]:
    """Dataset, or `all`, to the intervals of its numbers."""
    found: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in (*by_dataset, ALL)}
    places = {dataset: _question_of(episodes) for dataset, episodes in by_dataset.items()}
    for name in (*RATES, *COUNTS):
        known = {
            dataset: np.bincount(places[dataset], weights=values) / np.bincount(places[dataset])
            for dataset in by_dataset
            if (values := measured[dataset][name]) is not None
        }
        if not known:
            continue
        estimates = estimate_rates(known) if name in RATES else estimate_means(known)
        for dataset in known:
            found[dataset][name] = estimates[dataset].low, estimates[dataset].high
        if len(known) == len(by_dataset):
            whole = estimates[MICRO if len(known) > 1 else next(iter(known))]
            found[ALL][name] = whole.low, whole.high
    return found


def _question_of(episodes: Sequence[ScoredEpisode]) -> NDArray[np.int64]:
    """The number of each episode's question, in the order of their first episodes."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(episode.question_key, len(numbers)) for episode in episodes])


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None if a part of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
