"""The questions that a protocol asks, out of a file that holds them among others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from searchparty.errors import UserError
from searchparty.evaluation.protocols.types import DatasetSpec, Protocol
from searchparty.questions.overlap import fold
from searchparty.questions.types import Question

SHOWN = 3
"""Missing ids that an error names."""


def chosen_questions(protocol: Protocol, questions: Sequence[Question], source: Path) -> list[Question]:
    """The protocol's questions, in the order of its datasets.

    Where it asks for a number of them, those come first of which the SHA-256 of `dataset/folded text` is smallest. That depends
    neither on the order of the file nor on its ids, so that two sources of one dataset give the same choice.

    Raises:
        UserError: one line for each dataset of which the file does not hold what is asked.
    """
    chosen: list[Question] = []
    faults: list[str] = []
    for name, spec in protocol.datasets.items():
        there = [one for one in questions if one.dataset == name and spec.split in (None, one.split or spec.split)]
        try:
            chosen += _by_id(name, spec, there) if spec.ids else _by_hash(name, spec, there)
        except UserError as error:
            faults += [f"{source}: {line}; protocol {protocol.name} cannot be followed with this file" for line in error.lines]
    if faults:
        raise UserError(*faults)
    return chosen


def _by_hash(name: str, spec: DatasetSpec, there: Sequence[Question]) -> list[Question]:
    assert spec.questions is not None
    if len(there) < spec.questions:
        split = f", split {spec.split}" if spec.split else ""
        raise UserError(f"has {len(there)} of the {spec.questions} questions of {name}{split}")
    return sorted(there, key=_place)[: spec.questions]


def _by_id(name: str, spec: DatasetSpec, there: Sequence[Question]) -> list[Question]:
    found = {one.official_id: one for one in there if one.official_id is not None} | {one.id: one for one in there}
    missing = [one for one in spec.ids if one not in found]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise UserError(f"lacks {', '.join(missing[:SHOWN])}{more} of {name}")
    return [found[one] for one in spec.ids]


def _place(question: Question) -> tuple[bytes, str]:
    return hashlib.sha256(f"{question.dataset}/{fold(question.text)}".encode()).digest(), question.key
