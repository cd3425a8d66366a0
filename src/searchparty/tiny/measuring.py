"""How well a tiny policy plays in a world that it has never seen: the figures of its model card.

Knows episodes and scores; nothing of training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from searchparty.episodes.types import Episode
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import score_episode
from searchparty.models.loading import Model
from searchparty.models.types import Sampling
from searchparty.questions.types import Question
from searchparty.tiny.lessons import play_teams
from searchparty.world import WorldParameters, make_world

HELD_OUT_SEED = 77
"""A world of this seed is in no lesson."""
TEAMS = ("direct", "rag", "chained", "hierarchical")


@dataclass(frozen=True)
class Figures:
    """One team's play over all questions."""

    questions: int
    exact_match: float
    exact_match_by_hops: dict[int, float]
    well_formed: float
    """Share of agents whose last turn was a well-formed action that was allowed then."""
    answered: float
    """Share of episodes that ended with a well-formed answer."""
    searches: float
    """Searches per episode."""
    output_tokens: float
    """Sampled tokens per episode."""


def measure(
    model: Model, *, questions: int = 200, temperature: float = 1.0, seed: int = HELD_OUT_SEED, teams: Sequence[str] = TEAMS
) -> dict[str, Figures]:
    """Team to figures, over test questions of a new world of the default kind. The model's engine is closed."""
    world = make_world(WorldParameters(seed=seed, train=1, dev=1, test=questions))
    asked = world.questions["test"]
    sampling = Sampling(temperature=temperature, max_tokens=96)
    episodes = play_teams(model, world, dict.fromkeys(teams, asked), sampling=sampling)
    return {team: figures(episodes[place * questions : (place + 1) * questions], asked) for place, team in enumerate(teams)}


def figures(episodes: Sequence[Episode], questions: Sequence[Question]) -> Figures:
    """The figures of episodes, one per question and in their order."""
    scorer, by_hops = scorer_named("squad"), dict[int, list[float]]()
    scored = []
    for episode, question in zip(episodes, questions, strict=True):
        scored.append(score_episode(episode, question.golden_answers, scorer))
        by_hops.setdefault(question.hops or 0, []).append(scored[-1].exact_match)
    agents = [agent for episode in episodes for agent in episode.agents]
    return Figures(
        questions=len(questions),
        exact_match=_mean([one.exact_match for one in scored]),
        exact_match_by_hops={hops: _mean(values) for hops, values in sorted(by_hops.items())},
        well_formed=_mean([agent.problem is None for agent in agents]),
        answered=_mean([one.answer is not None for one in scored]),
        searches=_mean([one.searches for one in scored]),
        output_tokens=_mean([sum(use.output_tokens or 0 for use in one.roles.values()) for one in scored]),
    )


def as_records(measured: Mapping[str, Figures]) -> dict[str, Any]:
    """The figures as JSON values, shares rounded to four digits."""
    return {team: _rounded(asdict(one)) for team, one in measured.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _rounded(inner) for key, inner in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
