"""Reading a training recipe: what is wrong is said at once, and recipes are built on others (contract 10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from training_factories import eval_stage, rl_stage

from searchparty.config.load import dump_recipe, load_recipe, parse_recipe
from searchparty.errors import UserError
from searchparty.training.recipe import RLStage, TrainRecipe

NOWHERE = Path("nowhere")


def faults(**document: Any) -> list[str]:
    """The lines that a document is refused with."""
    with pytest.raises(UserError) as refused:
        parse_recipe(TrainRecipe, document, "r.yaml")
    return list(refused.value.lines)


def rl(made: TrainRecipe, name: str) -> RLStage:
    stage = made.stages[name]
    assert isinstance(stage, RLStage)
    return stage


def write(folder: Path, file_name: str, /, **document: Any) -> Path:
    file = folder / file_name
    file.write_text(yaml.safe_dump(document))
    return file


def test_contract_10_every_unknown_key_is_named_at_once_with_its_place_and_the_nearest_name() -> None:
    lines = faults(
        sede=1,
        defaults={"polcy": "tiny", "learner": {"minibatch": 2}},
        stages={
            "teacher": rl_stage(NOWHERE, learner={"learnin_rate": 1}, alarms={"silense": "stop"}, step=3),
            "base": eval_stage(NOWHERE, sample=3),
        },
    )
    assert set(lines) == {
        "r.yaml: sede: unknown key; did you mean seed?",
        "r.yaml: defaults: no stage has a key polcy; did you mean policy?",
        "r.yaml: stages.teacher.learner.minibatch: unknown key; did you mean minibatches?",
        "r.yaml: stages.teacher.learner.learnin_rate: unknown key; did you mean learning_rate?",
        "r.yaml: stages.teacher.alarms.silense: unknown key; did you mean silence?",
        "r.yaml: stages.teacher.step: unknown key; did you mean steps?",
        "r.yaml: stages.base.sample: unknown key; did you mean samples?",
    }


def test_contract_10_a_plan_written_out_is_checked_like_the_rest() -> None:
    searcher = {"estimator": {"name": "group-relative", "compar": "episodes"}, "rewards": {"team_resul": 1}}
    lines = faults(stages={"teacher": rl_stage(NOWHERE) | {"credit": {"roles": {"searcher": searcher}}}})
    place = "r.yaml: stages.teacher.credit.roles.searcher"
    assert f"{place}.estimator.compar: unknown key; did you mean compare?" in lines
    assert f"{place}.rewards.team_resul: unknown key; did you mean team_result?" in lines


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"credit": "multiagent-opd"}, "credit needs a teacher; name its model under teacher"),
        ({"teacher": "tiny"}, "teacher is set, but no role of credit learns from it; remove it"),
        (
            {"credit": "prompted-critic", "teacher": "tiny"},
            "credit asks for a judge's score; name the judge's model under judge",
        ),
        (
            {"judge": {"model": "tiny"}},
            "judge is set, but credit weighs no score of that name; remove it, or give judge a weight",
        ),
    ],
)
def test_a_teacher_or_judge_that_is_missing_or_idle_is_refused(changes: dict[str, Any], fault: str) -> None:
    assert faults(stages={"teacher": rl_stage(NOWHERE, **changes)}) == [f"r.yaml: stages.teacher: {fault}"]


@pytest.mark.parametrize("place", ["policy", "teacher"])
def test_an_engine_for_a_model_that_the_learner_runs_is_refused(place: str) -> None:
    changes = {"credit": "multiagent-opd", "team": "hierarchical", "teacher": "tiny"} | {
        place: {"spec": "tiny", "engine": "vllm"}
    }
    (line,) = faults(stages={"a": rl_stage(NOWHERE, **changes)})
    assert place in line and "sampler.name" in line


def test_a_score_that_nobody_gives_is_refused() -> None:
    credit = {"roles": {"searcher": {"estimator": {"name": "group-relative", "compare": "episodes"}, "rewards": {}}}}
    credit["roles"]["searcher"]["rewards"] = {"given": {"taste": 1.0}}
    lines = faults(stages={"teacher": rl_stage(NOWHERE) | {"credit": credit}})
    assert lines == ["r.yaml: stages.teacher: credit asks for a score named taste; a stage can only give judge"]


def test_an_unknown_plan_is_answered_with_the_ready_made_ones() -> None:
    (line,) = faults(stages={"teacher": rl_stage(NOWHERE, credit="chained")})
    assert "stages.teacher.credit: no plan named chained; ready-made ones: chained-rl, multiagent-opd" in line


def test_what_a_stage_says_wins_over_the_defaults_key_by_key() -> None:
    made = parse_recipe(
        TrainRecipe,
        {
            "defaults": {"learner": {"learning_rate": 0.5, "minibatches": 3}, "samples": 7},
            "stages": {"one": rl_stage(NOWHERE, learner={"minibatches": 2}), "two": eval_stage(NOWHERE)},
        },
        "r.yaml",
    )
    assert rl(made, "one").learner.learning_rate == 1e-4
    assert rl(made, "one").learner.minibatches == 2
    assert rl(made, "one").samples == 3
    assert made.stages["two"].model_dump()["samples"] == 7


def test_the_resolved_recipe_reads_as_the_same_recipe() -> None:
    made = parse_recipe(
        TrainRecipe, {"defaults": {"samples": 4}, "stages": {"one": rl_stage(NOWHERE), "two": eval_stage(NOWHERE)}}, "r.yaml"
    )
    assert parse_recipe(TrainRecipe, yaml.safe_load(dump_recipe(made)), "again") == made


def test_a_recipe_that_extends_another_changes_only_what_it_says(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", name="base", seed=5, stages={"teacher": rl_stage(NOWHERE), "base": eval_stage(NOWHERE)})
    (tmp_path / "more").mkdir()
    middle = {"stages": {"teacher": {"learner": {"learning_rate": 0.5}}}}
    write(tmp_path, "more/middle.yaml", extends="../base.yaml", **middle)
    top = write(tmp_path, "top.yaml", extends="more/middle.yaml", name="top", stages={"base": None})
    made = load_recipe(TrainRecipe, top, ["stages.teacher.steps=9", "stages.teacher.policy=smollm2"], {})
    stage = rl(made, "teacher")
    assert (made.name, made.seed, list(made.stages)) == ("top", 5, ["teacher"])
    assert (stage.learner.learning_rate, stage.learner.minibatches) == (0.5, 2)
    assert (stage.steps, stage.policy.spec) == (9, "smollm2")


def test_recipes_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", extends="b.yaml")
    write(tmp_path, "b.yaml", extends="a.yaml")
    with pytest.raises(UserError, match=r"b\.yaml: extends: .*a\.yaml extends this file in turn; break the circle"):
        load_recipe(TrainRecipe, tmp_path / "a.yaml", [], {})


@pytest.mark.parametrize(
    ("extends", "fault"), [("none.yaml", r"none\.yaml: no such recipe"), (["x"], "another recipe is needed")]
)
def test_a_recipe_to_extend_that_is_not_there_is_named(tmp_path: Path, extends: object, fault: str) -> None:
    file = write(tmp_path, "a.yaml", extends=extends, stages={"teacher": rl_stage(NOWHERE)})
    with pytest.raises(UserError, match=fault):
        load_recipe(TrainRecipe, file, [], {})


@pytest.mark.parametrize("kind", [["rl"], {"rl": 1}, 3, None])
def test_a_kind_that_is_no_word_is_refused(kind: object) -> None:
    assert all("stages.teacher" in line for line in faults(stages={"teacher": {**rl_stage(NOWHERE), "kind": kind}}))


@pytest.mark.parametrize("stages", [None, [1], "rl"])
def test_stages_that_are_no_mapping_are_the_one_fault_whatever_the_defaults(stages: object) -> None:
    (line,) = faults(stages=stages, defaults={"policy": "tiny"})
    assert line.startswith("r.yaml: stages: ")


def test_a_seed_that_stands_twice_is_refused() -> None:
    (line,) = faults(seeds=[1, 2, 1], stages={"teacher": rl_stage(NOWHERE)})
    assert line.startswith("r.yaml: seeds: 1 stands twice; give each seed once")


@pytest.mark.parametrize(
    ("learner", "place"),
    [
        ({"betas": [1.0, 0.9]}, "betas.0"),
        ({"betas": [0.9, -1]}, "betas.1"),
        ({"learning_rate": float("inf")}, "learning_rate"),
        ({"weight_decay": float("inf")}, "weight_decay"),
        ({"lora": {"modules": []}}, "lora.modules"),
    ],
)
def test_numbers_that_no_optimizer_takes_are_refused_before_anything_is_loaded(learner: dict[str, Any], place: str) -> None:
    (line,) = faults(stages={"teacher": rl_stage(NOWHERE, learner=learner)})
    assert f"stages.teacher.learner.{place}: " in line


def test_a_stage_whose_name_no_override_could_reach_is_refused() -> None:
    (line,) = faults(stages={"a.alarms.b": rl_stage(NOWHERE)})
    assert line.startswith("r.yaml: stages.a.alarms.b: ")
