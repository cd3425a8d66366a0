"""Several seeds in one recipe: a run each, and a report over all of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from training_factories import episode_ids, eval_stage, recipe, rl_stage

from searchparty.errors import UserError
from searchparty.training.seeds import train_seeds


@pytest.fixture(scope="module")
def runs(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of one short stage and its evaluation."""
    folder = tmp_path_factory.mktemp("seeds") / "run"
    made = recipe(
        teacher=rl_stage(world, steps=1, samples=2, candidates=2),
        base=eval_stage(world, limit=2),
        trained=eval_stage(world, limit=2, policy="stage:teacher", baseline="base"),
    ).model_copy(update={"seeds": (1, 2)})
    asyncio.run(train_seeds(made, folder))
    with pytest.raises(UserError, match="already exists; add --resume"):
        asyncio.run(train_seeds(made, folder))
    asyncio.run(train_seeds(made, folder, resume=True))
    return folder


def test_each_seed_has_a_run_of_its_own(runs: Path) -> None:
    assert episode_ids(runs / "seed-1") != episode_ids(runs / "seed-2")


def test_the_report_has_every_seeds_number_and_their_mean(runs: Path) -> None:
    rows = json.loads((runs / "report.json").read_text())
    assert [row["title"] for row in rows] == ["base", "trained"]
    for number, row in enumerate(rows):
        own = [json.loads((runs / f"seed-{seed}" / "report.json").read_text())[number]["exact_match"] for seed in (1, 2)]
        assert row["exact_match"] == own
        assert row["mean"] == pytest.approx(sum(own) / 2)
    assert "mean of 2 seeds" in (runs / "report.md").read_text()


def test_nothing_to_resume_is_said(world: Path, tmp_path: Path) -> None:
    made = recipe(teacher=rl_stage(world, steps=1)).model_copy(update={"seeds": (1, 2)})
    with pytest.raises(UserError, match="nothing to resume here"):
        asyncio.run(train_seeds(made, tmp_path / "run", resume=True))
