"""From scored episodes to the numbers of a run: quality with intervals, behaviour and effort, per dataset and over datasets.

The denominator is what was asked: every question with every sample, whatever its ending (contract 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np

from searchparty.errors import UserError
from searchparty.evaluation.intervals import bootstrap_means, wilson_interval
from searchparty.evaluation.sampling_metrics import (
    FloatArray,
    all_correct_by_question,
    any_correct_by_question,
    average_by_question,
    samples_array,
)
from searchparty.evaluation.scoring import ScoredEpisode

MACRO = "macro"
"""Name of the row that is the mean over datasets with equal weight."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A mean over questions with its 95 % bootstrap interval; questions, not samples, are drawn again."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Quality:
    """What the answers earned."""

    questions: int
    exact_match: Rate
    """avg@k of exact match: the expected score of one attempt."""
    pass_at_k: Rate
    """Share of questions that at least one of the k attempts answered."""
    all_k_right: Rate
    """Share of questions that all k attempts answered."""
    f1: Rate
    f1_joined: Rate
    cover_exact_match: Rate


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


@dataclass(frozen=True, slots=True)
class RoleSummary:
    """One role over all episodes; means are per episode."""

    agents: float
    calls: float
    input_tokens: float | None
    unique_input_tokens: float | None
    output_tokens: float | None
    format_failures: dict[str, int]
    """Agents that a turn without a well-formed action ended, by kind; totals."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """All numbers of one run."""

    team: str
    model: str
    scorer: str
    samples: int
    """k of avg@k and pass@k."""
    quality: dict[str, Quality]
    """Dataset to quality; the last entry is `macro`."""
    behaviour: dict[str, Behaviour]
    """Dataset to behaviour; the last entry, `all`, takes all episodes together."""
    roles: dict[str, RoleSummary]


def summarise(scored: Sequence[ScoredEpisode], *, team: str, model: str, scorer: str, samples: int) -> RunSummary:
    """Summarise a complete run.

    Raises:
        UserError: if a question has not exactly `samples` scored episodes.
    """
    by_dataset: dict[str, list[ScoredEpisode]] = {}
    for episode in scored:
        by_dataset.setdefault(episode.dataset, []).append(episode)
    behaviour = {dataset: _behaviour(episodes) for dataset, episodes in by_dataset.items()}
    behaviour["all"] = _behaviour(scored)
    return RunSummary(team, model, scorer, samples, _quality(by_dataset, samples), behaviour, _roles(scored))


def _quality(by_dataset: Mapping[str, Sequence[ScoredEpisode]], samples: int) -> dict[str, Quality]:
    exact_QS = {dataset: _values(episodes, "exact_match", samples) for dataset, episodes in by_dataset.items()}
    per_question: dict[str, dict[str, FloatArray]] = {
        "exact_match": {name: average_by_question(array) for name, array in exact_QS.items()},
        "pass_at_k": {name: any_correct_by_question(array) for name, array in exact_QS.items()},
        "all_k_right": {name: all_correct_by_question(array) for name, array in exact_QS.items()},
    }
    for field in ("f1", "f1_joined", "cover_exact_match"):
        arrays = {dataset: _values(episodes, field, samples) for dataset, episodes in by_dataset.items()}
        per_question[field] = {name: average_by_question(array) for name, array in arrays.items()}
    rates = {field: _rates(values) for field, values in per_question.items()}
    questions = {dataset: len(values) for dataset, values in per_question["exact_match"].items()}
    questions[MACRO] = sum(questions.values())
    return {
        name: Quality(questions=count, **{field: rates[field][name] for field in rates}) for name, count in questions.items()
    }


def _rates(values_Q_by_dataset: Mapping[str, FloatArray]) -> dict[str, Rate]:
    """Means with bootstrap intervals, per dataset and macro.

    Where every question has the value 0, or every one 1, there is nothing to draw from, and Wilson's interval is given instead.
    The macro interval is then put together from those of the datasets: with D datasets the distance from mean to end is
    sqrt(sum of squared distances) / D, since datasets are independent (Zou and Donner 2008, MOVER).
    """
    intervals = bootstrap_means(values_Q_by_dataset)
    rates = {}
    for dataset, values_Q in values_Q_by_dataset.items():
        mean, interval = float(np.mean(values_Q)), intervals.datasets[dataset]
        if mean in (0.0, 1.0):
            interval = wilson_interval(round(mean * len(values_Q)), len(values_Q))
        rates[dataset] = Rate(mean, interval.low, interval.high)
    macro = float(np.mean([rate.value for rate in rates.values()]))
    if any(rate.value in (0.0, 1.0) for rate in rates.values()):
        below = hypot(*(rate.value - rate.low for rate in rates.values())) / len(rates)
        above = hypot(*(rate.high - rate.value for rate in rates.values())) / len(rates)
        rates[MACRO] = Rate(macro, max(0.0, macro - below), min(1.0, macro + above))
    else:
        rates[MACRO] = Rate(macro, intervals.macro.low, intervals.macro.high)
    return rates


def _values(episodes: Sequence[ScoredEpisode], field: str, samples: int) -> FloatArray:
    """One score of every episode as an array [questions, samples]."""
    rows: dict[str, dict[int, float]] = {}
    for episode in episodes:
        rows.setdefault(episode.question_key, {})[episode.sample] = getattr(episode, field)
    for key, row in rows.items():
        if sorted(row) != list(range(samples)):
            raise UserError(f"{key}: {len(row)} of {samples} samples are there; resume the run, then score it")
    return samples_array([[row[sample] for sample in range(samples)] for row in rows.values()])


def _behaviour(episodes: Sequence[ScoredEpisode]) -> Behaviour:
    reasons = Counter(episode.stop_reason for episode in episodes)
    uses = [list(episode.roles.values()) for episode in episodes]
    return Behaviour(
        episodes=len(episodes),
        answered=_mean([float(episode.answer is not None) for episode in episodes]),
        no_search=_mean([float(episode.searches == 0) for episode in episodes]),
        searches=_mean([float(episode.searches) for episode in episodes]),
        empty_searches=_mean([float(episode.empty_searches) for episode in episodes]),
        steps=_mean([float(episode.steps) for episode in episodes]),
        input_tokens=_total_per_episode([use.input_tokens for roles in uses for use in roles], len(episodes)),
        unique_input_tokens=_total_per_episode([use.unique_input_tokens for roles in uses for use in roles], len(episodes)),
        output_tokens=_total_per_episode([use.output_tokens for roles in uses for use in roles], len(episodes)),
        service_failures=reasons["model_failed"] + reasons["retriever_failed"],
        unscorable=sum(not episode.scorable for episode in episodes),
        stop_reasons=dict(reasons.most_common()),
    )


def _roles(episodes: Sequence[ScoredEpisode]) -> dict[str, RoleSummary]:
    summaries = {}
    for role in dict.fromkeys(role for episode in episodes for role in episode.roles):
        uses = [episode.roles[role] for episode in episodes if role in episode.roles]
        failures: Counter[str] = Counter()
        for use in uses:
            failures.update(use.format_failures)
        summaries[role] = RoleSummary(
            agents=sum(use.agents for use in uses) / len(episodes),
            calls=sum(use.calls for use in uses) / len(episodes),
            input_tokens=_total_per_episode([use.input_tokens for use in uses], len(episodes)),
            unique_input_tokens=_total_per_episode([use.unique_input_tokens for use in uses], len(episodes)),
            output_tokens=_total_per_episode([use.output_tokens for use in uses], len(episodes)),
            format_failures=dict(failures.most_common()),
        )
    return summaries


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _total_per_episode(counts: Sequence[int | None], episodes: int) -> float | None:
    known = [count for count in counts if count is not None]
    return sum(known) / episodes if len(known) == len(counts) else None
