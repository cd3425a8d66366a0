"""Which questions a recipe trains on and tests with: what both have is shown in every report, and refused under a protocol.

Reads files of questions; trains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from searchparty.errors import UserError
from searchparty.questions.near_copies import RUN, find_near_copies
from searchparty.questions.overlap import find_overlap, shared_with
from searchparty.questions.types import Question
from searchparty.training.playing import StageQuestions
from searchparty.training.recipe import EvalStage, PlayedStage, TrainRecipe

SHOWN = 3
"""Questions named in an error; the rest is counted."""


@dataclass(frozen=True)
class StageOverlap:
    """The questions of one part of a recipe that learns, beside those of one evaluation."""

    learns: str
    """Stage, or `STAGE.development` for what chooses the best checkpoint."""
    asks: str
    learned: int
    asked: int
    same_text: int
    """Questions of the evaluation whose text, folded to letters and digits, is learned from."""
    near_copies: int
    """Questions of the evaluation that share an answer and a run of words with one that is learned from, in another text."""
    same_official_id: int


def stage_overlaps(recipe: TrainRecipe) -> list[StageOverlap]:
    """Every part that learns beside every evaluation; the same files are compared once. Raises UserError for a missing file."""
    found: dict[tuple[object, object], StageOverlap] = {}
    questions = StageQuestions()
    for learns, part in learning_parts(recipe):
        for asks, stage in recipe.stages.items():
            files = questions.source(part), questions.source(stage)
            if isinstance(stage, EvalStage) and files not in found:
                found[files] = overlap_of(learns, questions.of(part), asks, questions.of(stage))
    return list(found.values())


def overlap_of(learns: str, learned: Sequence[Question], asks: str, asked: Sequence[Question]) -> StageOverlap:
    """Compare the questions of one part that learns with those of one evaluation."""
    overlap = find_overlap(asked, learned)
    return StageOverlap(
        learns=learns,
        asks=asks,
        learned=len(learned),
        asked=len(asked),
        same_text=sum(len(group.first) for group in overlap.groups),
        near_copies=len({one.first for one in find_near_copies(asked, learned)}),
        same_official_id=len(overlap.same_official_id),
    )


def overlap_lines(overlaps: Sequence[StageOverlap]) -> list[str]:
    """A line for each pair, in words."""
    return [
        f"Overlap of {one.learns} ({one.learned} questions) with {one.asks} ({one.asked}): {one.same_text} of these with the "
        f"same text, {one.near_copies} near copies (an answer and {RUN} words in a row), {one.same_official_id} official ids."
        for one in overlaps
    ]


def refuse_tested_questions(spec: PlayedStage, recipe: TrainRecipe, questions: StageQuestions) -> None:
    """Raises UserError if a stage learns from, or chooses its checkpoint by, questions that a protocol of the recipe asks."""
    faults = []
    for asks, stage in recipe.stages.items():
        if not isinstance(stage, EvalStage) or stage.protocol is None:
            continue
        asked = questions.of(stage)
        for place, part in _parts(spec):
            shared = shared_with(questions.of(part), asked)
            if shared:
                more = f" and {len(shared) - SHOWN} more" if len(shared) > SHOWN else ""
                faults.append(
                    f"{place}: protocol {stage.protocol} of stage {asks} asks {', '.join(shared[:SHOWN])}{more}; leave them "
                    f"out: searchparty questions convert {part.questions} -o OUT.jsonl --without {stage.questions}"
                )
    if faults:
        raise UserError(*faults)


def learning_parts(recipe: TrainRecipe) -> Iterator[tuple[str, Any]]:
    """Every part of a recipe that learns, or chooses a checkpoint, by questions: its name, and what names the questions."""
    for name, spec in recipe.stages.items():
        if not isinstance(spec, EvalStage):
            for place, part in _parts(spec):
                yield name if place == "questions" else f"{name}.development", part


def _parts(spec: PlayedStage) -> Iterator[tuple[str, Any]]:
    """What of a stage names questions, and under which key."""
    yield "questions", spec
    development = getattr(spec, "development", None)
    if development is not None:
        yield "development.questions", development
