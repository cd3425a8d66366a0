"""The grammar of workflows: which can be carried out, and which rule every other one breaks."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.teams.actions import Action, ActionProblem
from searchparty.teams.planned import EXECUTORS
from searchparty.teams.workflow import BrokenRule, broken_rule, read_workflow, well_formed

FORMS = [executor.form for executor in EXECUTORS]
NAMES = [form.abbreviation for form in FORMS]
EXECUTABLE = {"AG", "RA,AG", "QR,RA,AG", "RA,DS,AG", "QR,RA,DS,AG", "QDS", "QDP"}


def test_exactly_seven_workflows_break_no_rule() -> None:
    assert {",".join(names) for names in well_formed(FORMS)} == EXECUTABLE
    assert {",".join(names) for names in well_formed(FORMS, may_decompose=False)} == EXECUTABLE - {"QDS", "QDP"}


@pytest.mark.parametrize(
    ("workflow", "rule"),
    [
        ("RA,XX", BrokenRule.UNKNOWN_EXECUTOR),
        ("AS", BrokenRule.UNKNOWN_EXECUTOR),
        ("RA,RA,AG", BrokenRule.REPEATED),
        ("QDS,RA,AG", BrokenRule.DECOMPOSITION_NOT_ALONE),
        ("QDS,QDP", BrokenRule.DECOMPOSITION_NOT_ALONE),
        ("DS,AG", BrokenRule.MISSING_PREREQUISITE),
        ("DS,RA,AG", BrokenRule.WRONG_ORDER),
        ("RA,QR,AG", BrokenRule.WRONG_ORDER),
        ("AG,RA", BrokenRule.WRONG_ORDER),
        ("RA", BrokenRule.NO_ANSWER),
        ("QR,RA,DS", BrokenRule.NO_ANSWER),
        ("QR,AG", BrokenRule.UNUSED),
    ],
)
def test_every_other_workflow_is_refused_by_the_name_of_a_rule(workflow: str, rule: BrokenRule) -> None:
    assert read_workflow(Action("workflow", (workflow,)), FORMS, may_decompose=True).broken_rule is rule


def test_no_order_of_any_executors_is_accepted_besides_the_seven() -> None:
    accepted = {
        ",".join(names)
        for length in range(1, len(NAMES) + 1)
        for names in permutations(NAMES, length)
        if broken_rule(names, FORMS) is None
    }
    assert accepted == EXECUTABLE


def test_a_decomposition_deeper_than_allowed_is_too_deep() -> None:
    assert broken_rule(["QDP"], FORMS, may_decompose=False) is BrokenRule.TOO_DEEP


def test_an_executor_that_the_recipe_does_not_enable_is_unknown() -> None:
    enabled = [form for form in FORMS if form.abbreviation != "DS"]
    assert broken_rule(["RA", "DS", "AG"], enabled) is BrokenRule.UNKNOWN_EXECUTOR


@pytest.mark.parametrize("content", ["ra, ag", "RA AG", "RA; AG", "RA, AG.", "RA,,AG", "RA → AG", "RA\nAG", ",AG", "ＲＡ,AG"])
def test_nothing_is_guessed_from_what_is_nearly_a_workflow(content: str) -> None:
    found = read_workflow(Action("workflow", (content,)), FORMS, may_decompose=True)
    assert found.broken_rule in (BrokenRule.UNREADABLE, BrokenRule.UNKNOWN_EXECUTOR)


def test_a_turn_without_a_workflow_is_unreadable() -> None:
    assert read_workflow(ActionProblem.NO_TAG, FORMS, may_decompose=True).broken_rule is BrokenRule.UNREADABLE


@given(st.lists(st.sampled_from([*NAMES, "AS", "XX"]), max_size=7).map(", ".join) | st.text(max_size=12000))
def test_whatever_stands_between_the_tags_is_executable_or_named_after_its_rule(content: str) -> None:
    found = read_workflow(Action("workflow", (content,)), FORMS, may_decompose=True)
    if found.broken_rule is None:
        assert ",".join(found.executors) in EXECUTABLE
