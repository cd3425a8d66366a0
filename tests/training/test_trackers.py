"""Experiment trackers: every line once, under flat names, and never a reason for a run to end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from training_factories import recipe, rl_stage

from searchparty.errors import UserError
from searchparty.training.recipe import TrainRecipe
from searchparty.training.run_directory import MetricsLog
from searchparty.training.trackers import check_trackers, scalars, tracked

LINE = {
    "stage": "teacher",
    "step": 1,
    "kind": "step",
    "roles": {"searcher": {"rewards": {"total": 0.5}, "groups": None, "tokens": 7}},
    "alarms": ["a text"],
}


class Stub:
    """Stands in for the packages of all trackers and remembers what it was sent."""

    def __init__(self) -> None:
        self.begun: list[dict[str, Any]] = []
        self.sent: list[tuple[int, str, float]] = []
        """Step, name and value."""
        self.ended = 0
        self.fails = False

    def begin(self, *_: Any, **settings: Any) -> Any:
        self.begun.append(settings)
        return self

    def end(self) -> None:
        self.ended += 1

    def receive(self, values: Mapping[str, float], step: int) -> None:
        if self.fails:
            raise ConnectionError("no route to host, key hidden-value-7")
        self.sent += [(step, name, value) for name, value in values.items() if not name.endswith("/step")]


def install(monkeypatch: pytest.MonkeyPatch, name: str, stub: Stub) -> None:
    """Make the package importable, with the stub behind it."""

    def module(path: str, **contents: Any) -> None:
        made = ModuleType(path)
        made.__spec__ = ModuleSpec(path, None)
        vars(made).update(contents)
        monkeypatch.setitem(sys.modules, path, made)

    def log_wandb(values: Mapping[str, float]) -> None:
        stub.receive(values, int(next(value for key, value in values.items() if key.endswith("/step"))))

    def log_scalar(key: str, value: float, step: int) -> None:
        stub.receive({key: value}, step)

    ignored = lambda *_, **__: None  # noqa: E731
    run = SimpleNamespace(log=log_wandb, finish=stub.end, define_metric=ignored, info=SimpleNamespace(run_id="id-7"))
    started = lambda **settings: (stub.begin(**settings), run)[1]  # noqa: E731
    writer = SimpleNamespace(add_text=ignored, add_scalar=log_scalar, flush=ignored, close=stub.end)
    if name == "tensorboard":
        module("tensorboard")
        module("torch.utils.tensorboard", SummaryWriter=lambda **settings: (stub.begin(**settings), writer)[1])
    elif name == "wandb":
        module("wandb", init=started)
    elif name == "trackio":
        module("trackio", init=started, log=stub.receive, finish=stub.end)
    else:
        contents = {"set_experiment": ignored, "log_dict": ignored}
        module("mlflow", start_run=started, log_metrics=stub.receive, end_run=stub.end, **contents)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    """All four packages, one stub behind each of them."""
    made = Stub()
    for name in ("tensorboard", "wandb", "trackio", "mlflow"):
        install(monkeypatch, name, made)
    return made


@pytest.fixture
def log(tmp_path: Path) -> MetricsLog:
    return MetricsLog(tmp_path / "metrics.jsonl")


def recipe_with(world: Path, *trackers: str, **changes: Any) -> TrainRecipe:
    return recipe(teacher=rl_stage(world, **changes)).model_copy(update={"trackers": trackers})


def test_numbers_get_flat_names_and_what_is_no_number_is_left_out() -> None:
    assert scalars(LINE) == {"teacher/roles/searcher/rewards/total": 0.5, "teacher/roles/searcher/tokens": 7.0}
    assert scalars({"stage": "s", "step": 4, "kind": "development", "score": 0.25}) == {"s/development/score": 0.25}


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "trackio", "mlflow"])
def test_a_resumed_run_goes_on_in_the_same_place_and_sends_no_step_twice(
    name: str, stub: Stub, log: MetricsLog, world: Path, tmp_path: Path
) -> None:
    made = recipe_with(world, name)
    with tracked(tmp_path, made, log, pytest.fail):
        for step in (1, 2, 3):
            log.append({**LINE, "step": step})
    log.keep(lambda line: line["step"] <= 2)  # the process died before the checkpoint of step 3
    with tracked(tmp_path, made, log, pytest.fail):
        for step in (3, 4):
            log.append({**LINE, "step": step})
    assert [step for step, key, _ in stub.sent if key == "teacher/roles/searcher/tokens"] == [1, 2, 3, 4]
    assert stub.ended == 2
    first, second = stub.begun
    if name == "mlflow":
        assert second["run_id"] == "id-7"
    else:
        assert {key: first.get(key) for key in ("id", "name", "log_dir")} == {
            key: second.get(key) for key in ("id", "name", "log_dir")
        }


def test_a_tracker_that_is_added_later_gets_the_lines_that_are_there(
    stub: Stub, log: MetricsLog, world: Path, tmp_path: Path
) -> None:
    log.append(LINE)
    log.append({"stage": "teacher", "step": 1, "kind": "development", "score": 0.5})
    with tracked(tmp_path, recipe_with(world, "trackio"), log, pytest.fail):
        pass
    assert (1, "teacher/development/score", 0.5) in stub.sent


def test_a_tracker_that_fails_is_named_once_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, stub: Stub, log: MetricsLog, world: Path, tmp_path: Path
) -> None:
    broken, messages = Stub(), list[str]()
    broken.fails = True
    install(monkeypatch, "wandb", broken)
    monkeypatch.setenv("WANDB_API_KEY", "hidden-value-7")
    with tracked(tmp_path, recipe_with(world, "wandb", "trackio"), log, messages.append):
        for step in (1, 2):
            log.append({**LINE, "step": step})
    assert len(messages) == 1
    assert "tracker wandb: failed (ConnectionError: no route to host, key ***)" in messages[0]
    assert {step for step, _, _ in stub.sent} == {1, 2}
    assert len(list(log.lines())) == 2


def test_no_secret_of_the_environment_reaches_a_tracker_or_its_files(
    monkeypatch: pytest.MonkeyPatch, stub: Stub, log: MetricsLog, world: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "hidden-value-7")
    made = recipe_with(world, "wandb", index="http://127.0.0.1:1/hidden-value-7")
    with tracked(tmp_path, made, log, pytest.fail):
        log.append(LINE)
    assert "http://127.0.0.1:1/***" in str(stub.begun)
    assert "hidden-value-7" not in str(stub.begun)
    assert all(b"hidden-value-7" not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_tracker_that_cannot_begin_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, stub: Stub, log: MetricsLog, world: Path, tmp_path: Path
) -> None:
    def refuse(**_: Any) -> None:
        raise PermissionError("not logged in")

    monkeypatch.setattr(sys.modules["wandb"], "init", refuse)
    with (
        pytest.raises(UserError, match=r"tracker wandb: cannot begin \(PermissionError: not logged in\); set it up, or"),
        tracked(tmp_path, recipe_with(world, "wandb"), log, pytest.fail),
    ):
        pass


def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(UserError) as refused:
        check_trackers(["wandb", "trackio"])
    assert [line.split(";")[1] for line in refused.value.lines] == [" run: pip install 'searchparty[trackers]'"] * 2
