"""What a step leaves on disk comes back as it was, or the damaged file is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from playing import good_lines, play_lines
from searchparty.credit.types import SequenceKey, Signal
from searchparty.errors import UserError
from searchparty.teams.chained import Chained
from searchparty.training.records import (
    Judged,
    Scored,
    StepFiles,
    StepRecord,
    read_step,
    recorded_steps,
    remove_steps,
    write_step,
)


def signal(agent: str, length: int, returns: bool) -> Signal:
    trainable_T = np.arange(length) % 2 == 1
    values_T = np.where(trainable_T, np.linspace(-1, 1, length), 0).astype(np.float32)
    key = SequenceKey("nq/q1", 0, agent, 0)
    ids_T = np.arange(length, dtype=np.int32)
    return Signal(
        key, agent.split(".")[0], ids_T, trainable_T, values_T, -values_T, values_T, *[values_T if returns else None] * 2
    )


def record(step: int = 3, returns: bool = False) -> StepRecord:
    signals = [signal("searcher.1", 7, returns), signal("answerer.1", 4, returns)]
    return StepRecord(
        step,
        [play_lines(Chained(), good_lines())],
        signals,
        {signals[0].key: "episodes of nq/q1", signals[1].key: ""},
        {"nq/q1": ["Paris", "パリ"]},
        {("nq/q1", 0): [Judged(1.0, 1.0, None), Judged(0.0, 0.25, "no_answer")]},
        {signals[0].key: Scored(signals[0].ids_T, signals[0].old_logprobs_T)},
        {"judge": {signals[0].key: 0.7}},
        seed=2**62 + 1,
    )


@pytest.mark.parametrize("returns", [False, True])
def test_a_step_comes_back_to_the_last_bit(tmp_path: Path, returns: bool) -> None:
    written = record(returns=returns)
    write_step(tmp_path, written)
    read = read_step(tmp_path, 3)
    assert read.episodes == written.episodes
    assert (read.groups, read.golden_answers, read.judged) == (written.groups, written.golden_answers, written.judged)
    assert (read.scores, read.seed, read.step) == (written.scores, written.seed, 3)
    assert list(read.teacher) == list(written.teacher)
    for ours, theirs in zip(read.signals, written.signals, strict=True):
        assert (ours.key, ours.role) == (theirs.key, theirs.role)
        for name in ("ids_T", "trainable_T", "old_logprobs_T", "advantages_T", "weights_T"):
            assert getattr(ours, name).dtype == getattr(theirs, name).dtype
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        for name in ("returns_T", "values_T"):
            mine, recorded = getattr(ours, name), getattr(theirs, name)
            assert (mine is None) == (recorded is None) and (mine is None or np.array_equal(mine, recorded)), name
    key = written.signals[0].key
    assert np.array_equal(read.teacher[key].logprobs_T, written.teacher[key].logprobs_T)


def test_a_step_without_any_signal_comes_back_too(tmp_path: Path) -> None:
    written = record()
    write_step(tmp_path, StepRecord(1, written.episodes, [], {}, written.golden_answers, written.judged))
    read = read_step(tmp_path, 1)
    assert (read.signals, read.groups, read.teacher) == ([], {}, {})
    assert read.episodes == written.episodes


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("harm", [Path.unlink, _cut])
@pytest.mark.parametrize("ending", ["episodes", "arrays", "facts"])
def test_a_missing_or_damaged_file_is_named(tmp_path: Path, harm: Callable[[Path], None], ending: str) -> None:
    write_step(tmp_path, record())
    file: Path = getattr(StepFiles(tmp_path, 3), ending)
    harm(file)
    with pytest.raises(UserError) as named:
        read_step(tmp_path, 3)
    assert all(str(file) in line for line in named.value.lines)


def test_arrays_that_do_not_fit_their_lengths_are_refused(tmp_path: Path) -> None:
    write_step(tmp_path, record())
    file = StepFiles(tmp_path, 3).arrays
    with np.load(file) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    arrays["lengths_S"] = arrays["lengths_S"] + 1
    np.savez_compressed(file, **arrays)
    with pytest.raises(
        UserError,
        match=r"step-000003\.npz: damaged or of another version .*the sequences have 13 tokens together, ids_N has 11",
    ):
        read_step(tmp_path, 3)


def test_facts_of_another_format_are_refused(tmp_path: Path) -> None:
    write_step(tmp_path, record())
    file = StepFiles(tmp_path, 3).facts
    file.write_text(file.read_text().replace('"format": 2', '"format": 3'))
    with pytest.raises(UserError, match=r"format 3, this version reads 2"):
        read_step(tmp_path, 3)


def test_steps_beyond_a_checkpoint_are_removed(tmp_path: Path) -> None:
    for step in (1, 2, 12):
        write_step(tmp_path, record(step))
    remove_steps(tmp_path, after=1)
    assert recorded_steps(tmp_path) == [1]
    assert len(list(tmp_path.iterdir())) == 3
