"""What the metrics say of one batch of episodes: quality and behaviour per dataset, invalid turns per role.

Knows scored episodes, and the counts of credit and learner. Every mean is over all episodes of the batch, whatever their
ending (contract 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from searchparty.credit.result import CreditResult
from searchparty.evaluation.scoring import ScoredEpisode
from searchparty.learning.metrics import UpdateMetrics

ALL = "all"


def batch_measures(scored: Sequence[ScoredEpisode]) -> dict[str, dict[str, float]]:
    """Dataset to its means; `all` takes the episodes of all datasets together."""
    by_dataset: dict[str, list[ScoredEpisode]] = {}
    for episode in scored:
        by_dataset.setdefault(episode.dataset, []).append(episode)
    return {name: _means(episodes) for name, episodes in [*sorted(by_dataset.items()), (ALL, list(scored))]}


def endings(scored: Sequence[ScoredEpisode]) -> dict[str, int]:
    """How often each stop reason occurred."""
    return dict(sorted(Counter(episode.stop_reason for episode in scored).items()))


def watched_shares(scored: Sequence[ScoredEpisode]) -> dict[str, float]:
    """The shares that should not jump: episodes without a search, and per role the agents that an invalid turn ended."""
    shares = {"episodes without a search": _mean([episode.searches == 0 for episode in scored])}
    agents, failures = Counter[str](), Counter[str]()
    for episode in scored:
        for role, use in episode.roles.items():
            agents[role] += use.agents
            failures[role] += sum(use.format_failures.values())
    return {**shares, **{f"invalid turns of {role}": failures[role] / count for role, count in sorted(agents.items()) if count}}


def step_numbers(
    credit: CreditResult, update: UpdateMetrics, scored: Sequence[ScoredEpisode], watched: Mapping[str, float]
) -> dict[str, Any]:
    """What the metrics say of a step, timings apart."""
    roles = {}
    for role, counts in credit.roles.items():
        learned = update.roles.get(role)
        roles[role] = {
            **{key: value for key, value in asdict(counts).items() if key not in ("rewards", "groups")},
            "groups": None if counts.groups is None else asdict(counts.groups),
            "rewards": dict(counts.rewards),
            "update": None if learned is None else asdict(learned),
        }
    whole = asdict(update)
    del whole["roles"]
    return {
        "roles": roles,
        "datasets": batch_measures(scored),
        "endings": endings(scored),
        "watched": dict(watched),
        "set_aside": {reason.value: count for reason, count in credit.set_aside.items()},
        "update": whole,
    }


def macro_exact_match(scored: Sequence[ScoredEpisode]) -> float:
    """Exact match of the first candidates, each dataset with equal weight."""
    measures = batch_measures(scored)
    return _mean([means["exact_match"] for name, means in measures.items() if name != ALL])


def _means(episodes: Sequence[ScoredEpisode]) -> dict[str, float]:
    return {
        "episodes": len(episodes),
        "exact_match": _mean([episode.exact_match for episode in episodes]),
        "any_candidate": _mean([max((one.exact_match for one in episode.candidates), default=0.0) for episode in episodes]),
        "f1": _mean([episode.f1 for episode in episodes]),
        "answered": _mean([episode.stop_reason == "answered" for episode in episodes]),
        "no_search": _mean([episode.searches == 0 for episode in episodes]),
        "searches": _mean([episode.searches for episode in episodes]),
        "steps": _mean([episode.steps for episode in episodes]),
        "output_tokens": _mean([_output_tokens(episode.roles) for episode in episodes]),
    }


def _output_tokens(roles: Mapping[str, Any]) -> float:
    return float(sum(use.output_tokens or 0 for use in roles.values()))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
