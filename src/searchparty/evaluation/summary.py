"""From scored episodes to the numbers of a run: quality with intervals, behaviour and effort, per dataset and over datasets.

The denominator is what was asked: every question with every sample, whatever its ending (contract 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from searchparty.errors import UserError
from searchparty.evaluation.behaviour import ALL, Behaviour, behaviours, tokens_per_episode
from searchparty.evaluation.estimates import Estimate, estimate_rates
from searchparty.evaluation.intervals import MACRO, MACRO_LARGE, MICRO, pools
from searchparty.evaluation.sampling_metrics import (
    FloatArray,
    all_correct_by_question,
    any_correct_by_question,
    average_by_question,
    samples_array,
    unbiased_pass_by_question,
)
from searchparty.evaluation.scoring import ScoredEpisode

GRADED = ("f1", "f1_joined", "cover_exact_match", "loose_exact_match", "lenient_exact_match", "repaired_exact_match")
"""Scores of which only the mean over a question's samples is of interest."""

OVER_DATASETS = (MACRO, MICRO, MACRO_LARGE, ALL)
"""Names under which numbers over several datasets stand beside those of single ones."""


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
    pass_at: dict[str, Estimate]
    """For each power of two j between 1 and k, as text: pass@j without bias, over all choices of j among the k attempts."""
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


def check_dataset_names(names: Iterable[str], source: Path) -> None:
    """Raises UserError for a dataset with a name of `OVER_DATASETS`: the one's numbers would replace the other's."""
    if taken := sorted(set(names) & set(OVER_DATASETS)):
        raise UserError(
            f"{source}: a dataset is named {taken[0]!r}, as numbers over all datasets are; rename it in the file or with: "
            "searchparty questions convert IN -o OUT.jsonl --dataset NAME"
        )


def summarise(scored: Sequence[ScoredEpisode], *, team: str, model: str, scorer: str, samples: int) -> RunSummary:
    """Summarise a complete run.

    Raises:
        UserError: if a question has not exactly `samples` scored episodes.
    """
    by_dataset: dict[str, list[ScoredEpisode]] = {}
    for episode in scored:
        by_dataset.setdefault(episode.dataset, []).append(episode)
    quality = _quality(by_dataset, samples)
    return RunSummary(team, model, scorer, samples, quality, behaviours(by_dataset), _roles(scored))


def _quality(by_dataset: Mapping[str, Sequence[ScoredEpisode]], samples: int) -> dict[str, Quality]:
    attempts = {dataset: _attempts(episodes, samples) for dataset, episodes in by_dataset.items()}
    exact_QS = {dataset: _values(rows, "exact_match") for dataset, rows in attempts.items()}
    per_question: dict[str, dict[str, FloatArray]] = {
        "exact_match": {name: average_by_question(array) for name, array in exact_QS.items()},
        "pass_at_k": {name: any_correct_by_question(array) for name, array in exact_QS.items()},
        "all_k_right": {name: all_correct_by_question(array) for name, array in exact_QS.items()},
    }
    for field in GRADED:
        per_question[field] = {name: average_by_question(_values(rows, field)) for name, rows in attempts.items()}
    rates = {field: estimate_rates(values) for field, values in per_question.items()}
    fewer = {
        str(k): estimate_rates({name: unbiased_pass_by_question(array, k) for name, array in exact_QS.items()})
        for k in _powers_of_two(samples)
    }
    questions = {dataset: len(values) for dataset, values in per_question["exact_match"].items()}
    pooled = {way: sum(questions[name] for name in weights) for way, weights in pools(questions).items()}
    return {
        name: Quality(
            questions=count,
            pass_at={k: found[name] for k, found in fewer.items()},
            **{field: rates[field][name] for field in rates},
        )
        for name, count in {**questions, **pooled}.items()
    }


def _powers_of_two(samples: int) -> list[int]:
    """Those between 1 and the number of samples."""
    return [2**power for power in range(1, samples.bit_length()) if 2**power < samples]


def _attempts(episodes: Sequence[ScoredEpisode], samples: int) -> list[list[ScoredEpisode]]:
    """The episodes of each question in the order of its samples."""
    by_question: dict[str, dict[int, ScoredEpisode]] = {}
    for episode in episodes:
        by_question.setdefault(episode.question_key, {})[episode.sample] = episode
    for key, own in by_question.items():
        if sorted(own) != list(range(samples)):
            raise UserError(f"{key}: {len(own)} of {samples} samples are there; resume the run, then score it")
    return [[own[sample] for sample in range(samples)] for own in by_question.values()]


def _values(attempts: Sequence[Sequence[ScoredEpisode]], field: str) -> FloatArray:
    """One score of every episode as an array [questions, samples]."""
    return samples_array([[getattr(episode, field) for episode in row] for row in attempts])


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
            input_tokens=tokens_per_episode(uses, "input_tokens", len(episodes)),
            unique_input_tokens=tokens_per_episode(uses, "unique_input_tokens", len(episodes)),
            output_tokens=tokens_per_episode(uses, "output_tokens", len(episodes)),
            format_failures=dict(failures.most_common()),
        )
    return summaries
