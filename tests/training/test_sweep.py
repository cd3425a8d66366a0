"""One recipe with several values of one key: a run each, what they share made once, and a comparison with curves."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from training_factories import Notes, episode_ids, eval_stage, metrics, recipe, run, sft_stage, small_stage

from playing import Lines, play_lines
from searchparty.cli.main import main
from searchparty.config.load import dump_recipe
from searchparty.credit.planner_rewards import PlannerCosts
from searchparty.errors import UserError
from searchparty.teams.planned import Planned
from searchparty.training.run_directory import TrainDirectory
from searchparty.training.sweep_report import Point, as_markdown, draw_curves, episode_costs, write_sweep
from searchparty.training.sweeping import Variation, read_variation, sweep, varied_recipes

KEY = "stages.student.learner.learning_rate"


def written(world: Path, folder: Path) -> Path:
    """A recipe file: imitation, then a step of rl, then an evaluation of each."""
    made = recipe(
        start=sft_stage(world, limit=2, teams=["chained"]),
        started=eval_stage(world, limit=2, policy="stage:start", title="started"),
        student=small_stage(world, steps=1, policy="stage:start"),
        trained=eval_stage(world, limit=2, policy="stage:student", baseline="started", title="trained"),
    )
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(dump_recipe(made)), sort_keys=False))
    return file


@pytest.fixture(scope="module")
def swept(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    assert main(["sweep", str(written(world, folder)), "--vary", f"{KEY}=0.0001,0.01", "-o", str(folder / "runs")]) == 0
    return folder / "runs"


def test_each_value_has_a_run_whose_resolved_recipe_has_it(swept: Path) -> None:
    for name, rate in (("learning_rate-0.0001", 1e-4), ("learning_rate-0.01", 1e-2)):
        made = TrainDirectory(swept / name).read_recipe()
        assert made.stages["student"].learner.learning_rate == rate  # type: ignore[union-attr]
    first, second = (swept / f"learning_rate-{rate}/stages/student/checkpoints" for rate in ("0.0001", "0.01"))
    weights = [next(folder.glob("step-*/masters.safetensors")).read_bytes() for folder in (first, second)]
    assert weights[0] != weights[1]


def test_a_run_that_began_with_copies_equals_one_that_made_everything_itself(swept: Path, tmp_path: Path) -> None:
    second = TrainDirectory(swept / "learning_rate-0.01")
    run(second.read_recipe(), tmp_path / "alone")
    assert metrics(tmp_path / "alone") == metrics(second.path)
    assert episode_ids(tmp_path / "alone") == episode_ids(second.path)
    ours, theirs = (json.loads((one / "report.json").read_text()) for one in (tmp_path / "alone", second.path))
    assert ours == theirs


def test_the_points_have_every_evaluation_of_every_value(swept: Path) -> None:
    points = json.loads((swept / "points.json").read_text())
    assert [(one["value"], one["title"]) for one in points] == [
        (0.0001, "started"), (0.0001, "trained"), (0.01, "started"), (0.01, "trained"),
    ]  # fmt: skip
    with (swept / "points.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["learning_rate"]) for row in rows] == [0.0001, 0.0001, 0.01, 0.01]
    assert [float(row["f1"]) for row in rows] == [one["f1"] for one in points]
    assert "| 0.01 | 0 | trained |" in (swept / "sweep.md").read_text()
    assert (swept / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_sweep_is_resumed_without_doing_finished_work_again_and_takes_more_values(
    world: Path, swept: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(swept, folder)
    shutil.rmtree(folder / "learning_rate-0.01")
    file = written(world, tmp_path)
    words = ["sweep", str(file), "--vary", f"{KEY}=0.0001,0.01", "-o", str(folder)]
    assert main(words) == 2
    kept = next((folder / "learning_rate-0.0001/stages/student/checkpoints").glob("step-*/masters.safetensors"))
    written_at = kept.stat().st_mtime_ns
    assert main([*words, "--resume"]) == 0
    assert (folder / "points.json").read_bytes() == (swept / "points.json").read_bytes()
    assert kept.stat().st_mtime_ns == written_at
    assert episode_ids(folder / "learning_rate-0.01") == episode_ids(swept / "learning_rate-0.01")


def test_nothing_to_resume_is_said(world: Path, tmp_path: Path) -> None:
    variation = Variation(KEY, (0.1, 0.2))
    recipes = varied_recipes(written(world, tmp_path), [], variation)
    with pytest.raises(UserError, match="nothing to resume here"):
        asyncio.run(sweep(variation, recipes, tmp_path / "runs", resume=True, listener=Notes()))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("alpha", r"has the form key\.path=value,value"),
        ("=1,2", r"has the form key\.path=value,value"),
        ("a.b=1", "at least two values are needed, and each once"),
        ("a.b=1,1", "at least two values are needed, and each once"),
        ("a.b=", "at least two values are needed, and each once"),
        ("a.b=[1],2", "is no single value"),
        ("a.b=1,]", r"has the form key\.path=value,value"),
        ("a.b=a/b,a_b", "at least two values are needed, and each once"),
    ],
)
def test_a_variation_that_cannot_be_read_is_refused_in_a_line(text: str, line: str) -> None:
    with pytest.raises(UserError, match=line) as fault:
        read_variation(text)
    assert len(fault.value.lines) == 1


def test_values_are_read_as_yaml_and_folders_are_plain_names() -> None:
    variation = read_variation("stages.a.scorer=0.1,true,two words,null,../x")
    assert variation.values == (0.1, True, "two words", None, "../x")
    assert [variation.folder(value) for value in variation.values] == [
        "scorer-0.1", "scorer-True", "scorer-two_words", "scorer-None", "scorer-.._x",
    ]  # fmt: skip


def test_every_fault_of_every_value_is_named_before_anything_runs(world: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as fault:
        varied_recipes(written(world, tmp_path), [], Variation(KEY, (-1.0, 1e-4, 99.0)))
    assert [line.split(":")[0] for line in fault.value.lines] == ["learning_rate -1.0", "learning_rate 99.0"]


def test_alpha_is_one_key_even_where_the_plan_is_only_named(world: Path, tmp_path: Path) -> None:
    file = written(world, tmp_path)
    words = {"credit": "chained-rl"}
    document = yaml.safe_load(file.read_text())
    document["stages"]["student"].update(words)
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    key = "stages.student.credit.roles.searcher.rewards.behaviour"
    recipes = varied_recipes(file, [], Variation(key, (0.0, 0.3)))
    found: list[Any] = [one.stages["student"] for one in recipes]
    assert [one.credit.roles["searcher"].rewards.behaviour for one in found] == [0.0, 0.3]
    assert [one.credit.roles["searcher"].rewards.team_result for one in found] == [0.9, 0.9]


def point(value: float, f1: float, cost: float | None, title: str = "trained") -> Point:
    planned = (cost, 0.1, 0.2, 0.3, 1.5, 0.0) if cost is not None else (None,) * 6
    return Point(value, 0, title, title, 10, 1, f1, f1, f1 - 0.1, f1 + 0.1, f1, 1.0, None, 5.0, *planned)


def test_costs_of_planners_are_shown_and_absent_ones_are_no_zeros(tmp_path: Path) -> None:
    text = as_markdown("alpha", [point(0.1, 0.5, 1.25), point(0.2, 0.4, None)])
    assert "| 0.1 | 0 | trained | 50.0 [40.0, 60.0] | 50.0 | 50.0 | 1.25 | 0.10 | 0.20 | 0.30 | 1.50 | 0.0 | 1.00 |" in text
    assert "| 0.2 | 0 | trained | 40.0 [30.0, 50.0] | 40.0 | 40.0 | – | – | – | – | – | – | 1.00 |" in text
    write_sweep(tmp_path, "alpha", [point(0.1, 0.5, 1.25), point(0.2, 0.4, 0.5)])
    assert draw_curves(tmp_path, "alpha", [point(0.1, 0.5, 1.25), point(0.2, 0.4, 0.5)]).stat().st_size > 10_000


def test_an_episodes_costs_are_the_sums_over_its_planners_turns() -> None:
    plans = ["<workflow>QDS</workflow>", "<workflow>RA, AG</workflow>", "<workflow>AG, RA</workflow>"]
    serial = "<question>Where is A?</question>\n<question>Who rules #1?</question>"
    answer = ["<answer>Paris</answer>"]
    episode = play_lines(Planned(), Lines({"planner": plans, "qds": [serial], "ag": answer, "as": answer}))
    costs = episode_costs(episode, PlannerCosts())
    assert costs["token_cost"] == pytest.approx((0.91 + 1.48 + 1.58) / 6.02)
    assert (costs["turn_cost"], costs["search_cost"]) == (0.5, 1.0)
    assert costs["planner_cost"] == pytest.approx((0.91 + 1.48 + 1.58) / 6.02 + 1.5)
    assert (costs["planner_turns"], costs["invalid_workflows"]) == (3, 1)
