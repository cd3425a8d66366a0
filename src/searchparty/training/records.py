"""What one training step leaves on disk, so that every number it trained on can be traced and computed again.

    episodes/step-000012.jsonl   the episodes, one a line, in the order in which credit saw them
    episodes/step-000012.npz     token arrays of all signals, one after another, and what teacher and
                                 reference were given and said
    episodes/step-000012.json    golden answers, judged candidates, scores from outside, the step's own settings

Knows files; decides nothing. Arrays are written without pickle (contract 12). Axis suffixes: `_N` tokens of all sequences one
after another, `_S` sequences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from searchparty.credit.evidence import EpisodeKey
from searchparty.credit.types import FloatArray, IntArray, SequenceKey, Signal
from searchparty.episodes.store import read_episodes
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.files import atomic_output, read_json
from searchparty.training.recorded_arrays import RecordedSequence, read_arrays


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate of an answer call, as it was judged when the step was trained."""

    exact_match: float
    f1: float
    problem: str | None


@dataclass(frozen=True, slots=True)
class Scored:
    """What a teacher was given and what it said; both arrays are [T]."""

    ids_T: IntArray
    """The ids as they were handed to the teacher."""
    logprobs_T: FloatArray
    """Of those ids, at the trainable positions; 0 elsewhere."""


@dataclass
class StepRecord:
    """One step: what was sampled, what was known of it, and what was learned from it."""

    step: int
    """From 1."""
    episodes: Sequence[Episode]
    signals: Sequence[Signal]
    groups: Mapping[SequenceKey, str]
    """The group in which each signal was compared, as `group_name` writes it; empty text if it was compared with nothing."""
    golden_answers: Mapping[str, Sequence[str]]
    """Question key to golden answers."""
    judged: Mapping[EpisodeKey, Sequence[Judged]]
    teacher: Mapping[SequenceKey, Scored] = field(default_factory=dict)
    scores: Mapping[str, Mapping[SequenceKey, float]] = field(default_factory=dict)
    """Rewards from outside, by name."""
    seed: int = 0
    """Of the step's episodes."""
    reference: Mapping[SequenceKey, Scored] = field(default_factory=dict)
    """What a reference was given and said."""


@dataclass(frozen=True, slots=True)
class StepFiles:
    """The three files of one step."""

    folder: Path
    step: int

    def _named(self, ending: str) -> Path:
        return self.folder / f"step-{self.step:06d}.{ending}"

    @property
    def episodes(self) -> Path:
        return self._named("jsonl")

    @property
    def arrays(self) -> Path:
        return self._named("npz")

    @property
    def facts(self) -> Path:
        return self._named("json")


def recorded_steps(folder: Path) -> list[int]:
    """The steps of which any file is there, in order."""
    named = [path.name.split(".")[0].removeprefix("step-") for path in folder.glob("step-*.*")]
    return sorted({int(number) for number in named if number.isdigit()})


def remove_steps(folder: Path, after: int) -> None:
    """Remove the files of steps later than `after`: they were recorded, but their checkpoint was never finished."""
    for step in recorded_steps(folder):
        if step > after:
            files = StepFiles(folder, step)
            for path in (files.facts, files.arrays, files.episodes):
                path.unlink(missing_ok=True)


