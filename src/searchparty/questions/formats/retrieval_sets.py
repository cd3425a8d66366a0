"""Formats that retrievers are trained and tested with: DPR's question tsv, DPR's json with passages, BEIR's topics."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from searchparty.questions.containers import TableLayout
from searchparty.questions.dataset_names import our_spelling
from searchparty.questions.formats.base import Fields, Format
from searchparty.questions.records import Record, unique
from searchparty.questions.types import Question

_DPR_PASSAGES = ("ctxs", "positive_ctxs", "negative_ctxs", "hard_negative_ctxs")


def _read_dpr_tsv(record: Record) -> Question:
    """DPR's question files: the answers are a Python list literal, which is not JSON. Cells may be quoted as in CSV."""
    answers = _list_literal(record.text("answers"))
    if answers is None:
        raise record.fault("the second cell must hold a list of texts such as ['Paris']")
    return record.question(
        text=record.text("question"),
        golden_answers=record.as_strings(answers, "answers"),
        record_id=None,
        used=("question", "answers"),
    )


def _list_literal(cell: object) -> list[object] | None:
    if not isinstance(cell, str):
        return None
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _read_dpr_json(record: Record) -> Question:
    """DPR's training and retrieval results: passages are left out, but the titles of gold ones are kept.

    Gold are `positive_ctxs` and, in lost-in-the-middle's files, the contexts with `isgold`. `has_answer` is no sign of
    evidence: it says only that a string occurs.
    """
    stated = record.optional_text("dataset")
    gold = record.objects("positive_ctxs") + [context for context in record.objects("ctxs") if context.get("isgold")]
    return record.question(
        text=record.text("question"),
        golden_answers=record.strings("answers"),
        record_id=record.identifier("id", "_id"),
        dataset=our_spelling(stated) if stated else None,
        used=("id", "_id", "dataset", "question", "answers", *_DPR_PASSAGES),
        supporting_titles=unique(record.as_strings([context.get("title") for context in gold], "title")),
    )


def _read_beir(record: Record) -> Question:
    """BEIR: topics have no answers; those of HotpotQA name answer and supporting facts in `metadata`."""
    metadata = record.fields.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    facts = metadata.get("supporting_facts") or []
    titles = [fact[0] for fact in facts if isinstance(fact, list) and fact]
    return record.question(
        text=record.text("text"),
        golden_answers=record.as_strings(metadata.get("answer"), "metadata"),
        record_id=record.identifier("_id"),
        used=("_id", "text"),
        supporting_titles=unique(record.as_strings(titles, "metadata")),
    )


def _beir_matches(fields: Fields) -> bool:
    record_id = fields.get("_id")
    return isinstance(fields.get("text"), str) and "title" not in fields and isinstance(record_id, str) and " " not in record_id


DPR_TSV = Format(
    name="dpr_tsv",
    summary="DPR's question tsv: question, tab, Python list of answers",
    matches=lambda fields: "question" in fields and _list_literal(fields.get("answers")) is not None,
    read=_read_dpr_tsv,
    table=TableLayout("\t", quoted=True, columns=("question", "answers")),
)

DPR_JSON = Format(
    name="dpr_json",
    summary="DPR's json: question, answers, ctxs or positive_ctxs",
    matches=lambda fields: isinstance(fields.get("question"), str) and isinstance(fields.get("answers"), list),
    read=_read_dpr_json,
)

BEIR = Format(
    name="beir",
    summary="BEIR topics: _id, tab, question; or queries.jsonl with _id, text",
    matches=_beir_matches,
    read=_read_beir,
    table=TableLayout("\t", quoted=False, columns=("_id", "text")),
)
