"""A dry run finds what is wrong before any model is loaded, all at once, each fault with its place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from training_factories import eval_stage, opd_stage, recipe, rl_stage, sft_stage

from searchparty.errors import UserError
from searchparty.tiny import shipped_model
from searchparty.training.checking import check_recipe

ANSWERER_ALONE = {
    "roles": {
        "searcher": {"estimator": {"name": "none"}},
        "answerer": {"estimator": {"name": "group-relative", "compare": "candidates"}, "rewards": {"exact_match": 1.0}},
    }
}
AMONG_EPISODES = {"estimator": {"name": "group-relative", "compare": "episodes"}, "rewards": {"team_result": 1.0}}


def faults(**stages: dict[str, Any]) -> list[str]:
    """The lines that a recipe of these stages is refused with."""
    with pytest.raises(UserError) as refused:
        check_recipe(recipe(**stages))
    return list(refused.value.lines)


@pytest.fixture
def other_tokenizer(tmp_path: Path) -> Path:
    """The tiny model with two tokens' ids exchanged."""
    folder = tmp_path / "other"
    shutil.copytree(shipped_model(), folder)
    file = folder / "tokenizer.json"
    document = json.loads(file.read_text())
    vocabulary = document["model"]["vocab"]
    first, second = sorted(vocabulary, key=vocabulary.get)[300:302]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    file.write_text(json.dumps(document))
    return folder


def test_a_recipe_without_faults_passes(world: Path) -> None:
    check_recipe(
        recipe(
            start=sft_stage(world),
            teacher=rl_stage(world, policy="stage:start"),
            student=opd_stage(world, policy="stage:start"),
            base=eval_stage(world, policy="stage:start"),
            trained=eval_stage(world, policy="stage:student", baseline="base"),
        )
    )


def test_every_fault_of_every_stage_is_found_at_once(world: Path) -> None:
    lines = faults(
        teacher=rl_stage(world, questions="no/questions.jsonl", scorer="squat", team={"name": "chained", "max_step": 3}),
        student=opd_stage(world, index="no/index", questions_per_step=99, roles={"searchr": {"sampling": {"top_k": 3}}}),
        base=eval_stage(world, policy="/no/model", baseline="nothing"),
    )
    for start in (
        "stages.teacher: no/questions.jsonl: no such file",
        "stages.teacher: scorer: ",
        "stages.teacher: team.max_step: ",
        "stages.student: questions_per_step is 99, but ",
        "stages.student: roles.searchr: the team hierarchical has no such role; did you mean searcher?",
        "stages.base: /no/model: not a model; use tiny",
        "stages.base: baseline: no eval stage named nothing; there are: base",
    ):
        assert any(line.startswith(start) for line in lines), (start, lines)


def test_a_teacher_with_another_tokenizer_is_refused_with_the_first_token_that_differs(
    world: Path, other_tokenizer: Path
) -> None:
    (line,) = faults(student=opd_stage(world, teacher=str(other_tokenizer)))
    assert f"stages.student: teacher {other_tokenizer}: has another tokenizer than the policy: 2 tokens differ" in line
    assert "choose a model of the policy's family" in line


def test_an_expert_with_another_tokenizer_is_refused_and_a_script_is_not(world: Path, other_tokenizer: Path) -> None:
    (line,) = faults(start=sft_stage(world, expert=str(other_tokenizer)))
    assert f"stages.start: expert {other_tokenizer}: has another tokenizer than the policy" in line
    check_recipe(recipe(start=sft_stage(world)))


def test_an_unknown_script_or_folder_of_another_model_is_named_with_its_key(world: Path) -> None:
    judge = {"model": "scripted:nobody"}
    lines = faults(
        start=sft_stage(world, expert="scripted:nobody"),
        student=opd_stage(world, teacher="tiny", credit="prompted-critic", judge=judge),
        base=eval_stage(world, roles={"answerer": {"model": "/no/model"}}),
    )
    assert [line.split(":")[0:2] for line in lines] == [
        ["stages.start", " expert"],
        ["stages.student", " judge.model"],
        ["stages.base", " roles.answerer.model"],
    ]


def test_a_role_that_no_signal_reaches_and_one_that_is_not_there_are_refused(world: Path) -> None:
    lines = faults(teacher=rl_stage(world) | {"credit": {"roles": {"searcher": AMONG_EPISODES, "leader": AMONG_EPISODES}}})
    assert lines == [
        "stages.teacher: credit.roles.leader: the team chained has no such role; its roles are searcher, answerer",
        "stages.teacher: credit.roles: no signal reaches the role answerer; name it, with estimator none if it is not to learn",
    ]


@pytest.mark.parametrize(("changes", "role"), [({"samples": 1}, "searcher"), ({"candidates": 1}, "answerer")])
def test_groups_of_one_are_refused_with_the_number_to_raise(world: Path, changes: dict[str, int], role: str) -> None:
    ((key, value),) = changes.items()
    (line,) = faults(teacher=rl_stage(world, **changes))
    assert line.startswith(f"stages.teacher: credit.roles.{role}: compares the ")
    assert line.endswith(f"{key} is {value}: every group would be a singleton and teach nothing; raise {key}")


