"""Reading actions of roles that have several tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.teams.actions import Action, ActionProblem, TagRules, read_action

SEARCHER = TagRules(("search", "report"))
LEADER = TagRules(("task", "select"), repeatable=("task",))


@pytest.mark.parametrize(
    ("text", "rules", "expected"),
    [
        ("I look it up. <search> who </search>\n", SEARCHER, Action("search", ("who",))),
        ("<report>a\nb</report>", SEARCHER, Action("report", ("a\nb",))),
        ("<report>see <answer>x</answer></report>", SEARCHER, Action("report", ("see <answer>x</answer>",))),
        ("<search>a</search><report>b</report>", SEARCHER, ActionProblem.SEVERAL),
        ("<search>a</search><search>b</search>", SEARCHER, ActionProblem.SEVERAL),
        ("<search>a</report>", SEARCHER, ActionProblem.UNOPENED),
        ("<search><report>a</report></search>", SEARCHER, ActionProblem.NESTED),
        ("<task>a</task>\n<task>b</task>", LEADER, Action("task", ("a", "b"))),
        ("<task>a</task> and <task>b</task>", LEADER, ActionProblem.TRAILING_TEXT),
        ("<task>a</task><task></task>", LEADER, ActionProblem.EMPTY_CONTENT),
        ("<task>a</task><select>1</select>", LEADER, ActionProblem.SEVERAL),
        ("<select>1</select><select>2</select>", LEADER, ActionProblem.SEVERAL),
        ("<search>a</search>", LEADER, ActionProblem.NO_TAG),
    ],
)
def test_a_turn_is_one_action_or_a_named_problem(text: str, rules: TagRules, expected: object) -> None:
    assert read_action(text, rules) == expected


def test_a_known_tag_that_is_not_allowed_now_is_a_problem_of_its_own() -> None:
    rules = TagRules(("report",), known=("search", "report"))
    assert read_action("<search>a</search>", rules) is ActionProblem.NOT_ALLOWED_NOW
    assert read_action("<report>a</report>", rules) == Action("report", ("a",))


@given(st.lists(st.sampled_from(["<task>", "</task>", "<select>", "</select>", "<think>", "</think>", "x", " "]), max_size=9))
def test_what_is_read_as_actions_is_exactly_the_whole_end_of_the_turn(pieces: list[str]) -> None:
    text = "".join(pieces)
    action = read_action(text, LEADER)
    if isinstance(action, Action):
        assert all(content and content == content.strip() for content in action.contents)
        assert text.rstrip().endswith(f"</{action.tag}>")
        assert len(action.contents) == 1 or action.tag == "task"
