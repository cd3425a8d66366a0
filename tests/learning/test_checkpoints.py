from __future__ import annotations

import errno
import json
import os
import random
import signal as signals_of_the_system
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from learning_factories import settings, signals, tiny_model, weights_of

from searchparty.errors import UserError
from searchparty.learning.checkpoints import CheckpointFolder
from searchparty.learning.critic import Critic
from searchparty.learning.learner import Learner
from searchparty.learning.learner_state import load_learner, save_learner
from searchparty.learning.settings import Schedule


def write_text(text: str):
    return lambda folder: (folder / "data.txt").write_text(text)


def names(folder: CheckpointFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


def test_the_latest_checkpoint_is_found_with_its_step_and_score(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.save(1, write_text("one"), score=0.5)
    folder.save(2, write_text("two"))
    found = folder.latest()
    assert (found.checkpoint.step, found.checkpoint.score, found.skipped) == (2, None, [])
    assert (found.checkpoint.folder / "data.txt").read_text() == "two"


def test_a_folder_without_checkpoints_has_no_latest(tmp_path):
    assert CheckpointFolder(tmp_path / "none").latest().checkpoint is None


def test_the_last_ones_and_the_best_are_kept(tmp_path):
    folder = CheckpointFolder(tmp_path, keep_last=2)
    for step, score in enumerate([0.1, 0.9, 0.3, 0.4, 0.9, 0.2, 0.1, 0.0], start=1):
        folder.save(step, write_text(str(step)), score)
    assert names(folder) == ["step-000005", "step-000007", "step-000008"]
    assert folder.best().step == 5


def test_a_run_that_went_back_keeps_what_it_saves_and_not_what_lies_beyond(tmp_path):
    folder = CheckpointFolder(tmp_path, keep_last=1)
    damaged = folder.save(10, write_text("ten")).folder
    (damaged / "data.txt").write_text("t")
    folder.save(7, write_text("seven"))
    assert names(folder) == ["step-000007"]
    assert folder.latest().checkpoint.step == 7


def test_a_damaged_checkpoint_is_not_the_best_and_neither_is_one_whose_score_is_not_a_number(tmp_path):
    folder = CheckpointFolder(tmp_path, keep_last=3)
    folder.save(1, write_text("one"), score=0.3)
    folder.save(2, write_text("two"), score=float("nan"))
    (folder.save(3, write_text("three"), score=0.9).folder / "data.txt").write_text("th")
    assert folder.best().step == 1


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "data.txt").write_text("tw"), "cut short"),
        (lambda folder: (folder / "data.txt").write_text("twO"), "SHA-256"),
        (lambda folder: (folder / "data.txt").unlink(), "missing"),
        (lambda folder: (folder / "manifest.json").write_text('{"format": 1, "st'), "manifest"),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest"),
    ],
)
def test_a_damaged_checkpoint_is_passed_over_for_the_last_whole_one_and_named(tmp_path, damage, words):
    folder = CheckpointFolder(tmp_path)
    folder.save(1, write_text("one"))
    damage(folder.save(2, write_text("two")).folder)
    found = folder.latest()
    assert found.checkpoint.step == 1
    (line,) = found.skipped
    assert "step-000002" in line
    assert words in line
    assert "going on from step-000001" in line


