"""From scored episodes to the numbers of a run: quality with intervals, behaviour and effort, per dataset and over datasets.

The denominator is what was asked: every question with every sample, whatever its ending (contract 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from searchparty.errors import UserError
from searchparty.evaluation.estimates import Estimate, estimate_rates
from searchparty.evaluation.intervals import pools
from searchparty.evaluation.sampling_metrics import (
    FloatArray,
    all_correct_by_question,
    any_correct_by_question,
    average_by_question,
    samples_array,
)
from searchparty.evaluation.scoring import ScoredEpisode

GRADED = ("f1", "f1_joined", "cover_exact_match", "loose_exact_match", "lenient_exact_match", "repaired_exact_match")
"""Scores of which only the mean over a question's samples is of interest."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What the answers earned."""

    questions: int
    exact_match: Estimate
    """avg@k of exact match: the expected score of one attempt."""
    pass_at_k: Estimate
    """Share of questions that at least one of the k attempts answered."""
    all_k_right: Estimate
    """Share of questions that all k attempts answered."""
    f1: Estimate
    f1_joined: Estimate
    cover_exact_match: Estimate
    loose_exact_match: Estimate
    """Exact match where spelling counts less; never the score, like the two below."""
    lenient_exact_match: Estimate
    """Exact match where a turn without a well-formed answer is read again by lenient rules."""
    repaired_exact_match: Estimate
    """Exact match if every format failure were a right answer: an upper bound."""


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
    """Dataset to quality, then `macro` and the other `pools`."""
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
    for field in GRADED:
        arrays = {dataset: _values(episodes, field, samples) for dataset, episodes in by_dataset.items()}
        per_question[field] = {name: average_by_question(array) for name, array in arrays.items()}
    rates = {field: estimate_rates(values) for field, values in per_question.items()}
    questions = {dataset: len(values) for dataset, values in per_question["exact_match"].items()}
    pooled = {way: sum(questions[name] for name in weights) for way, weights in pools(questions).items()}
    return {
        name: Quality(questions=count, **{field: rates[field][name] for field in rates})
        for name, count in {**questions, **pooled}.items()
    }


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
