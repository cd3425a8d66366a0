"""Playing a batch: equal weights and seeds give equal episodes, and a failing service gets two more chances."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playing import PARIS, FixedRetriever, cast_for, good_lines, scripted_model
from searchparty.config.recipe import TeamRecipe
from searchparty.episodes.types import Episode, StopReason
from searchparty.errors import Failure, FailureKind
from searchparty.evaluation.run import load_scorable
from searchparty.evaluation.staging import Models, Stage, set_stage
from searchparty.models.transformers_engine import TransformersEngine
from searchparty.teams.chained import Chained
from searchparty.training.rollout import RolledOut, roll_out

BROKEN = Failure("model", FailureKind.TIMEOUT, "too slow")


def played(stage: Stage, questions: list[Any], samples: int, seed: int = 0, concurrency: int = 4) -> RolledOut:
    told: list[tuple[int, int]] = []

    async def fresh() -> RolledOut:
        """As a training step does it: nothing is cached from the step before."""
        for part in stage.cast.values():
            if isinstance(part.model.engine, TransformersEngine):
                await part.model.engine.weights_changed()
        return await roll_out(
            stage, questions, samples, seed=seed, concurrency=concurrency, on_episode=lambda *done: told.append(done)
        )

    rolled = asyncio.run(fresh())
    assert told[-1] == (len(rolled.episodes), len(rolled.episodes))
    return rolled


def scripted(script: Callable[..., Any], retriever: Any) -> Stage:
    team = Chained()
    return Stage(team, cast_for(team, scripted_model(script)), retriever, Models(), owns_models=True)


def bits(episodes: list[Episode]) -> list[Any]:
    return [
        (episode.question_key, episode.sample, [(span.ids, span.logprobs) for agent in episode.agents for span in agent.spans])
        for episode in episodes
    ]


@pytest.fixture(scope="module")
def tiny(world: Path) -> Stage:
    asked = {"team": "chained", "model": "tiny", "index": str(world / "index"), "prompts": "world"}
    return set_stage(TeamRecipe(**asked, sampling={"max_tokens": 32}))


@pytest.mark.parametrize("concurrency", [3, 16])
def test_equal_seeds_give_equal_ids_and_log_probabilities_to_the_last_bit(tiny: Stage, world: Path, concurrency: int) -> None:
    questions = load_scorable(world / "questions-train.jsonl", None, 3)[0]
    first, second = (bits(played(tiny, questions, 2, concurrency=concurrency).episodes) for _ in range(2))
    assert first == second
    assert [(key, sample) for key, sample, _ in first] == [
        (question.key, sample) for question in questions for sample in (0, 1)
    ]


def test_another_seed_gives_other_episodes(tiny: Stage, world: Path) -> None:
    questions = load_scorable(world / "questions-train.jsonl", None, 2)[0]
    assert bits(played(tiny, questions, 2, seed=0).episodes) != bits(played(tiny, questions, 2, seed=1).episodes)


def test_an_episode_that_a_failing_service_ended_is_played_again() -> None:
    rolled = played(scripted(good_lines(answerer=[BROKEN, "<answer>Paris</answer>"]), FixedRetriever()), [PARIS], 1)
    assert rolled.episodes[0].stop_reason is StopReason.ANSWERED
    assert rolled.repeated == 1


@pytest.mark.parametrize("part", ["model", "retriever"])
def test_a_service_that_keeps_failing_is_tried_twice_more_and_the_episode_says_so(part: str) -> None:
    retriever = FixedRetriever(failure=Failure("retriever", FailureKind.UNREACHABLE, "gone") if part == "retriever" else None)
    script = good_lines(searcher=[BROKEN]) if part == "model" else good_lines(searcher=["<search>x</search>"])
    rolled = played(scripted(script, retriever), [PARIS], 2)
    assert rolled.repeated == 4
    assert {episode.stop_reason for episode in rolled.episodes} == {StopReason(f"{part}_failed")}
    assert [episode.sample for episode in rolled.episodes] == [0, 1]
    assert len(retriever.queries) == (6 if part == "retriever" else 0)


def test_an_episode_that_the_policy_spoiled_is_not_played_again() -> None:
    script = good_lines(answerer=["no answer at all"])
    rolled = played(scripted(script, FixedRetriever()), [PARIS], 1)
    assert rolled.repeated == 0
    assert sum(request.role == "answerer" for request in script.requests) == 1
