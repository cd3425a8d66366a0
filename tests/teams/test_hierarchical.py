"""The hierarchical team: rounds, parallel Searchers, selection, and what happens at each limit."""

from __future__ import annotations

import pytest

from playing import FixedRetriever, good_lines, play_lines
from searchparty.episodes.types import AgentEnd, Episode, StopReason
from searchparty.errors import Failure, FailureKind
from searchparty.teams.hierarchical import Hierarchical

TASK, TWO_TASKS = "<task>Find A</task>", "<task>Find A</task>\n<task>Find B</task>"
SEARCH, REPORT = "<search>a</search>", "<report>found</report>"


def steps_of(episode: Episode, agent: str) -> list[int]:
    return [call.step for call in episode.transcript(agent).calls]


def test_two_searchers_work_in_the_same_environment_steps_with_histories_of_their_own() -> None:
    lines = good_lines(leader=[TWO_TASKS, "<select>2</select>"], searcher=[SEARCH, SEARCH, REPORT, "<report>other</report>"])
    episode = play_lines(Hierarchical(), lines)
    assert episode.stop_reason is StopReason.ANSWERED
    assert steps_of(episode, "leader.1") == [1, 4]
    assert steps_of(episode, "searcher.1") == steps_of(episode, "searcher.2") == [2, 3]
    assert steps_of(episode, "answerer.1") == [5]
    assert [transcript.parent for transcript in episode.agents] == [None, "leader.1", "leader.1", "leader.1"]
    first, second = episode.transcript("searcher.1"), episode.transcript("searcher.2")
    assert "Find A" in first.spans[1].text
    assert "Find B" in second.spans[1].text
    assert all("Find B" not in span.text for span in first.spans)


def test_the_answerer_reads_only_the_selected_reports() -> None:
    lines = good_lines(leader=[TWO_TASKS, "<select>2</select>"], searcher=[REPORT, "<report>other</report>"])
    seen = play_lines(Hierarchical(), lines).transcript("answerer.1").spans[1].text
    assert "Report 2: other" in seen
    assert "found" not in seen


def test_the_leader_reads_reports_and_tasks_but_no_passages() -> None:
    episode = play_lines(Hierarchical(), good_lines(), FixedRetriever(("A secret passage.",)))
    leader = "".join(span.text for span in episode.transcript("leader.1").spans)
    assert "Report 1 (task: Which city is the capital of France?): Paris is the capital." in leader
    assert "secret passage" not in leader


def test_later_rounds_number_their_reports_onwards() -> None:
    lines = good_lines(leader=[TWO_TASKS, TASK, "<select>1, 3</select>"], searcher=[REPORT])
    episode = play_lines(Hierarchical(), lines)
    assert "Report 3 (task: Find A): found" in episode.transcript("leader.1").spans[5].text
    seen = episode.transcript("answerer.1").spans[1].text
    assert "Report 1: found" in seen
    assert "Report 3: found" in seen


def test_after_five_rounds_the_leader_is_told_to_select_and_another_task_ends_the_episode() -> None:
    lines = good_lines(leader=[TASK], searcher=[REPORT])
    episode = play_lines(Hierarchical(), lines)
    assert episode.stop_reason is StopReason.NO_SELECTION
    leader = episode.transcript("leader.1")
    assert (len(leader.calls), leader.end, leader.problem) == (6, AgentEnd.LIMIT, "not_allowed_now")
    told = [
        "No more tasks are possible" in request.messages[-1].content for request in lines.requests if request.role == "leader"
    ]
    assert told == [False] * 5 + [True]


def test_five_rounds_of_one_report_each_fill_the_twelve_steps_exactly() -> None:
    lines = good_lines(leader=[TASK] * 5 + ["<select>5</select>"], searcher=[REPORT])
    episode = play_lines(Hierarchical(), lines)
    assert (episode.stop_reason, episode.steps) == (StopReason.ANSWERED, 12)


def test_searchers_that_never_report_are_stopped_in_time_for_selection_and_answer() -> None:
    lines = good_lines(leader=[TASK, "<select>none</select>"], searcher=[SEARCH])
    episode = play_lines(Hierarchical(), lines)
    searcher = episode.transcript("searcher.1")
    assert (searcher.end, steps_of(episode, "searcher.1")[-1]) == (AgentEnd.LIMIT, 10)
    assert (episode.stop_reason, episode.steps) == (StopReason.ANSWERED, 12)
    assert "none, the searcher gave no report" in episode.transcript("leader.1").spans[3].text
    assert "No report was selected." in episode.transcript("answerer.1").spans[1].text
    told = ["No more searches" in request.messages[-1].content for request in lines.requests if request.role == "searcher"]
    assert told == [False] * 8 + [True]


def test_the_leader_must_select_when_the_steps_left_allow_no_assignment() -> None:
    lines = good_lines(leader=[TASK], searcher=[REPORT])
    episode = play_lines(Hierarchical(max_steps=4), lines)
    assert episode.stop_reason is StopReason.NO_SELECTION
    assert steps_of(episode, "leader.1") == [1, 3]
    assert all("No more searches" in request.messages[-1].content for request in lines.requests if request.role == "searcher")


def test_one_searcher_out_of_form_does_not_end_the_others() -> None:
    lines = good_lines(leader=[TWO_TASKS, "<select>2</select>"], searcher=["no tags", REPORT])
    episode = play_lines(Hierarchical(), lines)
    assert episode.transcript("searcher.1").end is AgentEnd.INVALID_ACTION
    assert episode.stop_reason is StopReason.ANSWERED


@pytest.mark.parametrize(
    "turn",
    [
        "<select>1</select>",
        "<select>7</select>",
        "<select>first</select>",
        "<select>0</select>",
        "<task>a</task><select>none</select>",
        "<task> </task>",
        "I need more facts.",
        "<task>1</task><task>2</task><task>3</task><task>4</task><task>5</task>",
    ],
)
def test_a_leader_without_a_legal_action_ends_the_episode(turn: str) -> None:
    episode = play_lines(Hierarchical(), good_lines(leader=[turn]))
    assert episode.stop_reason is StopReason.INVALID_ACTION
    assert episode.transcript("leader.1").end is AgentEnd.INVALID_ACTION


def test_a_report_that_does_not_exist_cannot_be_selected() -> None:
    lines = good_lines(leader=[TASK, "<select>1</select>"], searcher=["no report"])
    episode = play_lines(Hierarchical(), lines)
    assert (episode.stop_reason, episode.transcript("leader.1").problem) == (StopReason.INVALID_ACTION, "bad_content")


def test_searchers_still_at_work_when_the_episode_is_stopped_are_recorded_as_left() -> None:
    broken = Failure("model", FailureKind.TIMEOUT, "no reply in 5 s", 3)
    lines = good_lines(leader=[TWO_TASKS], searcher=[SEARCH, SEARCH, broken, SEARCH])
    episode = play_lines(Hierarchical(), lines)
    assert episode.stop_reason is StopReason.MODEL_FAILED
    assert {episode.transcript(name).end for name in ("searcher.1", "searcher.2")} == {AgentEnd.FAILED, AgentEnd.LEFT}
    assert episode.transcript("leader.1").end is AgentEnd.LEFT
