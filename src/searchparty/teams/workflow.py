"""Workflows of a planner: which lists of executors are well-formed and executable, as data, and a reader that never guesses.

Knows executors by what they declare and runs none. The rules after MAO-ARAG: a decomposition stands alone, everything else ends
with the answer, and nobody works on what nobody has made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations

from searchparty.teams.actions import Action, ActionProblem


class BrokenRule(StrEnum):
    """Why a workflow is not well-formed or not executable. The list is closed; the first rule that applies is named."""

    UNREADABLE = "unreadable"
    """The turn holds no workflow in tags, or what is in them is no list of abbreviations with commas between."""
    UNKNOWN_EXECUTOR = "unknown_executor"
    """An abbreviation that the team does not have or the recipe does not enable."""
    REPEATED = "repeated"
    """An executor is named twice."""
    DECOMPOSITION_NOT_ALONE = "decomposition_not_alone"
    """A decomposition stands beside others; its sub-questions are planned one by one, their answers summed up by themselves."""
    TOO_DEEP = "too_deep"
    """A decomposition of a sub-question, deeper than the team allows."""
    MISSING_PREREQUISITE = "missing_prerequisite"
    """An executor reads what no executor of the workflow makes, such as a selection without retrieval."""
    WRONG_ORDER = "wrong_order"
    """An executor comes before one whose work it reads."""
    NO_ANSWER = "no_answer"
    """Nothing in the workflow makes an answer, or something follows it."""
    UNUSED = "unused"
    """Something is made that nothing in the workflow reads, such as a rewritten query without retrieval."""


class Product(StrEnum):
    """What executors make for each other. The question itself is always there."""

    QUERY = "query"
    PASSAGES = "passages"
    SUB_QUESTIONS = "sub_questions"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Form:
    """What an executor declares for the grammar."""

    abbreviation: str
    makes: Product
    needs: tuple[Product, ...] = ()
    """Products that must have been made before."""
    may_use: tuple[Product, ...] = ()
    """Products that it takes if they are there; they too must come before it."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A list of executors, and the rule that it breaks; None if it can be carried out."""

    executors: tuple[str, ...]
    broken_rule: BrokenRule | None = None


def read_workflow(action: Action | ActionProblem, forms: Sequence[Form], *, may_decompose: bool) -> Workflow:
    """What a planner's turn asks for.

    Args:
        action: the turn's `<workflow>`, abbreviations separated by commas, matched to the letter.
        forms: of the executors that are enabled.
        may_decompose: False below the deepest question that may be decomposed.
    """
    if isinstance(action, ActionProblem):
        return Workflow((), BrokenRule.UNREADABLE)
    names = tuple(part.strip() for part in action.content.split(","))
    if not all(name.isalnum() and name.isascii() for name in names):
        return Workflow((), BrokenRule.UNREADABLE)
    return Workflow(names, broken_rule(names, forms, may_decompose=may_decompose))


def broken_rule(names: Sequence[str], forms: Sequence[Form], *, may_decompose: bool = True) -> BrokenRule | None:
    """The first rule that a list of abbreviations breaks; None if it is well-formed and executable."""
    known = {form.abbreviation: form for form in forms}
    if any(name not in known for name in names):
        return BrokenRule.UNKNOWN_EXECUTOR
    if len(set(names)) < len(names):
        return BrokenRule.REPEATED
    chosen = [known[name] for name in names]
    decomposes = any(form.makes is Product.SUB_QUESTIONS for form in chosen)
    if decomposes:
        if len(chosen) > 1:
            return BrokenRule.DECOMPOSITION_NOT_ALONE
        return None if may_decompose else BrokenRule.TOO_DEEP
    return _broken_on_the_way(chosen)


def _broken_on_the_way(chosen: Sequence[Form]) -> BrokenRule | None:
    """The first rule that a workflow without decomposition breaks."""
    for form in chosen:
        if any(need not in {other.makes for other in chosen if other is not form} for need in form.needs):
            return BrokenRule.MISSING_PREREQUISITE
    for place, form in enumerate(chosen):
        later = {other.makes for other in chosen[place + 1 :]} - {form.makes}
        if later.intersection(form.needs + form.may_use):
            return BrokenRule.WRONG_ORDER
        if any(need not in {other.makes for other in chosen[:place]} for need in form.needs):
            return BrokenRule.WRONG_ORDER
    if not chosen or chosen[-1].makes is not Product.ANSWER or Product.ANSWER in {form.makes for form in chosen[:-1]}:
        return BrokenRule.NO_ANSWER
    for place, form in enumerate(chosen[:-1]):
        readers = [other for other in chosen[place + 1 :] if form.makes in other.needs + other.may_use]
        if not readers:
            return BrokenRule.UNUSED
    return None


def well_formed(forms: Sequence[Form], *, may_decompose: bool = True) -> list[tuple[str, ...]]:
    """Every workflow that breaks no rule, shortest first: for tables, and for teams that always do the same."""
    names = [form.abbreviation for form in forms]
    return [
        chosen
        for length in range(1, len(names) + 1)
        for chosen in permutations(names, length)
        if broken_rule(chosen, forms, may_decompose=may_decompose) is None
    ]
