"""The planned team: what each workflow leads to, what happens to unusable turns, and what is recorded."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from playing import PARIS, FixedRetriever, Lines, cast_for, play_lines, scripted_model
from searchparty.episodes.types import AgentEnd, Episode, ExecutorUse, StopReason
from searchparty.errors import Failure, FailureKind
from searchparty.models.types import GenerateRequest
from searchparty.teams.executors.answering import AnswerGenerator
from searchparty.teams.executors.decomposition import QueryDecompositionSerial
from searchparty.teams.executors.retrieval import RetrievalAgent
from searchparty.teams.planned import Planned
from searchparty.teams.play import play
from searchparty.teams.registry import make_team
from searchparty.teams.workflow import Form, Product

ANSWER = "<answer>Paris</answer>"
TWO = "<question>Where is A?</question>\n<question>Where is B?</question>"
SERIAL = "<question>Where is A?</question>\n<question>Who rules #1?</question>"


def lines(*plans: str, **changes: Sequence[str | Failure]) -> Lines:
    """Executors that do their work, with some roles' lines replaced."""
    usual: dict[str, Any] = {
        "qds": [SERIAL], "qdp": [TWO], "qr": ["<query>capital France</query>"], "ds": ["<documents>1</documents>"],
        "ag": [ANSWER], "as": [ANSWER],
    }  # fmt: skip
    return Lines({"planner": [f"<workflow>{plan}</workflow>" for plan in plans], **usual, **changes})


def seen(episode: Episode, agent: str) -> str:
    """What an agent was told, prompts apart."""
    return "\n".join(span.text for span in episode.transcript(agent).spans if span.kind == "observation")


def seen_in_all(episode: Episode, agent: str) -> str:
    """What an agent was told, its prompt with it."""
    return "\n".join(span.text for span in episode.transcript(agent).spans if span.kind != "action")


def roles(episode: Episode) -> list[str]:
    return [transcript.agent for transcript in episode.agents]


def test_an_answer_without_retrieval_asks_nobody_else() -> None:
    retriever = FixedRetriever()
    episode = play_lines(Planned(), lines("AG"), retriever)
    assert (episode.stop_reason, episode.steps, roles(episode)) == (StopReason.ANSWERED, 2, ["planner.1", "ag.1"])
    assert retriever.queries == [] and "Passage" not in seen(episode, "ag.1")
    (turn,) = episode.planner_turns
    assert (turn.agent, turn.executors, turn.broken_rule, turn.answer) == ("planner.1", ["AG"], None, "Paris")
    assert turn.uses == [ExecutorUse("AG", "ag.1")]


def test_a_rewritten_query_feeds_the_retriever_and_the_answer_gets_the_question_as_it_was_asked() -> None:
    retriever = FixedRetriever()
    episode = play_lines(Planned(), lines("QR, RA, AG"), retriever)
    assert retriever.queries == ["capital France"]
    assert PARIS.text in seen(episode, "ag.1") and "capital France" not in seen(episode, "ag.1")
    assert [transcript.parent for transcript in episode.agents] == [None, "planner.1", "planner.1"]
    assert episode.planner_turns[0].uses == [ExecutorUse("QR", "qr.1"), ExecutorUse("RA", None), ExecutorUse("AG", "ag.1")]


def test_the_answer_sees_only_the_passages_that_were_chosen() -> None:
    retriever = FixedRetriever(("One.", "Two.", "Three."))
    episode = play_lines(Planned(), lines("RA, DS, AG", ds=["<documents>2</documents>"]), retriever)
    assert "Two." in seen(episode, "ag.1") and "One." not in seen(episode, "ag.1")
    nothing = play_lines(Planned(), lines("RA, DS, AG", ds=["<documents>none</documents>"]), retriever)
    assert "No passage was found." in seen(nothing, "ag.1")


@pytest.mark.parametrize("choice", ["<documents>4</documents>", "<documents>0</documents>", "<documents>a</documents>", "1"])
def test_a_choice_of_passages_that_are_not_there_is_counted_and_all_are_kept(choice: str) -> None:
    retriever = FixedRetriever(("One.", "Two."))
    episode = play_lines(Planned(), lines("RA, DS, AG", ds=[choice]), retriever)
    assert "One." in seen(episode, "ag.1") and "Two." in seen(episode, "ag.1")
    assert episode.planner_turns[0].uses[1].problem in ("bad_content", "no_tag")
    assert episode.transcript("ds.1").end is AgentEnd.INVALID_ACTION
    assert episode.stop_reason is StopReason.ANSWERED


