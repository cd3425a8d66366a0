"""The scripted judge: what is needed and true counts, what is not true counts against it."""

from __future__ import annotations

import pytest

from searchparty.models.types import GenerateRequest, Message, Sampling
from searchparty.training.judge import judge_prompt, read_score
from searchparty.world import World, WorldParameters, make_world
from searchparty.world.judging import WorldJudge
from searchparty.world.knowledge import Knowledge
from searchparty.world.language import read_question, state
from searchparty.world.types import Fact


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(WorldParameters(seed=2, entities=60, train=20, dev=1, test=1, hops=(0.0, 1.0, 0.0, 0.0), comparisons=0.0))


def score(world: World, task: str, report: str) -> float | None:
    """What the judge says to the built-in prompt."""
    values = {"question": task, "task": f"task: {task}", "report": f"<report>{report}</report>"}
    message = Message("user", judge_prompt(None).render("report", values, ("score",)))
    return read_score(WorldJudge(world)(GenerateRequest((message,), None, Sampling(), 0)))


def needed(world: World) -> tuple[str, list[Fact]]:
    """A question of two hops, and the facts that it needs."""
    for question in world.questions["train"]:
        inquiry = read_question(question.text)
        assert inquiry is not None
        facts = [fact for chain in inquiry.chains for fact in Knowledge(world.facts).walk(chain).used]
        if len(facts) == 2:
            return question.text, facts
    raise AssertionError("the world has no question of two facts")


def test_a_report_of_all_facts_gets_the_best_score_and_one_of_half_of_them_half(world: World) -> None:
    task, facts = needed(world)
    assert score(world, task, " ".join(map(state, facts))) == 1.0
    assert score(world, task, state(facts[0])) == 0.5
    assert score(world, task, "nothing was found.") == 0.0


def test_what_is_not_true_counts_against_a_report(world: World) -> None:
    task, facts = needed(world)
    other = next(fact for fact in world.facts if fact.relation == facts[1].relation and fact.object != facts[1].object)
    false = Fact(facts[1].subject, facts[1].relation, other.object)
    assert score(world, task, f"{state(facts[0])} {state(false)}") == 0.0


def test_a_task_that_is_no_question_of_the_world_gets_half(world: World) -> None:
    assert score(world, "be nice", "fine.") == 0.5
