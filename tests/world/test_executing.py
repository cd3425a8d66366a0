"""The planner's world: what each workflow can answer, so that there is something to plan."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from world_factories import exact_match

from playing import scripted_model
from searchparty.episodes.types import Episode
from searchparty.models.types import Sampling
from searchparty.questions.types import Question
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.bm25 import BM25Index
from searchparty.teams.cast import Part
from searchparty.teams.planned import Planned
from searchparty.teams.play import play
from searchparty.world.executing import WorldExecutors, WorldPlanner, best_workflow
from searchparty.world.language import read_question
from searchparty.world.prompting import world_prompt
from searchparty.world.types import World


def attempt(world: World, index: BM25Index, script: object, **options: object) -> list[tuple[Question, Episode]]:
    team = Planned(**options)  # type: ignore[arg-type]
    model = scripted_model(script)  # type: ignore[arg-type]
    cast = {role: Part(model, world_prompt(name), Sampling(max_tokens=200)) for role, name in team.prompts.items()}

    async def all_of_them() -> list[Episode]:
        retriever = AsyncRetriever(index)
        try:
            return await asyncio.gather(*(play(team, question, cast, retriever) for question in world.questions["test"]))
        finally:
            await retriever.close()

    return list(zip(world.questions["test"], asyncio.run(all_of_them()), strict=True))


def right_by_type(played: list[tuple[Question, Episode]]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for question, episode in played:
        found[f"{question.type} {question.hops}"].append(exact_match([episode], [question]))
    return {kind: sum(values) / len(values) for kind, values in found.items()}


def test_each_kind_of_question_has_a_workflow_that_answers_it_and_one_that_does_not(world: World, index: BM25Index) -> None:
    careful = WorldExecutors(world, slips=0, misled=0)
    by_workflow = {
        workflow: right_by_type(attempt(world, index, careful, workflow=workflow)) for workflow in ("AG", "RA,AG", "QDP", "QDS")
    }
    assert by_workflow["AG"]["comparison 2"] > 0.8  # a stage name must be looked up
    assert by_workflow["AG"]["bridge 2"] < 0.2 < 0.8 < by_workflow["QDS"]["bridge 2"]
    assert by_workflow["AG"]["single 1"] < 0.5 < by_workflow["RA,AG"]["single 1"]
    assert by_workflow["QDP"]["yes_no 2"] > by_workflow["AG"]["yes_no 2"]


def test_the_planner_that_sees_what_a_question_needs_is_as_good_as_the_best_workflow_and_searches_less(
    world: World, index: BM25Index
) -> None:
    planned = attempt(world, index, WorldPlanner(world))
    always = attempt(world, index, WorldExecutors(world), workflow="QDS")

    def mean(played: list[tuple[Question, Episode]]) -> float:
        return sum(exact_match([episode], [question]) for question, episode in played) / len(played)

    def searches(played: list[tuple[Question, Episode]]) -> int:
        return sum(len(episode.retrievals) for _, episode in played)

    assert mean(planned) > mean(always) - 0.05
    assert searches(planned) < searches(always)


def test_an_imperfect_planner_breaks_rules_at_its_rate(world: World, index: BM25Index) -> None:
    episodes = [episode for _, episode in attempt(world, index, WorldPlanner(world, malformed_share=0.3))]
    broken = [turn.broken_rule is not None for episode in episodes for turn in episode.planner_turns]
    assert 0.2 < sum(broken) / len(broken) < 0.4


@pytest.mark.parametrize(
    ("question", "workflow"),
    [
        ("in which year was tasu pigu born?", "AG"),
        ("what was released first, the film suri or the film noti?", "AG"),
        ("who taught tasu pigu?", "RA, AG"),
        ("who taught the teacher of fudidu?", "QDS"),
        ("do risi and bupi have the same employer?", "QDP"),
        ("what is love?", "RA, AG"),
    ],
)
def test_the_cheapest_workflow_that_suffices(question: str, workflow: str) -> None:
    assert best_workflow(read_question(question)) == workflow
