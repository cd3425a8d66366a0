"""What is trained on and tested with: shown in the report, and refused where a protocol asks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from training_factories import eval_stage, recipe, rl_stage, sft_stage

from searchparty.errors import UserError
from searchparty.training.checking import check_recipe
from searchparty.training.overlap import overlap_lines, stage_overlaps
from searchparty.training.playing import eval_recipe, load_stage_questions
from searchparty.training.recipe import EvalStage

PROTOCOL = """
name: of the world
version: 1
source: a test
datasets: {world: {split: test, questions: 5}}
samples: 2
sampling: {temperature: 0.5, max_tokens: 40}
scorer: squad
metric: exact_match
retriever: bm25
passages: 2
budgets: {chained: {max_steps: 4}}
"""


@pytest.fixture
def protocol(tmp_path: Path) -> str:
    file = tmp_path / "protocol.yaml"
    file.write_text(PROTOCOL)
    return str(file)


def under(protocol: str, world: Path, **changes: Any) -> dict[str, Any]:
    """An evaluation by the protocol that says nothing of what it fixes."""
    stage = {key: value for key, value in eval_stage(world, **changes).items() if key not in ("limit", "sampling")}
    return {**stage, "protocol": protocol}


def leaked(world: Path, tmp_path: Path, protocol: str) -> Path:
    """The training questions and one that the protocol asks, under another id and in capitals."""
    asked = recipe(test=under(protocol, world)).stages["test"]
    assert isinstance(asked, EvalStage)
    (first, *_) = load_stage_questions(asked)
    row = {"id": "other", "dataset": "world", "question": first.text.upper(), "golden_answers": list(first.golden_answers)}
    file = tmp_path / "leaked.jsonl"
    file.write_text((world / "questions-train.jsonl").read_text() + json.dumps(row) + "\n")
    return file


def test_a_stage_under_a_protocol_is_filled_in_and_asks_its_questions(world: Path, protocol: str) -> None:
    made = recipe(base=under(protocol, world))
    check_recipe(made)
    stage = made.stages["base"]
    assert isinstance(stage, EvalStage)
    followed = eval_recipe(stage, 0)
    assert (followed.samples, followed.sampling.max_tokens, followed.team.options["max_steps"]) == (2, 40, 4)
    assert len(load_stage_questions(stage)) == 5


def test_a_stage_that_contradicts_its_protocol_is_refused(world: Path, protocol: str) -> None:
    with pytest.raises(UserError, match=r"stages\.base: samples: is 3, but protocol of the world says 2"):
        check_recipe(recipe(base={**under(protocol, world), "samples": 3}))


@pytest.mark.parametrize("kind", [rl_stage, sft_stage])
def test_training_on_what_a_protocol_asks_is_refused_with_the_way_out(
    world: Path, tmp_path: Path, protocol: str, kind: Any
) -> None:
    file = leaked(world, tmp_path, protocol)
    with pytest.raises(UserError) as refused:
        check_recipe(recipe(stage=kind(world, questions=str(file), limit=None), test=under(protocol, world)))
    (line,) = refused.value.lines
    assert line.startswith("stages.stage: questions: protocol ") and "of stage test asks world/other; leave them out" in line
    assert line.endswith(f"searchparty questions convert {file} -o OUT.jsonl --without {world / 'questions-test.jsonl'}")


def test_choosing_the_checkpoint_by_what_a_protocol_asks_is_refused(world: Path, protocol: str) -> None:
    development = {"questions": str(world / "questions-test.jsonl"), "every": 1}
    with pytest.raises(UserError, match=r"stages\.teacher: development\.questions: protocol .* and \d+ more"):
        check_recipe(recipe(teacher=rl_stage(world, development=development), test=under(protocol, world)))


def test_without_a_protocol_the_overlap_is_shown_and_not_refused(world: Path, tmp_path: Path, protocol: str) -> None:
    file = leaked(world, tmp_path, protocol)
    made = recipe(
        teacher=rl_stage(world, questions=str(file)),
        base=eval_stage(world, limit=None),
        trained=eval_stage(world, limit=None, policy="stage:teacher"),
    )
    check_recipe(made)
    (found,) = stage_overlaps(made)
    assert (found.learns, found.asks, found.learned, found.asked) == ("teacher", "base", 25, 8)
    assert (found.same_text, found.same_official_id) == (1, 0)
    assert overlap_lines([found])[0].startswith(
        "Overlap of teacher (25 questions) with base (8): 1 of these with the same text"
    )