def test_a_checkpoint_of_another_format_is_not_read(tmp_path):
    folder = CheckpointFolder(tmp_path)
    made = folder.save(1, write_text("one")).folder
    manifest = json.loads((made / "manifest.json").read_text())
    (made / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    assert "format 99" in folder.latest().skipped[0]


def test_a_full_disk_leaves_the_earlier_checkpoint_and_nothing_half_written(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.save(1, write_text("one"))

    def fail(path: Path) -> None:
        (path / "data.txt").write_text("tw")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UserError, match="No space left"):
        folder.save(2, fail)
    assert names(folder) == ["step-000001"]


def test_a_process_killed_while_saving_loses_at_most_that_checkpoint(tmp_path):
    program = f"""
import itertools, pathlib
from searchparty.learning.checkpoints import CheckpointFolder
folder = CheckpointFolder(pathlib.Path({str(tmp_path)!r}))
def write(path):
    for number in range(5):
        (path / f"{{number}}.bin").write_bytes(b"x" * 300_000)
for step in itertools.count(1):
    folder.save(step, write)
    print(step, flush=True)
"""
    folder = CheckpointFolder(tmp_path)
    pause = random.Random(0)
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(3):
                finished = int(process.stdout.readline())
            time.sleep(pause.uniform(0, 0.02))
            process.send_signal(signals_of_the_system.SIGKILL)
            finished = max([finished, *map(int, process.stdout.read().split())])
        found = folder.latest()
        assert found.checkpoint is not None
        assert found.checkpoint.step >= finished
        assert found.skipped == []
    folder.save(10**5, write_text("after"))
    assert not list(tmp_path.glob(".step-*"))


def learner_with_schedule(seed: int = 0, critic: bool = False) -> Learner:
    model = tiny_model(seed=seed)
    schedule = Schedule("cosine", warmup_steps=3, total_steps=30)
    return Learner(model, settings(minibatches=3, schedule=schedule), critic=Critic.on_trunk(model) if critic else None)


@pytest.mark.parametrize("critic", [False, True])
def test_resuming_continues_to_the_last_bit_as_if_never_interrupted(tmp_path, critic):
    batches = [signals(seed=seed, returns=critic) for seed in range(4)]
    straight = learner_with_schedule(critic=critic)
    expected = [straight.update(batch) for batch in batches]

    first = learner_with_schedule(critic=critic)
    found = [first.update(batch) for batch in batches[:2]]
    checkpoint = CheckpointFolder(tmp_path).save(2, lambda folder: save_learner(first, folder))
    random_number = torch.rand(1)
    second = learner_with_schedule(seed=1, critic=critic)
    load_learner(second, checkpoint.folder)
    assert torch.equal(torch.rand(1), random_number)
    found += [second.update(batch) for batch in batches[2:]]

    assert found == expected
    before, after = weights_of(straight.model), weights_of(second.model)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_masters_of_a_model_in_half_precision_survive_a_resume(tmp_path):
    def half() -> Learner:
        return Learner(tiny_model().to(torch.bfloat16), settings(learning_rate=1e-5))

    straight, first, second = half(), half(), half()
    expected = [straight.update(signals()) for _ in range(2)]
    first.update(signals())
    save_learner(first, tmp_path)
    load_learner(second, tmp_path)
    assert second.update(signals()) == expected[1]
    for name, master in straight.trained["policy"].masters.items():
        assert torch.equal(second.trained["policy"].masters[name], master)


def test_a_checkpoint_of_another_model_is_refused_before_anything_is_changed(tmp_path):
    save_learner(learner_with_schedule(), tmp_path)
    other = Learner(tiny_model("qwen2"), settings())
    before = weights_of(other.model)
    with pytest.raises(UserError, match=r"k_proj\.bias is not in this checkpoint"):
        load_learner(other, tmp_path)
    assert all(torch.equal(before[name], tensor) for name, tensor in weights_of(other.model).items())
    wider = Learner(tiny_model(intermediate_size=64), settings())
    with pytest.raises(UserError, match="shape"):
        load_learner(wider, tmp_path)


def test_a_checkpoint_with_a_critic_is_refused_by_a_learner_without(tmp_path):
    save_learner(learner_with_schedule(critic=True), tmp_path)
    with pytest.raises(UserError, match="critic"):
        load_learner(learner_with_schedule(), tmp_path)


def test_no_file_of_a_checkpoint_is_a_pickle(tmp_path):
    learner = learner_with_schedule()
    learner.update(signals())
    save_learner(learner, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors", ".json"}
