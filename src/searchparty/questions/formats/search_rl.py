"""Formats in which search-RL projects hand questions around: FlashRAG, Search-R1's parquet in two dialects, R1-Searcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchparty.questions.dataset_names import our_spelling
from searchparty.questions.formats.base import Fields, Format
from searchparty.questions.records import Record, split_in_id, unique
from searchparty.questions.types import Question


def _flashrag_matches(fields: Fields) -> bool:
    return all(key in fields for key in ("id", "question", "golden_answers")) and "reward_model" not in fields


def _read_flashrag(record: Record) -> Question:
    """FlashRAG: `metadata` is optional and differs from set to set; what is of use is taken where it stands."""
    metadata = record.fields.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    is_popqa = "s_wiki_title" in metadata
    record_id = record.identifier("id")
    facts = metadata.get("supporting_facts")
    titles = facts.get("title") if isinstance(facts, Mapping) else metadata.get("s_wiki_title")
    kind = metadata.get("prop") if is_popqa else metadata.get("type")
    question = record.question(
        text=record.text("question"),
        golden_answers=record.strings("golden_answers"),
        record_id=record_id,
        dataset="popqa" if is_popqa else None,
        used=("id", "question", "golden_answers", "metadata"),
        supporting_titles=unique(record.as_strings(titles, "metadata")),
        hops=1 if is_popqa else None,
        type=kind if isinstance(kind, str) else None,
        split=split_in_id(record_id),
    )
    kept = {key: value for key, value in metadata.items() if key != "context"}
    if kept:
        question.extra["metadata"] = kept
    return question


def _ground_truth(fields: Fields) -> Any:
    reward_model = fields.get("reward_model")
    return reward_model.get("ground_truth") if isinstance(reward_model, Mapping) else None


def _extra_info(record: Record) -> Mapping[str, Any]:
    extra_info = record.fields.get("extra_info")
    return extra_info if isinstance(extra_info, Mapping) else {}


def _row(extra_info: Mapping[str, Any]) -> str | None:
    """What tells rows apart where there is no id: split and index, both as the file has them."""
    index, split = extra_info.get("index"), extra_info.get("split")
    return f"{split}_{index}" if isinstance(index, int) and isinstance(split, str) else None


def _read_search_r1(record: Record) -> Question:
    """Search-R1: FlashRAG's columns beside verl's; the answers are `golden_answers`, else the reward's target."""
    ground_truth, extra_info = _ground_truth(record.fields), _extra_info(record)
    if not isinstance(ground_truth, Mapping):
        raise record.fault(
            "the field 'reward_model' must hold ground_truth.target; for a ground truth in one text use agentic_rag"
        )
    answers = record.fields.get("golden_answers")
    record_id = record.identifier("id")
    source = record.optional_text("data_source")
    return record.question(
        text=record.text("question"),
        golden_answers=record.as_strings(ground_truth.get("target") if answers is None else answers, "golden_answers"),
        record_id=record_id,
        row=_row(extra_info),
        dataset=our_spelling(source) if source else None,
        used=("id", "question", "golden_answers", "data_source"),
        split=split_in_id(record_id) or extra_info.get("split"),
        source=source,
    )


def _read_agentic_rag(record: Record) -> Question:
    """The dialect whose `ground_truth` is one text with the answers joined by commas, and so cannot be split again.

    The list is in `extra_info.answer`; a single text there is one answer, commas and all.
    """
    extra_info = _extra_info(record)
    text = extra_info.get("question")
    if not isinstance(text, str) or not text.strip():
        raise record.fault("the field 'extra_info' must hold the question's text under 'question'")
    answers = extra_info.get("answer")
    source = record.optional_text("data_source")
    return record.question(
        text=text,
        golden_answers=record.as_strings(_ground_truth(record.fields) if answers is None else answers, "extra_info.answer"),
        record_id=record.identifier("id"),
        row=_row(extra_info),
        dataset=our_spelling(source) if source else None,
        used=("id", "data_source", "extra_info"),
        split=extra_info.get("split"),
        source=source,
    )


def _read_r1_searcher(record: Record) -> Question:
    return record.question(
        text=record.text("question"),
        golden_answers=record.strings("answer"),
        record_id=record.identifier("idx"),
        used=("idx", "question", "answer", "gen_text_store"),
    )


FLASHRAG = Format(
    name="flashrag",
    summary="FlashRAG: id, question, golden_answers, and often metadata",
    matches=_flashrag_matches,
    read=_read_flashrag,
)

SEARCH_R1 = Format(
    name="search_r1",
    summary="Search-R1: question, data_source, reward_model.ground_truth.target",
    matches=lambda fields: "question" in fields and isinstance(_ground_truth(fields), Mapping),
    read=_read_search_r1,
)

AGENTIC_RAG = Format(
    name="agentic_rag",
    summary="verl rows whose ground_truth is one text, with question and answer in extra_info",
    matches=lambda fields: isinstance(_ground_truth(fields), str) and isinstance(fields.get("extra_info"), Mapping),
    read=_read_agentic_rag,
)

R1_SEARCHER = Format(
    name="r1_searcher",
    summary="R1-Searcher: idx, question, answer",
    matches=lambda fields: all(key in fields for key in ("idx", "question", "answer")),
    read=_read_r1_searcher,
)
