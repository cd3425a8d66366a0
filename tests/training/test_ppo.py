"""PPO with a critic and a reference, for an ordinary team: what is recorded, measured, saved, and found again after a kill."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_factories import assert_equal_runs, kill_at, masters, metrics, recipe, run, small_stage, start

from searchparty.errors import UserError
from searchparty.training.audit import audit_run
from searchparty.training.checking import check_recipe
from searchparty.training.recipe import TrainRecipe
from searchparty.training.records import read_step

GAE = {"name": "gae", "discount": 1.0, "trace_decay": 0.95, "whitening": "tokens"}
CREDIT = {
    "roles": {
        "searcher": {"estimator": GAE, "rewards": {"f1": 1.0, "reference_kl": 0.05}},
        "answerer": {"estimator": {**GAE, "whitening": "none"}, "rewards": {"f1": 1.0}},
    }
}


def ppo_stage(world: Path, **changes: Any) -> dict[str, Any]:
    """A chained stage: both roles learn with a critic on the policy's trunk, the Searcher is held near a reference."""
    more = {"credit": CREDIT, "critic": {"learning_rate": 1e-3}, "reference": "tiny", "candidates": 1, "steps": 3}
    return small_stage(world, **{**more, **changes})


@pytest.fixture(scope="module")
def made(world: Path) -> TrainRecipe:
    """First with a head, then with a model of its own as the critic, which begins as what the first stage made."""
    separate = {"model": "stage:head", "learning_rate": 1e-4, "warmup_steps": 1}
    return recipe(head=ppo_stage(world), apart=ppo_stage(world, policy="stage:head", critic=separate))


@pytest.fixture(scope="module")
def uninterrupted(made: TrainRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "uninterrupted"
    check_recipe(made)
    run(made, folder)
    return folder


def test_a_run_with_critic_and_reference_that_was_killed_equals_an_uninterrupted_one(
    made: TrainRecipe, uninterrupted: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    kill_at(start(made, folder), folder, "head", 2)
    run(made, folder, resume=True)
    assert_equal_runs(folder, uninterrupted, "head", "apart")


def test_a_critic_of_its_own_goes_on_from_a_checkpoint_as_if_nothing_had_happened(
    made: TrainRecipe, uninterrupted: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(uninterrupted, folder)
    (folder / "stages/apart/result.json").unlink()
    shutil.rmtree(folder / "stages/apart/checkpoints/step-000003")
    run(made, folder, resume=True)
    assert_equal_runs(folder, uninterrupted, "head", "apart")


def test_the_critics_weights_are_in_the_checkpoint(uninterrupted: Path) -> None:
    for stage in ("head", "apart"):
        saved = masters(uninterrupted, stage)
        assert any(name.startswith("critic/head") and saved[name].any() for name in saved)
    assert any(name.startswith("critic/trunk") for name in masters(uninterrupted, "apart"))


def test_the_audit_computes_the_advantages_again_from_the_recorded_values(uninterrupted: Path) -> None:
    report = audit_run(uninterrupted)
    assert report.violation is None
    for stage in report.stages:
        assert stage.proved.advantages == stage.proved.trained_tokens > 0
        assert stage.proved.largest_difference == 0


def test_values_and_reference_are_recorded_at_trainable_tokens_alone(uninterrupted: Path) -> None:
    record = read_step(uninterrupted / "stages/head/episodes", 3)
    assert record.signals
    assert any(signal.values_T is not None and signal.values_T.any() for signal in record.signals)
    for one in record.signals:
        assert one.values_T is not None and one.returns_T is not None
        assert not one.values_T[~one.trainable_T].any()
        assert (one.key in record.reference) == (one.role == "searcher")


def test_the_untrained_head_says_nothing_so_the_first_steps_returns_are_the_rewards(uninterrupted: Path) -> None:
    record = read_step(uninterrupted / "stages/head/episodes", 1)
    answerers = [one for one in record.signals if one.role == "answerer"]
    assert answerers
    for one in answerers:
        [judged] = record.judged[one.key.question_key, one.key.sample]
        expected = judged.f1 if judged.problem is None else -1.0
        returns = one.returns_T[one.trainable_T]  # type: ignore[index]
        assert returns[-1] == pytest.approx(expected)
        assert one.values_T is not None and not one.values_T.any()


def test_while_the_critic_warms_up_the_policy_stays_as_it_is(uninterrupted: Path) -> None:
    before, warmed, after = (
        masters(uninterrupted, "head", 3),
        masters(uninterrupted, "apart", 2),
        masters(uninterrupted, "apart", 3),
    )
    line = next(one for one in metrics(uninterrupted) if one["stage"] == "apart" and one["step"] == 1)
    assert line["roles"]["searcher"]["update"]["approx_kl"] == pytest.approx(0, abs=1e-6)
    policy = [name for name in before if name.startswith("policy/")]
    assert any(not np.array_equal(warmed[name], after[name]) for name in policy)


def test_the_metrics_tell_how_good_the_critic_is(uninterrupted: Path) -> None:
    lines = [line for line in metrics(uninterrupted) if line["kind"] == "step"]
    for line in lines:
        for role in ("searcher", "answerer"):
            update = line["roles"][role]["update"]
            assert update["value_loss"] >= 0
            assert 0 <= update["value_clip_fraction"] <= 1
            assert {"value", "returns", "explained_variance"} <= update.keys()
        assert "reference_divergence" in line["roles"]["searcher"]["rewards"]
    first = lines[0]["roles"]["searcher"]
    assert first["rewards"]["reference_divergence"] == pytest.approx(0, abs=1e-2), "the policy starts as its reference"
    json.dumps(lines, allow_nan=False)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"critic": None}, "the role searcher learns with values of a critic; add critic, {} for a head on the policy"),
        ({"reference": None}, "credit has a reference_kl; name the model that the policy is held near under reference"),
        ({"credit": "chained-rl", "reference": None}, "critic is set, but no role of credit learns with values"),
        ({"credit": "chained-rl", "critic": None}, "reference is set, but no role of credit has a reference_kl"),
        ({"critic": {"warmup_steps": 3}}, "critic.warmup_steps is 3 of 3 steps, so the policy never learns; lower it"),
    ],
)
def test_what_critic_and_reference_need_is_said_in_a_line(world: Path, changes: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError) as fault:
        recipe(student=ppo_stage(world, **changes))
    assert len(fault.value.lines) == 1
    assert line in fault.value.lines[0]


def test_a_critic_that_cannot_be_trained_or_is_made_by_no_stage_is_named(world: Path) -> None:
    with pytest.raises(UserError) as fault:
        check_recipe(
            recipe(
                one=ppo_stage(world, critic={"model": "scripted:default"}),
                two=ppo_stage(world, critic={"model": "stage:nowhere"}),
                three=ppo_stage(world, reference="stage:nowhere"),
            )
        )
    text = "\n".join(fault.value.lines)
    assert "stages.one: critic.model: scripted:default cannot be trained" in text
    assert "stages.two: critic.model: no earlier stage named nowhere makes a model" in text
    assert "stages.three: reference: no earlier stage named nowhere makes a model" in text
