"""Evaluations of one run that share the luck of their calls, and those that do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from training_factories import eval_stage, recipe, run

from searchparty.errors import UserError


def _fixed(world: Path, **changes: Any) -> dict[str, Any]:
    """Scripted executors with noise, and nobody who plans."""
    executors = {role: {"model": f"scripted:world-executors@{world}"} for role in ("qds", "ds", "ag", "as")}
    team = {"name": "planned", "workflow": "QDS", "sub_workflow": "RA,DS,AG"}
    return eval_stage(world, team=team, roles=executors, limit=8, samples=4, **changes)


def _answers(folder: Path, stage: str) -> list[tuple[str, int, list[str]]]:
    """What every agent wrote, by question and attempt."""
    lines = (folder / "evaluations" / stage / "episodes" / "eval.jsonl").read_text().splitlines()
    episodes = [json.loads(line) for line in lines]
    written = [
        [span["text"] for agent in episode["agents"] for span in agent["spans"] if span["kind"] == "action"]
        for episode in episodes
    ]
    return sorted((one["question_key"], one["sample"], texts) for one, texts in zip(episodes, written, strict=True))


@pytest.fixture(scope="module")
def evaluated(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One fixed workflow evaluated under three names, two of them with the same seed."""
    folder = tmp_path_factory.mktemp("runs") / "luck"
    run(recipe(first=_fixed(world, seed=7), second=_fixed(world, seed=7), apart=_fixed(world)), folder)
    return folder


def test_stages_of_equal_seeds_meet_the_same_luck(evaluated: Path) -> None:
    assert _answers(evaluated, "first") == _answers(evaluated, "second")


def test_a_stage_without_a_seed_has_luck_of_its_own(evaluated: Path) -> None:
    assert _answers(evaluated, "first") != _answers(evaluated, "apart")


def test_the_seed_of_a_stage_is_that_of_its_evaluation(evaluated: Path) -> None:
    text = (evaluated / "evaluations" / "first" / "recipe.resolved.yaml").read_text()
    assert "seed: 7\n" in text


def test_a_negative_seed_is_refused(world: Path) -> None:
    with pytest.raises(UserError, match=r"stages\.apart.*seed"):
        recipe(apart=_fixed(world, seed=-1))
