"""Formats of the multi-hop sets: HotpotQA (two layouts), 2WikiMultiHopQA, MuSiQue, and IRCoT's processed copies of them.

Paragraphs that come with a question are used for their titles and otherwise left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from searchparty.questions.formats.base import Fields, Format
from searchparty.questions.records import Record, shape_in_id, unique
from searchparty.questions.types import Question


def _fact_titles(record: Record) -> tuple[str, ...]:
    """Titles of `supporting_facts`: `[[title, sentence], ...]`, `{"title": [...], ...}`, or either as JSON text.

    One fact a sentence: a title that supports with several sentences is named several times in the source, and here once.
    """
    facts: Any = record.fields.get("supporting_facts")
    if isinstance(facts, str):
        try:
            facts = json.loads(facts)
        except ValueError:
            raise record.fault("the field 'supporting_facts' holds text that is not JSON") from None
    if isinstance(facts, Mapping):
        return unique(record.as_strings(facts.get("title"), "supporting_facts"))
    if facts is None:
        return ()
    try:
        titles = [title for title, _ in facts]
    except (TypeError, ValueError):
        raise record.fault("the field 'supporting_facts' must hold pairs of title and sentence number") from None
    return unique(record.as_strings(titles, "supporting_facts"))


def _read_hotpotqa(record: Record) -> Question:
    """HotpotQA: every question has two hops. Test files have neither answer nor supporting facts."""
    return record.question(
        text=record.text("question"),
        golden_answers=record.strings("answer"),
        record_id=record.identifier("_id", "id"),
        used=("_id", "id", "question", "answer", "supporting_facts", "context", "type"),
        supporting_titles=_fact_titles(record),
        hops=2,
        type=record.optional_text("type"),
    )


_HOPS_OF_2WIKI = {"compositional": 2, "comparison": 2, "inference": 2, "bridge_comparison": 4}


def _read_2wiki(record: Record) -> Question:
    """2WikiMultiHopQA, with or without contexts and the later release's entity ids; hops follow from the type."""
    kind = record.optional_text("type")
    return record.question(
        text=record.text("question"),
        golden_answers=record.strings("answer"),
        record_id=record.identifier("_id", "id"),
        used=("_id", "id", "question", "answer", "supporting_facts", "context", "type"),
        supporting_titles=_fact_titles(record),
        hops=_HOPS_OF_2WIKI.get(kind or ""),
        type=kind,
    )


def _read_musique(record: Record) -> Question:
    """MuSiQue: the id begins with the shape of the question (`3hop1__`), aliases are further answers.

    The full release holds each question twice under one id, the second time with a supporting paragraph taken away and
    `answerable` false. That one gets the id's ending `__unanswerable` and no golden answers; its `answer` goes to `extra`.
    """
    record_id = record.identifier("id")
    shape, hops = shape_in_id(record_id)
    unanswerable = record.fields.get("answerable") is False
    answers = record.strings("answer")
    used = ["id", "question", "paragraphs", "answer_aliases"] + ([] if unanswerable else ["answer"])
    return record.question(
        text=record.text("question"),
        golden_answers=() if unanswerable else answers + record.strings("answer_aliases"),
        record_id=f"{record_id}__unanswerable" if unanswerable and record_id else record_id,
        used=used,
        supporting_titles=_supporting_titles(record, "paragraphs"),
        hops=hops or len(record.objects("question_decomposition")) or None,
        type=shape,
        official_id=record_id if unanswerable else None,
    )


def _supporting_titles(record: Record, name: str) -> tuple[str, ...]:
    """Titles of the paragraphs that are marked as supporting; two of them may share a title."""
    titles = [paragraph.get("title") for paragraph in record.objects(name) if paragraph.get("is_supporting")]
    return unique(record.as_strings(titles, name))


def _read_ircot(record: Record) -> Question:
    """IRCoT: each span, number or date of an answer object is an accepted answer."""
    answers: list[str] = []
    for answer in record.objects("answers_objects"):
        date = answer.get("date")
        parts = [date.get(part) for part in ("day", "month", "year")] if isinstance(date, Mapping) else []
        answers += record.as_strings(answer.get("spans"), "answers_objects")
        answers += [str(answer["number"])] if answer.get("number") not in (None, "") else []
        answers += [" ".join(str(part) for part in parts if part)] if any(parts) else []
    record_id = record.identifier("question_id")
    shape, hops = shape_in_id(record_id)
    return record.question(
        text=record.text("question_text"),
        golden_answers=unique(answers),
        record_id=record_id,
        used=("question_id", "question_text", "answers_objects", "contexts", "pinned_contexts", "type"),
        supporting_titles=_supporting_titles(record, "contexts"),
        hops=hops,
        type=record.optional_text("type") or shape,
    )


def _has_paragraphs(fields: Fields, kind: type) -> bool:
    return "question" in fields and any(isinstance(fields.get(name), kind) for name in ("supporting_facts", "context"))


HOTPOTQA = Format(
    name="hotpotqa",
    summary="HotpotQA's own json: _id, question, supporting_facts as pairs",
    matches=lambda fields: _has_paragraphs(fields, list),
    read=_read_hotpotqa,
    dataset="hotpotqa",
)

HOTPOTQA_HF = Format(
    name="hotpotqa_hf",
    summary="HotpotQA as on Hugging Face: supporting_facts and context as columns",
    matches=lambda fields: _has_paragraphs(fields, dict),
    read=_read_hotpotqa,
    dataset="hotpotqa",
)

TWO_WIKI = Format(
    name="2wiki",
    summary="2WikiMultiHopQA: _id, question, evidences or entity_ids",
    matches=lambda fields: "question" in fields and ("evidences" in fields or "entity_ids" in fields),
    read=_read_2wiki,
    dataset="2wikimultihopqa",
)

MUSIQUE = Format(
    name="musique",
    summary="MuSiQue: id, question, paragraphs",
    matches=lambda fields: "question" in fields and isinstance(fields.get("paragraphs"), list),
    read=_read_musique,
    dataset="musique",
)

IRCOT = Format(
    name="ircot",
    summary="IRCoT's processed files: question_id, question_text, answers_objects",
    matches=lambda fields: "question_text" in fields and ("answers_objects" in fields or "contexts" in fields),
    read=_read_ircot,
)