def test_a_query_that_cannot_be_read_leaves_the_question_as_query() -> None:
    retriever = FixedRetriever()
    episode = play_lines(Planned(), lines("QR, RA, AG", qr=["nothing"]), retriever)
    assert retriever.queries == [PARIS.text]
    assert episode.planner_turns[0].uses[0].problem == "no_tag"


def test_serial_sub_questions_are_planned_one_by_one_with_earlier_answers_filled_in() -> None:
    episode = play_lines(Planned(), lines("QDS", "AG", "RA, AG", ag=["<answer>Rome</answer>", "<answer>Nero</answer>"]))
    assert [turn.question for turn in episode.planner_turns] == [PARIS.text, "Where is A?", "Who rules Rome?"]
    assert [turn.agent for turn in episode.planner_turns] == ["planner.1", "planner.2", "planner.3"]
    assert episode.transcript("planner.3").parent == "planner.1"
    first = episode.planner_turns[0]
    assert (first.sub_questions, [use.executor for use in first.uses], first.answer) == (2, ["QDS", "AS"], "Paris")
    assert "Who rules #1?\nAnswer: Nero" in seen(episode, "as.1") and PARIS.text in seen(episode, "as.1")
    assert episode.answering_agent == "as.1"


def test_parallel_sub_questions_take_their_steps_together() -> None:
    episode = play_lines(Planned(), lines("QDP", "RA, AG", "QR, RA, AG"))
    steps = {transcript.agent: [call.step for call in transcript.calls] for transcript in episode.agents}
    assert steps["planner.2"] == steps["planner.3"] == [3]
    assert steps["ag.1"] == steps["qr.1"] == [4] and steps["ag.2"] == [5] and steps["as.1"] == [6]


@pytest.mark.parametrize(
    "sub_questions",
    [
        "none",
        "<question>Only one?</question>",
        "".join(f"<question>Number {number}?</question>\n" for number in range(9)),
        "<question> </question><question>b?</question>",
        "<question>Who is #2?</question><question>Who is #1?</question>",
        "<question>Who is #1?</question><question>b?</question>",
        "<question>a?</question><question>Who is #0?</question>",
    ],
)
def test_an_unusable_decomposition_is_counted_and_its_question_answered_undecomposed(sub_questions: str) -> None:
    episode = play_lines(Planned(), lines("QDS", qds=[sub_questions]))
    (turn,) = episode.planner_turns
    assert turn.uses[0].problem is not None and turn.sub_questions == 0
    assert [use.executor for use in turn.uses] == ["QDS", "RA", "AG"]
    assert episode.stop_reason is StopReason.ANSWERED


def test_parallel_sub_questions_may_not_refer_to_one_another() -> None:
    assert play_lines(Planned(), lines("QDP", qdp=[SERIAL])).planner_turns[0].uses[0].problem == "bad_content"


def test_a_broken_workflow_ends_the_episode_and_names_its_rule() -> None:
    episode = play_lines(Planned(), lines("DS, AG"))
    assert episode.stop_reason is StopReason.INVALID_ACTION and "missing_prerequisite" in (episode.detail or "")
    assert episode.planner_turns[0].broken_rule == "missing_prerequisite"
    assert episode.transcript("planner.1").end is AgentEnd.INVALID_ACTION


def test_a_broken_workflow_of_a_sub_question_leaves_that_one_unanswered() -> None:
    episode = play_lines(Planned(), lines("QDS", "QDS", "AG"))
    assert [turn.broken_rule for turn in episode.planner_turns] == [None, "too_deep", None]
    assert "Where is A?\nAnswer: unknown" in seen(episode, "as.1")
    assert episode.planner_turns[2].question == "Who rules unknown?"
    assert episode.stop_reason is StopReason.ANSWERED


@pytest.mark.parametrize("turn", ["", "AG" * 5000, "<workflow></workflow>"])
def test_a_planner_that_says_nothing_or_too_much_breaks_a_rule(turn: str) -> None:
    episode = play_lines(Planned(), lines(planner=[turn]))
    assert episode.planner_turns[0].broken_rule == "unreadable"
    assert episode.stop_reason is StopReason.INVALID_ACTION


