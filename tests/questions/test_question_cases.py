"""A collection of real odd records loads whole: every line is a question or is named as something else."""

from __future__ import annotations

import json

from question_files import DATA

from searchparty.questions.reading import load_questions

LINES = [json.loads(line) for line in (DATA / "odd.jsonl").read_text(encoding="utf-8").splitlines()]
LOADED = load_questions(DATA / "odd.jsonl")


def test_every_line_is_accounted_for() -> None:
    skipped = {int(skipped.where.rpartition(":")[2]) for skipped in LOADED.skipped}
    without_question = {
        number
        for number, line in enumerate(LINES, start=1)
        if not any(key in line for key in ("question", "records", "record", "line"))
    }
    assert LOADED.format == "cases"
    assert skipped == without_question == {1, 3, 6, 9, 24, 27, 31}
    assert len(LOADED.questions) == len(LINES) - len(skipped) + 1  # one line holds two records


def test_texts_answers_and_ids_are_those_of_the_lines() -> None:
    by_id = {question.id: question for question in LOADED.questions}
    for line in LINES:
        if "question" not in line or "records" in line:
            continue
        record_id = line.get("id") or line.get("_id") or "cases_27"
        question = by_id[record_id]
        answer = [line["answer"]] if "answer" in line else []
        assert question.text == line["question"]
        assert list(question.golden_answers) == line.get("golden_answers", answer)
        assert question.dataset == line.get("dataset", question.dataset)
        assert question.extra["why"] == line["why"]


def test_records_inside_a_line_are_read_in_their_own_format() -> None:
    by_key = {question.key: question for question in LOADED.questions}
    assert by_key["ambigqa/ambigqa_train_2008"].text == by_key["ambigqa/ambigqa_train_3202"].text
    assert by_key["ambigqa/ambigqa_train_3202"].golden_answers == ("Mike Einziger", "Avicii", "Aloe Blacc")
    assert by_key["nq/nq_test_1"].golden_answers == ("Bobby Scott", "Bob Russell")
    assert "'30s" in by_key["cases/cases_3"].golden_answers


def test_what_is_skipped_says_what_it_is() -> None:
    reasons = [skipped.reason for skipped in LOADED.skipped]
    assert reasons.count("a passage") == 5
    assert any("first_bytes" in reason for reason in reasons)
