"""Formats of the single-hop sets and their relatives: NQ-open, PopQA, AmbigQA, KILT, Bamboogle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from searchparty.questions.containers import TableLayout
from searchparty.questions.formats.base import Fields, Format
from searchparty.questions.records import Record, shape_in_id, unique
from searchparty.questions.types import Question


def _read_nq_open(record: Record) -> Question:
    """NQ-open and everything as plain: a question, and an answer or a list of them; an id is used if there is one.

    EfficientQA's later judgements of other answers stay in `extra`: the golden answers are those of the release.
    """
    return record.question(
        text=record.text("question"),
        golden_answers=record.strings("answer"),
        record_id=record.identifier("id", "_id"),
        used=("id", "_id", "question", "answer"),
    )


def _read_popqa(record: Record) -> Question:
    """PopQA: the answers are a JSON list inside a cell. The page of the subject is the evidence; the object's is not."""
    cell = record.fields.get("possible_answers")
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except ValueError:
            raise record.fault("the field 'possible_answers' must hold a JSON list of texts") from None
    return record.question(
        text=record.text("question"),
        golden_answers=record.as_strings(cell, "possible_answers"),
        record_id=record.identifier("id"),
        used=("id", "question", "possible_answers", "prop"),
        supporting_titles=record.strings("s_wiki_title"),
        hops=1,
        type=record.optional_text("prop"),
        split="test",
    )


def _annotations(record: Record) -> Iterator[tuple[str, list[object]]]:
    """Yield `(type, answer lists)` of each annotation, in the official layout or Hugging Face's columns."""
    annotations: Any = record.fields.get("annotations")
    if isinstance(annotations, Mapping):
        names = ("type", "answer", "qaPairs")
        columns = [annotations.get(name) or [] for name in names]
        annotations = [dict(zip(names, entry, strict=False)) for entry in zip(*columns, strict=False)]
    for annotation in annotations or []:
        pairs = annotation.get("qaPairs") or []
        if annotation.get("type") == "singleAnswer":
            yield "singleAnswer", [annotation.get("answer")]
        elif isinstance(pairs, Mapping):
            yield "multipleQAs", list(pairs.get("answer") or [])
        else:
            yield "multipleQAs", [pair.get("answer") for pair in pairs]


def _read_ambigqa(record: Record) -> Question:
    """AmbigQA: an answer to any reading of the question is accepted; the readings themselves stay in `extra`."""
    try:
        annotations = list(_annotations(record))
    except AttributeError:
        raise record.fault("the field 'annotations' must hold objects with type and answer or qaPairs") from None
    kinds = {kind for kind, _ in annotations}
    answers = [text for _, entries in annotations for entry in entries for text in record.as_strings(entry, "annotations")]
    return record.question(
        text=record.text("question"),
        golden_answers=unique(answers),
        record_id=record.identifier("id"),
        used=("id", "question"),
        type="multipleQAs" if "multipleQAs" in kinds else next(iter(kinds), None),
    )


def _read_kilt(record: Record) -> Question:
    """KILT: each item of `output` may hold an answer, its provenance, or both. Test files have no output."""
    outputs = record.objects("output")
    answers = [text for output in outputs for text in record.as_strings(output.get("answer"), "output")]
    provenance = [page for output in outputs for page in output.get("provenance") or []]
    if not all(isinstance(page, Mapping) for page in provenance):
        raise record.fault("the field 'output' must hold its provenance as a list of objects")
    record_id = record.identifier("id")
    shape, hops = shape_in_id(record_id)
    titles = [title for page in provenance for title in record.as_strings(page.get("title"), "output")]
    return record.question(
        text=record.text("input"),
        golden_answers=unique(answers),
        record_id=record_id,
        used=("id", "input"),
        supporting_titles=unique(titles),
        hops=hops,
        type=shape,
    )


def _read_bamboogle(record: Record) -> Question:
    return record.question(
        text=record.text("Question"),
        golden_answers=record.strings("Answer"),
        record_id=None,
        used=("Question", "Answer"),
        hops=2,
        split="test",
    )


def _nq_open_matches(fields: Fields) -> bool:
    return isinstance(fields.get("question"), str) and ("answer" in fields or fields.keys() == {"question"})


NQ_OPEN = Format(
    name="nq_open",
    summary="NQ-open and the like: question, answer",
    matches=_nq_open_matches,
    read=_read_nq_open,
    usual_dataset="nq",
)

POPQA = Format(
    name="popqa",
    summary="PopQA's tsv: question, possible_answers, s_wiki_title and others",
    matches=lambda fields: "question" in fields and "possible_answers" in fields,
    read=_read_popqa,
    dataset="popqa",
    table=TableLayout("\t", quoted=True, columns=None),
)

AMBIGQA = Format(
    name="ambigqa",
    summary="AmbigQA: id, question, annotations",
    matches=lambda fields: "question" in fields and "annotations" in fields,
    read=_read_ambigqa,
    dataset="ambigqa",
)

KILT = Format(
    name="kilt",
    summary="KILT: id, input, output",
    matches=lambda fields: "id" in fields and isinstance(fields.get("input"), str),
    read=_read_kilt,
)

BAMBOOGLE = Format(
    name="bamboogle",
    summary="Bamboogle's csv: Question,Answer",
    matches=lambda fields: "Question" in fields and "Answer" in fields,
    read=_read_bamboogle,
    dataset="bamboogle",
    table=TableLayout(",", quoted=True, columns=None),
)