@pytest.mark.parametrize("name", ["student", "later", "base", "nobody"])
def test_a_reference_to_a_stage_that_makes_no_model_before_is_refused(world: Path, name: str) -> None:
    lines = faults(
        base=eval_stage(world),
        first=rl_stage(world),
        student=opd_stage(world, teacher=f"stage:{name}"),
        later=rl_stage(world),
    )
    assert lines == [f"stages.student: teacher: no earlier stage named {name} makes a model; earlier ones that do: first"]


def test_a_role_may_be_played_by_what_an_earlier_stage_made_and_a_later_one_is_refused(world: Path) -> None:
    frozen = {"roles": {"searcher": {"model": "stage:first"}}, "credit": ANSWERER_ALONE}
    check_recipe(recipe(first=rl_stage(world), second=rl_stage(world, **frozen)))
    (line,) = faults(second=rl_stage(world, **frozen), first=rl_stage(world))
    assert line.startswith("stages.second: roles.searcher.model: no earlier stage named first makes a model")


@pytest.mark.parametrize("policy", ["scripted:default", "http://127.0.0.1:1/v1"])
def test_a_policy_that_has_no_weights_here_cannot_be_trained_but_evaluated(world: Path, policy: str) -> None:
    (line,) = faults(teacher=rl_stage(world, policy=policy))
    assert line.startswith(f"stages.teacher: policy: {policy} cannot be trained")
    check_recipe(recipe(base=eval_stage(world, policy=policy)))


def test_a_baseline_must_ask_the_same_questions(world: Path) -> None:
    (line,) = faults(base=eval_stage(world, limit=2), trained=eval_stage(world, baseline="base"))
    assert line.startswith("stages.trained: baseline: base asks other questions, so the two cannot be paired")


def test_a_role_that_another_model_plays_cannot_learn(world: Path) -> None:
    (line,) = faults(teacher=rl_stage(world, roles={"searcher": {"model": "scripted:default"}}))
    assert "roles.searcher.model: another model plays this role, so it cannot learn; give it estimator none" in line


def test_a_judge_must_judge_the_roles_that_are_rewarded_by_it(world: Path) -> None:
    judge = {"model": "scripted:default", "roles": ["answerer", "critic"]}
    lines = faults(student=opd_stage(world, teacher="tiny", credit="prompted-critic", judge=judge))
    assert lines == [
        "stages.student: judge.roles: the team hierarchical has no role critic; its roles are leader, searcher, answerer",
        "stages.student: credit.roles.searcher: asks for the judge's score, but judge.roles is answerer, critic; add searcher",
    ]


def test_a_warm_up_longer_than_the_stage_and_candidates_of_the_team_are_refused(world: Path) -> None:
    lines = faults(
        teacher=rl_stage(
            world, learner={"schedule": {"kind": "cosine", "warmup_steps": 4}}, team={"name": "chained", "candidates": 3}
        )
    )
    assert lines == [
        "stages.teacher: team.candidates: give it as candidates of the stage; evaluations always sample one",
        "stages.teacher: learner.schedule.warmup_steps is 4, but the stage has 4 optimizer steps (steps × minibatches); "
        "lower it",
    ]


def test_a_question_that_is_there_twice_is_refused_for_groups_would_mix_two(world: Path, tmp_path: Path) -> None:
    lines = (world / "questions-train.jsonl").read_text().splitlines()
    (tmp_path / "twice.jsonl").write_text("\n".join([*lines, lines[0]]) + "\n")
    assert any(
        "give each record its own id" in line
        for line in faults(teacher=rl_stage(world, questions=str(tmp_path / "twice.jsonl")))
    )


def test_a_judge_prompt_without_its_turn_is_refused(world: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "judge.yaml"
    prompt.write_text("system: You judge.\nturns:\n  verdict: '{report}'\n")
    judge = {"model": "scripted:default", "prompt": str(prompt)}
    lines = faults(student=opd_stage(world, teacher="tiny", credit="prompted-critic", judge=judge))
    assert len(lines) == 1
    assert lines[0].startswith("stages.student: judge: ")


@pytest.mark.parametrize("gone", ["tokenizer.json", "model.safetensors"])
def test_a_teacher_whose_folder_lacks_a_file_is_named(world: Path, tmp_path: Path, gone: str) -> None:
    folder = tmp_path / "teacher"
    shutil.copytree(shipped_model(), folder)
    (folder / gone).unlink()
    lines = faults(student=opd_stage(world, teacher=str(folder)))
    assert any(line.startswith("stages.student: teacher") and gone.removeprefix("model") in line for line in lines)


def test_an_evaluation_that_is_its_own_baseline_is_refused(world: Path) -> None:
    (line,) = faults(base=eval_stage(world, baseline="base"))
    assert line == "stages.base: baseline: base is this stage itself; name another eval stage"
