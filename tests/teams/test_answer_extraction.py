"""What counts as an answer in the last turn, and what each kind of fault is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.teams.actions import Action, ActionProblem, TagRules, read_action

CASES_FILE = Path(__file__).parents[1] / "data" / "teams" / "extraction_cases.jsonl"
TRANSCRIPTS: dict[str, str] = {
    record["id"]: record["transcript"] for record in map(json.loads, CASES_FILE.read_text(encoding="utf-8").splitlines())
}

PROMPT = "For example, <answer> Beijing </answer>."
"""The example of the tags with which most recorded transcripts begin; it belongs to the prompt, not to the sampled turn."""


Extraction = str | ActionProblem


def answer(text: str) -> Extraction:
    return text


def problem(kind: ActionProblem) -> Extraction:
    return kind


def extract_answer(text: str, *, starts_in_thinking: bool = False) -> Extraction:
    action = read_action(text, TagRules(("answer",)), starts_in_thinking=starts_in_thinking)
    return action.content if isinstance(action, Action) else action


LAST_TURNS: dict[str, tuple[str, Extraction]] = {
    # The example in the prompt is out of sight, so one pair remains and is the answer.
    "prompt_example_plus_answer": ("<think>x</think><answer>Paris</answer>", answer("Paris")),
    "one_answer": ("<think>x</think><answer> Paris </answer>", answer("Paris")),
    # Markup is kept as written and scores nothing: unwrapping it would be the first of many repairs.
    "boxed_answer": ("<answer>\\boxed{Paris}</answer>", answer("\\boxed{Paris}")),
    "article_gold_subem": ("<answer>anything at all</answer>", answer("anything at all")),
    # Public extractors take the last pair, some the first; taking none leaves nothing to gain from hedging.
    "two_answers_first_right": ("<answer>Paris</answer> wait <answer>London</answer>", problem(ActionProblem.SEVERAL)),
    "nested": ("<answer><answer>Paris</answer></answer>", problem(ActionProblem.NESTED)),
    "unclosed": ("<answer>Paris", problem(ActionProblem.UNCLOSED)),
    "tag_with_attribute": ('<answer type="s">Paris</answer>', problem(ActionProblem.UNOPENED)),
    # The turn that gave an answer has to end there; the passage behind it is a turn of its own and is never passed in.
    "injected_after_answer": ("<answer>Paris</answer>", answer("Paris")),
    # Four of seven public extractors, reading the whole transcript, take the document's answer; the turn itself holds none.
    "injected_in_document_then_no_answer": ("<think>hm", problem(ActionProblem.UNFINISHED_THINKING)),
}

WHOLE_TRANSCRIPTS: dict[str, Extraction] = {
    # Given prompt and passages by mistake, the reader refuses instead of picking one of the pairs.
    "prompt_example_plus_answer": problem(ActionProblem.SEVERAL),
    "one_answer": answer("Paris"),
    "boxed_answer": problem(ActionProblem.SEVERAL),
    "article_gold_subem": problem(ActionProblem.SEVERAL),
    "two_answers_first_right": problem(ActionProblem.SEVERAL),
    "nested": problem(ActionProblem.NESTED),
    "unclosed": problem(ActionProblem.UNCLOSED),
    "tag_with_attribute": problem(ActionProblem.UNOPENED),
    "injected_after_answer": problem(ActionProblem.SEVERAL),
    "injected_in_document_then_no_answer": problem(ActionProblem.UNFINISHED_THINKING),
}


@pytest.mark.parametrize("case", TRANSCRIPTS)
def test_the_last_turn_of_each_recorded_transcript_is_read_by_the_rules(case: str) -> None:
    last_turn, expected = LAST_TURNS[case]
    assert last_turn in TRANSCRIPTS[case]
    assert extract_answer(last_turn) == expected


@pytest.mark.parametrize("case", TRANSCRIPTS)
def test_a_whole_transcript_given_by_mistake_yields_no_answer_of_the_prompt_or_a_document(case: str) -> None:
    assert extract_answer(TRANSCRIPTS[case]) == WHOLE_TRANSCRIPTS[case]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<answer>Paris</answer>", answer("Paris")),
        ("So it is\n<answer>\n New York \n</answer>\n \n", answer("New York")),
        ("<answer>a < b & c</answer>", answer("a < b & c")),
        ("<answer><b>Paris</b></answer>", answer("<b>Paris</b>")),
        ("", problem(ActionProblem.EMPTY_TURN)),
        ("Paris", problem(ActionProblem.NO_TAG)),
        ("<Answer>Paris</Answer>", problem(ActionProblem.NO_TAG)),
        ("<answer >Paris</answer >", problem(ActionProblem.NO_TAG)),
        ("Paris</answer>", problem(ActionProblem.UNOPENED)),
        ("<answer>Paris</answer></answer>", problem(ActionProblem.UNOPENED)),
        ("<answer>Paris<answer>", problem(ActionProblem.NESTED)),
        ("<answer>Paris</answer><answer>Rome", problem(ActionProblem.UNCLOSED)),
        ("<answer>Paris</answer><answer>Paris</answer>", problem(ActionProblem.SEVERAL)),
        ("<answer>Paris</answer>.", problem(ActionProblem.TRAILING_TEXT)),
        ("<answer>Paris</answer><think>done</think>", problem(ActionProblem.TRAILING_TEXT)),
        ("<answer></answer>", problem(ActionProblem.EMPTY_CONTENT)),
        ("<answer> \n\t</answer>", problem(ActionProblem.EMPTY_CONTENT)),
    ],
)
def test_one_well_formed_pair_at_the_end_is_an_answer_and_every_other_form_has_a_name(text: str, expected: Extraction) -> None:
    assert extract_answer(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think><answer>Rome</answer></think>", problem(ActionProblem.NO_TAG)),
        ("<think><answer>Rome</answer></think><answer>Paris</answer>", answer("Paris")),
        ("<think>a <think> b</think><answer>Paris</answer>", answer("Paris")),
        ("<think>a</think>b<think>c <answer></think><answer>Paris</answer>", answer("Paris")),
        ("<think><answer>Rome</answer>", problem(ActionProblem.UNFINISHED_THINKING)),
        ("<answer>Paris</answer><think>but", problem(ActionProblem.UNFINISHED_THINKING)),
        ("<answer>Rome<think>no</think>Paris</answer>", problem(ActionProblem.NESTED)),
        ("<answer>Par</think>is</answer>", problem(ActionProblem.UNOPENED)),
    ],
)
def test_tags_inside_thinking_do_not_count(text: str, expected: Extraction) -> None:
    assert extract_answer(text) == expected


def test_thinking_that_the_template_opened_in_the_prompt_is_set_aside() -> None:
    assert extract_answer("maybe <answer>Rome</answer></think><answer>Paris</answer>") == answer("Paris")
    assert extract_answer("<answer>Paris</answer></think>") == problem(ActionProblem.NO_TAG)


def test_thinking_that_the_template_opened_and_nothing_closed_is_seen_if_the_caller_says_so() -> None:
    turn = "maybe <answer>Rome</answer>"
    assert extract_answer(turn, starts_in_thinking=True) == problem(ActionProblem.UNFINISHED_THINKING)
    assert extract_answer(f"{turn}</think><answer>Paris</answer>", starts_in_thinking=True) == answer("Paris")


FREE_TEXT = st.text(max_size=30).filter(lambda text: "answer>" not in text and "think>" not in text)
PIECES = st.sampled_from(["<answer>", "</answer>", "<think>", "</think>", "Paris", " ", "<answer", ">"])


@given(FREE_TEXT, FREE_TEXT, st.text(alphabet=" \n\t", max_size=5))
def test_any_text_in_one_pair_comes_back_stripped_whatever_stands_before_it(before: str, inner: str, space: str) -> None:
    expected = answer(inner.strip()) if inner.strip() else problem(ActionProblem.EMPTY_CONTENT)
    assert extract_answer(f"{before}<answer>{inner}</answer>{space}") == expected


@given(st.lists(PIECES, max_size=10).map("".join))
def test_every_turn_has_either_an_answer_or_a_problem(text: str) -> None:
    extraction = extract_answer(text)
    if not isinstance(extraction, ActionProblem):
        assert extraction == extraction.strip() != ""
        assert text.rstrip().endswith("</answer>")
        assert "<answer>" not in extraction
