"""The token arrays of one recorded step, as they lie on disk: one sequence after another, believed in nothing but their form.

A `Signal` refuses to exist if one of its masks and its numbers contradict each other. Whoever must say *which* token is wrong
reads these instead. Knows arrays; decides nothing.
"""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.types import BoolArray, FloatArray, IntArray, SequenceKey
from searchparty.errors import UserError

Arrays = Mapping[str, NDArray[Any]]

PER_SEQUENCE = {
    "lengths_S": "i", "role_S": "U", "question_key_S": "U", "sample_S": "i", "agent_S": "U", "candidate_S": "i", "group_S": "U",
    "scored_S": "b",
}  # fmt: skip
"""Arrays with an entry per sequence, and the kind of their entries as numpy names it."""
PER_TOKEN = {
    "ids_N": "i", "trainable_N": "b", "old_logprobs_N": "f", "advantages_N": "f", "weights_N": "f", "teacher_ids_N": "i",
    "teacher_logprobs_N": "f",
}  # fmt: skip
"""Arrays with an entry per token of all sequences."""
OF_A_CRITIC = {"valued_S": "b", "values_N": "f", "returns_N": "f"}
"""There if some role learns with a critic, all together; `valued_S` says which sequences are such a role's."""
OF_A_REFERENCE = {"referenced_S": "b", "reference_ids_N": "i", "reference_logprobs_N": "f"}
"""There if a reference scored anything, all together; `referenced_S` says what it scored."""
UNREADABLE = (
    ValueError, KeyError, TypeError, IndexError, OSError, EOFError, MemoryError, RuntimeError, SyntaxError, struct.error,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a damaged archive raises."""


@dataclass(slots=True)
class RecordedSequence:
    """One sequence of a step. Read from disk all arrays are [T]; what they say may be wrong."""

    key: SequenceKey
    role: str
    group: str
    ids_T: IntArray
    trainable_T: BoolArray
    old_logprobs_T: FloatArray
    advantages_T: FloatArray
    weights_T: FloatArray
    returns_T: FloatArray | None
    """None if the sequence has no targets for a critic, like `values_T`."""
    values_T: FloatArray | None
    """What the critic said before the update."""
    scored: bool
    """Whether a teacher scored it."""
    teacher_ids_T: IntArray
    """The ids that the teacher was given; 0 if it scored nothing here, like `teacher_logprobs_T`."""
    teacher_logprobs_T: FloatArray
    reference_ids_T: IntArray | None
    """The ids that the reference was given; None if it did not score the sequence, like `reference_logprobs_T`."""
    reference_logprobs_T: FloatArray | None


def read_arrays(path: Path) -> list[RecordedSequence]:
    """The sequences of a step in the order in which they were written.

    Raises:
        UserError: the file is missing or cut short, or its arrays do not fit together in number or kind.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        return _sequences(arrays)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; the step was not recorded whole") from None
    except UNREADABLE as error:
        raise UserError(f"{path}: damaged or of another version ({type(error).__name__}: {error})") from None


def _sequences(arrays: Arrays) -> list[RecordedSequence]:
    _check_form(arrays)
    ends = np.cumsum(arrays["lengths_S"])
    sequences = []
    for place, (length, end) in enumerate(zip(arrays["lengths_S"].tolist(), ends.tolist(), strict=True)):
        own = slice(end - length, end)
        valued = "valued_S" in arrays and bool(arrays["valued_S"][place])
        referenced = "referenced_S" in arrays and bool(arrays["referenced_S"][place])
        key = SequenceKey(
            str(arrays["question_key_S"][place]),
            int(arrays["sample_S"][place]),
            str(arrays["agent_S"][place]),
            int(arrays["candidate_S"][place]),
        )
        sequences.append(
            RecordedSequence(
                key=key,
                role=str(arrays["role_S"][place]),
                group=str(arrays["group_S"][place]),
                ids_T=arrays["ids_N"][own],
                trainable_T=arrays["trainable_N"][own],
                old_logprobs_T=arrays["old_logprobs_N"][own],
                advantages_T=arrays["advantages_N"][own],
                weights_T=arrays["weights_N"][own],
                returns_T=arrays["returns_N"][own] if valued else None,
                values_T=arrays["values_N"][own] if valued else None,
                scored=bool(arrays["scored_S"][place]),
                teacher_ids_T=arrays["teacher_ids_N"][own],
                teacher_logprobs_T=arrays["teacher_logprobs_N"][own],
                reference_ids_T=arrays["reference_ids_N"][own] if referenced else None,
                reference_logprobs_T=arrays["reference_logprobs_N"][own] if referenced else None,
            )
        )
    return sequences


def _check_form(arrays: Arrays) -> None:
    """Raises ValueError or KeyError unless all arrays are there, flat, of their kind and of the lengths that they share."""
    expected = PER_SEQUENCE | PER_TOKEN
    for group in (OF_A_CRITIC, OF_A_REFERENCE):
        if group.keys() & arrays.keys():
            expected = expected | group
    for name, kind in expected.items():
        array = arrays[name]
        if array.ndim != 1 or array.dtype.kind != kind:
            raise ValueError(f"{name} is an array of {array.dtype} with {array.ndim} dimensions")
    lengths_S = arrays["lengths_S"]
    if np.any(lengths_S < 0):
        raise ValueError("a sequence has a negative length")
    tokens = int(lengths_S.sum())
    for name in expected:
        if name.endswith("_S") and len(arrays[name]) != len(lengths_S):
            raise ValueError(f"there are {len(lengths_S)} sequences, {name} has {len(arrays[name])}")
    for name in expected:
        if name.endswith("_N") and len(arrays[name]) != tokens:
            raise ValueError(f"the sequences have {tokens} tokens together, {name} has {len(arrays[name])}")