def write_step(folder: Path, record: StepRecord) -> None:
    """Write the three files, each whole or not at all; the facts come last. Raises UserError if the disk is full."""
    files = StepFiles(folder, record.step)
    with atomic_output(files.episodes, "wb") as stream:
        for episode in record.episodes:
            stream.write(orjson.dumps(episode, option=orjson.OPT_APPEND_NEWLINE))
    with atomic_output(files.arrays, "wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **_arrays(record))
    with atomic_output(files.facts, "wb") as stream:
        stream.write(orjson.dumps(_facts(record), option=orjson.OPT_INDENT_2))


def read_step(folder: Path, step: int) -> StepRecord:
    """The record of a step.

    Raises:
        UserError: a file is missing, damaged, or does not fit the others in form.
    """
    files = StepFiles(folder, step)
    episodes = list(read_episodes(files.episodes))
    facts = read_facts(files.facts)
    try:
        signals, groups, teacher, reference = _from_sequences(read_arrays(files.arrays))
    except ValueError as error:
        raise UserError(f"{files.arrays}: damaged or of another version ({type(error).__name__}: {error})") from None
    return StepRecord(step, episodes, signals, groups, teacher=teacher, reference=reference, **facts)


def _arrays(record: StepRecord) -> dict[str, NDArray[Any]]:
    signals = record.signals
    scored = [record.teacher.get(signal.key) for signal in signals]
    nothing = [np.zeros(len(signal.ids_T)) for signal in signals]
    arrays = {
        "lengths_S": np.array([len(signal.ids_T) for signal in signals], np.int64),
        "role_S": np.array([signal.role for signal in signals], np.str_),
        "question_key_S": np.array([signal.key.question_key for signal in signals], np.str_),
        "sample_S": np.array([signal.key.sample for signal in signals], np.int64),
        "agent_S": np.array([signal.key.agent for signal in signals], np.str_),
        "candidate_S": np.array([signal.key.candidate for signal in signals], np.int64),
        "group_S": np.array([record.groups.get(signal.key, "") for signal in signals], np.str_),
        "scored_S": np.array([one is not None for one in scored], np.bool_),
        "ids_N": _joined([signal.ids_T for signal in signals], np.int32),
        "trainable_N": _joined([signal.trainable_T for signal in signals], np.bool_),
        "old_logprobs_N": _joined([signal.old_logprobs_T for signal in signals], np.float32),
        "advantages_N": _joined([signal.advantages_T for signal in signals], np.float32),
        "weights_N": _joined([signal.weights_T for signal in signals], np.float32),
        "teacher_ids_N": _filled([None if one is None else one.ids_T for one in scored], nothing, np.int32),
        "teacher_logprobs_N": _filled([None if one is None else one.logprobs_T for one in scored], nothing, np.float32),
    }
    valued = [signal.returns_T is not None for signal in signals]
    if any(valued):
        arrays |= {
            "valued_S": np.array(valued, np.bool_),
            "values_N": _filled([signal.values_T for signal in signals], nothing, np.float32),
            "returns_N": _filled([signal.returns_T for signal in signals], nothing, np.float32),
        }
    if record.reference:
        referred = [record.reference.get(signal.key) for signal in signals]
        arrays |= {
            "referenced_S": np.array([one is not None for one in referred], np.bool_),
            "reference_ids_N": _filled([None if one is None else one.ids_T for one in referred], nothing, np.int32),
            "reference_logprobs_N": _filled([None if one is None else one.logprobs_T for one in referred], nothing, np.float32),
        }
    return arrays


def _filled(parts: Sequence[Any], nothing: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """The arrays one after another, with zeros where there is none."""
    return _joined([empty if part is None else part for part, empty in zip(parts, nothing, strict=True)], dtype)


def _joined(parts: Sequence[Any], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)


def _from_sequences(
    sequences: Sequence[RecordedSequence],
) -> tuple[list[Signal], dict[SequenceKey, str], dict[SequenceKey, Scored], dict[SequenceKey, Scored]]:
    """Raises ValueError if a sequence contradicts itself."""
    signals = [
        Signal(
            one.key,
            one.role,
            one.ids_T,
            one.trainable_T,
            one.old_logprobs_T,
            one.advantages_T,
            one.weights_T,
            one.returns_T,
            one.values_T,
        )
        for one in sequences
    ]
    teacher = {one.key: Scored(one.teacher_ids_T, one.teacher_logprobs_T) for one in sequences if one.scored}
    reference = {
        one.key: Scored(one.reference_ids_T, one.reference_logprobs_T)
        for one in sequences
        if one.reference_ids_T is not None and one.reference_logprobs_T is not None
    }
    return signals, {one.key: one.group for one in sequences}, teacher, reference


def _facts(record: StepRecord) -> dict[str, Any]:
    return {
        "format": 2,
        "step": record.step,
        "seed": record.seed,
        "golden_answers": {key: list(answers) for key, answers in record.golden_answers.items()},
        "judged": [
            {
                "question_key": key,
                "sample": sample,
                "candidates": [[one.exact_match, one.f1, one.problem] for one in candidates],
            }
            for (key, sample), candidates in record.judged.items()
        ],
        "scores": {
            name: [[key.question_key, key.sample, key.agent, key.candidate, score] for key, score in scores.items()]
            for name, scores in record.scores.items()
        },
    }


def read_facts(path: Path) -> dict[str, Any]:
    """What is in the facts of a step, by the names that a `StepRecord` has for it. Raises UserError if they are damaged."""
    try:
        return read_json(path, _check_facts)
    except AttributeError as error:
        raise UserError(f"{path}: not in the expected form ({error})") from None


def _check_facts(value: Any) -> dict[str, Any]:
    if value["format"] != 2:
        raise ValueError(f"format {value['format']}, this version reads 2")
    return {
        "seed": int(value["seed"]),
        "golden_answers": {str(key): [str(one) for one in answers] for key, answers in value["golden_answers"].items()},
        "judged": {
            (str(one["question_key"]), int(one["sample"])): [
                Judged(float(match), float(f1), problem) for match, f1, problem in one["candidates"]
            ]
            for one in value["judged"]
        },
        "scores": {
            str(name): {SequenceKey(str(q), int(s), str(a), int(c)): float(score) for q, s, a, c, score in rows}
            for name, rows in value["scores"].items()
        },
    }
