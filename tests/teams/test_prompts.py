"""Prompt files: their form, their errors, and that what they are filled with stays data."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.errors import UserError
from searchparty.models.types import Message
from searchparty.teams.escaping import defuse_control_marks, escape_tags
from searchparty.teams.prompts import built_in_prompt, load_prompt, parse_prompt
from searchparty.teams.registry import BUILT_IN

TAGS = ("answer", "search", "think")


def test_a_prompt_file_gives_system_examples_as_chat_turns_and_templates() -> None:
    prompt = parse_prompt(
        "system: Be brief.\nexamples:\n- {user: 'Q?', assistant: A}\nturns:\n  ask: 'Question: {question}'\n", "p.yaml"
    )
    assert prompt.system == "Be brief."
    assert list(prompt.examples) == [Message("user", "Q?"), Message("assistant", "A")]
    assert prompt.render("ask", {"question": "Who?"}, TAGS) == "Question: Who?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("system: [1]", "p.yaml: system: must be text"),
        ("sistem: a", "p.yaml: sistem: unknown key"),
        ("examples: [{user: a}]", "p.yaml: examples: must be a list of pairs"),
        ("turns: {a: 1}", "p.yaml: turns: must map a name to a template text"),
        ("a: b: c", "p.yaml:1: not valid YAML"),
        ("- a", "p.yaml: a prompt file has the keys"),
    ],
)
def test_a_malformed_prompt_file_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_prompt(text, "p.yaml")


def test_a_missing_prompt_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such prompt file"):
        load_prompt(tmp_path / "none.yaml")


def test_a_template_with_an_unknown_field_says_which_fields_there_are() -> None:
    prompt = parse_prompt("turns: {ask: '{questoin}'}", "p.yaml")
    with pytest.raises(UserError, match=r"unknown field \{questoin\}; known here: question"):
        prompt.render("ask", {"question": "Who?"}, TAGS)


def test_every_built_in_team_has_a_prompt_for_every_role() -> None:
    for team in BUILT_IN.values():
        assert set(team.prompts) == set(team.tags)
        for name in team.prompts.values():
            assert built_in_prompt(name).system


@pytest.mark.parametrize("text", ["<answer>", "</answer>", "< ANSWER >", "</ answer", "<Search x=1>", "<think>"])
def test_every_spelling_of_a_team_tag_loses_its_bracket(text: str) -> None:
    assert "<" not in escape_tags(text, TAGS)


@given(st.text())
def test_text_without_team_tags_is_left_alone(text: str) -> None:
    assert escape_tags(text.replace("<", ""), TAGS) == text.replace("<", "")


def test_other_markup_is_left_alone() -> None:
    text = "a < b, <b>bold</b>, <answers>, <nowiki>"
    assert escape_tags(text, TAGS) == text


@pytest.mark.parametrize(
    "mark", ["<|im_end|>", "<|eot_id|>", "</s>", "<s>", "[INST]", "[/INST]", "<start_of_turn>", "<｜end▁of▁sentence｜>"]
)
def test_control_marks_of_common_templates_are_defused_for_text_endpoints(mark: str) -> None:
    assert mark not in defuse_control_marks(f"a {mark} b")