def test_a_model_that_fails_in_the_middle_of_a_workflow_ends_the_episode_as_a_failed_service() -> None:
    gone = Failure("model", FailureKind.UNREACHABLE, "gone")
    episode = play_lines(Planned(), lines("QDP", "RA, AG", ag=[gone]))
    assert episode.stop_reason is StopReason.MODEL_FAILED and episode.planner_turns[0].executors == ["QDP"]
    searched = play_lines(Planned(), lines("RA, AG"), FixedRetriever(failure=Failure("retriever", FailureKind.TIMEOUT, "slow")))
    assert searched.stop_reason is StopReason.RETRIEVER_FAILED


def test_a_fixed_workflow_needs_no_planner() -> None:
    episode = play_lines(Planned(workflow="QDP", sub_workflow="AG"), lines())
    assert roles(episode) == ["qdp.1", "ag.1", "ag.2", "as.1"]
    assert [(turn.agent, turn.executors) for turn in episode.planner_turns] == [(None, ["QDP"]), (None, ["AG"]), (None, ["AG"])]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"executors": ["RA", "AQ"]}, "AQ"),
        ({"executors": ["RA"]}, "none that answers"),
        ({"workflow": "DS,AG"}, "missing_prerequisite"),
        ({"workflow": "QDP", "sub_workflow": "QDS"}, "too_deep"),
        ({"sub_workflow": "AG"}, "give workflow too"),
        ({"max_sub_questions": 1}, "at least 2"),
        ({"executors": ["AG", "AG"]}, "twice"),
    ],
)
def test_executors_and_workflows_that_are_not_there_are_refused_before_a_run(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(Exception, match=fault):
        make_team(Planned, options)


class Reader(AnswerGenerator):
    form: ClassVar = Form("RE", Product.ANSWER, may_use=(Product.PASSAGES,))


class Splitter(QueryDecompositionSerial):
    form: ClassVar = Form("SP", Product.SUB_QUESTIONS)


@dataclass(frozen=True)
class OwnExecutors(Planned):
    """A user's team: what is serial, what answers and what the fallback is follow from what its executors declare."""

    executor_classes: ClassVar = (Splitter(), RetrievalAgent(), Reader())
    executors: tuple[str, ...] = ("SP", "RA", "RE")


def test_executors_of_ones_own_bring_their_grammar_their_fallback_and_whether_they_are_serial() -> None:
    episode = play_lines(OwnExecutors(), lines("SP", "RE", "RA, RE", ag=["<answer>Rome</answer>"]))
    assert [turn.question for turn in episode.planner_turns] == [PARIS.text, "Where is A?", "Who rules Rome?"]
    assert episode.planner_turns[0].serial and episode.stop_reason is StopReason.ANSWERED
    undivided = play_lines(OwnExecutors(), lines("SP", qds=["none"]))
    assert [use.executor for use in undivided.planner_turns[0].uses] == ["SP", "RA", "RE"]
    assert play_lines(OwnExecutors(), lines("RA, AG")).planner_turns[0].broken_rule == "unknown_executor"


def test_what_is_planned_does_not_depend_on_whose_model_answers_first() -> None:
    def script(request: GenerateRequest) -> str:
        by_role = {"qdp": TWO, "qr": "<query>q</query>", "ag": ANSWER, "as": ANSWER, "ds": "<documents>1</documents>"}
        if request.role == "planner":
            return f"<workflow>{('QDP', 'QR, RA, AG', 'RA, DS, AG')[request.seed % 3]}</workflow>"
        return by_role[request.role]

    def record(delays: random.Random | None, seed: int) -> Any:
        model = scripted_model(script)
        if delays is not None:
            generate = model.engine.generate

            async def late(requests: Sequence[GenerateRequest]) -> Any:
                await asyncio.sleep(delays.random() / 200)
                return await generate(requests)

            model.engine.generate = late  # type: ignore[method-assign]
        episode = asyncio.run(play(Planned(), PARIS, cast_for(Planned(), model), FixedRetriever(), seed=seed))
        calls = [[(call.seed, call.step) for call in transcript.calls] for transcript in episode.agents]
        return episode.planner_turns, roles(episode), calls, [one.agent for one in episode.retrievals], episode.steps

    for seed in range(12):
        assert record(None, seed) == record(random.Random(seed), seed) == record(random.Random(seed + 99), seed)


def test_a_planner_is_offered_only_what_may_be_chosen_at_its_depth() -> None:
    episode = play_lines(Planned(executors=("QDS", "RA", "AG")), lines("QDS", "RA, AG", "AG"))
    menus = [seen_in_all(episode, planner).rsplit("Executors:")[-1] for planner in ("planner.1", "planner.2")]
    assert ["QDS: " in menu for menu in menus] == [True, False]
    assert all("RA: " in menu and "QR: " not in menu for menu in menus)
