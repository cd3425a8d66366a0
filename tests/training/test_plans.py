"""The comparisons and ablations of the paper, one step each: every role learns from what its plan says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from training_factories import metrics, opd_stage, recipe, rl_stage, run

from searchparty.credit.types import Signal
from searchparty.episodes.types import AgentEnd
from searchparty.tiny import shipped_model
from searchparty.training.records import StepRecord, read_step

ABLATIONS = {
    "untrained-teacher": {"credit": "multiagent-opd"},
    "searcher-on-outcome": {"credit": "searcher-on-outcome"},
    "no-searcher-supervision": {"credit": "no-searcher-supervision"},
    "prompted-critic": {"credit": "prompted-critic", "judge": {"model": "scripted:default"}},
}


@pytest.fixture(scope="module")
def ablations(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a stage for each of them, and one that trains a small addition to the weights."""
    folder = tmp_path_factory.mktemp("runs") / "ablations"
    small = {"teacher": "tiny", "steps": 1, "samples": 2, "candidates": 2, "learner": {"minibatches": 1}}
    stages = {name: opd_stage(world, **small, **changes) for name, changes in ABLATIONS.items()}
    addition = {"rank": 2, "scale": 4.0, "modules": ["q_proj"]}
    lora = rl_stage(world, steps=1, questions_per_step=4, samples=3, learner={"minibatches": 1, "lora": addition})
    run(recipe(**stages, lora=lora), folder)
    return folder


def line(folder: Path, stage: str) -> dict[str, Any]:
    (found,) = (one for one in metrics(folder) if one["stage"] == stage)
    return found


def recorded(folder: Path, stage: str) -> StepRecord:
    return read_step(folder / "stages" / stage / "episodes", 1)


def of_role(record: StepRecord, role: str) -> list[Signal]:
    return [signal for signal in record.signals if signal.role == role]


def constant(signal: Signal) -> float:
    """The one advantage of all trainable tokens."""
    (value,) = set(signal.advantages_T[signal.trainable_T].tolist())
    return float(value)


@pytest.mark.parametrize("stage", ABLATIONS)
def test_leader_and_answerer_learn_from_outcomes_in_every_ablation(ablations: Path, stage: str) -> None:
    record = recorded(ablations, stage)
    assert {record.groups[signal.key].split(" of ")[0] for signal in of_role(record, "leader")} == {"episodes"}
    assert {record.groups[signal.key].split(" of ")[0] for signal in of_role(record, "answerer")} == {"candidates"}
    assert {signal.key for signal in of_role(record, "leader")} <= set(record.teacher), "the teacher anchors both"


def test_an_untrained_teacher_has_nothing_to_teach(ablations: Path) -> None:
    """Teacher and student are the same weights, so what is left is rounding."""
    signals = of_role(recorded(ablations, "untrained-teacher"), "searcher")
    assert signals
    assert max(np.abs(signal.advantages_T).max() for signal in signals) < 1e-5


def test_on_outcome_all_searchers_of_an_episode_get_one_advantage(ablations: Path) -> None:
    """Those that kept to the format; the others earn -1 whatever the outcome."""
    record = recorded(ablations, "searcher-on-outcome")
    finished = {
        (episode.question_key, episode.sample, transcript.agent)
        for episode in record.episodes
        for transcript in episode.agents
        if transcript.end is AgentEnd.FINISHED
    }
    by_episode: dict[tuple[str, int], set[float]] = {}
    for signal in of_role(record, "searcher"):
        assert record.groups[signal.key] == f"episodes of {signal.key.question_key}"
        assert signal.key not in record.teacher
        if (signal.key.question_key, signal.key.sample, signal.key.agent) in finished:
            by_episode.setdefault((signal.key.question_key, signal.key.sample), set()).add(constant(signal))
    assert by_episode
    assert all(len(values) == 1 for values in by_episode.values())


def test_a_searcher_without_supervision_hands_out_no_token(ablations: Path) -> None:
    assert of_role(recorded(ablations, "no-searcher-supervision"), "searcher") == []
    assert line(ablations, "no-searcher-supervision")["roles"]["searcher"]["tokens"] == 0


def test_the_judges_score_is_the_searchers_reward_and_nobody_elses(ablations: Path) -> None:
    record = recorded(ablations, "prompted-critic")
    scores = record.scores["judge"]
    assert scores
    assert {key.agent.split(".")[0] for key in scores} == {"searcher"}
    by_question: dict[str, list[tuple[float, float]]] = {}
    for signal in of_role(record, "searcher"):
        by_question.setdefault(signal.key.question_key, []).append((scores.get(signal.key, 0.0), constant(signal)))
    ordered = [sorted(pairs) for pairs in by_question.values()]
    assert all([advantage for _, advantage in pairs] == sorted(advantage for _, advantage in pairs) for pairs in ordered)
    assert line(ablations, "prompted-critic")["unscored"] == []


def test_an_addition_to_the_weights_changes_its_matrices_alone_and_is_worked_into_the_model(ablations: Path) -> None:
    result = json.loads((ablations / "stages/lora/result.json").read_text())
    trained = load_file(ablations / result["model"] / "model.safetensors")
    original = load_file(shipped_model() / "model.safetensors")
    assert trained.keys() == original.keys()
    changed = {name for name in original if not torch.equal(trained[name].float(), original[name].float())}
    assert line(ablations, "lora")["update"]["gradient_norm"] > 0
    assert changed
    assert all("q_proj" in name for name in changed)
