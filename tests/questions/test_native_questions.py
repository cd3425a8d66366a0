"""What is written is read back, whatever the texts hold."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_files import json_lines, native_record

from searchparty.errors import UserError
from searchparty.questions.formats.native import write_questions
from searchparty.questions.reading import load_questions, read_questions
from searchparty.questions.types import Question

texts = st.text(st.characters(), min_size=1).filter(lambda text: bool(text.strip()))
names = st.text(min_size=1).filter(lambda text: bool(text.strip()))
"""Parts of a key, which are refused with half of a surrogate pair in them."""
lists = st.lists(st.text(), max_size=3).map(tuple)
maybe = st.none() | texts
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
questions = st.builds(
    Question,
    id=names,
    text=texts,
    golden_answers=lists,
    dataset=names,
    supporting_titles=lists,
    supporting_ids=lists,
    hops=st.none() | st.integers(0, 9),
    type=maybe,
    split=maybe,
    source=maybe,
    official_id=maybe,
    extra=st.dictionaries(st.text(), json_values, max_size=3),
)


@given(st.lists(questions, min_size=1, max_size=4, unique_by=lambda question: question.key))
def test_what_is_written_is_read_back_equal(written: list[Question]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "questions.jsonl"
        write_questions(path, written)
        loaded = load_questions(path)
    assert loaded.format == "native"
    assert loaded.questions == written
    assert [question.extra for question in loaded.questions] == [question.extra for question in written]


def test_unknown_fields_are_kept_and_cannot_collide_with_ours(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "a.jsonl", native_record(note=1, extra={"hops": "many"}))
    (question,) = read_questions(path)
    assert question.extra == {"note": 1, "hops": "many"}
    write_questions(tmp_path / "b.jsonl", [question])
    (again,) = read_questions(tmp_path / "b.jsonl")
    assert again.hops is None
    assert again.extra == question.extra


def test_texts_are_not_touched(tmp_path: Path) -> None:
    text, answer = " who\u00a0was\u200b \u201cA&amp;B\u201d? \t", "George VI\n"
    (question,) = read_questions(
        json_lines(tmp_path / "a.jsonl", native_record(question=text, golden_answers=[answer, answer]))
    )
    assert question.text == text
    assert question.golden_answers == (answer, answer)


def test_half_a_surrogate_pair_survives(tmp_path: Path) -> None:
    question = Question("a", "flag \ud83c?", ("x",), "d")
    write_questions(tmp_path / "a.jsonl", [question])
    assert read_questions(tmp_path / "a.jsonl") == [question]


def test_a_dataset_keeps_its_spelling(tmp_path: Path) -> None:
    (question,) = read_questions(json_lines(tmp_path / "a.jsonl", native_record(dataset="hotpot")))
    assert question.dataset == "hotpot"


def test_two_questions_with_one_key_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(UserError, match="d/a"):
        write_questions(path, [Question("a", "q", (), "d"), Question("a", "r", (), "d")])
    with pytest.raises(UserError, match="no questions"):
        write_questions(path, [])
    assert list(tmp_path.iterdir()) == []


def test_one_text_may_have_several_records_with_other_answers(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "a.jsonl", native_record(id="1", golden_answers=["x"]), native_record(id="2", golden_answers=["y"])
    )
    assert [question.golden_answers for question in read_questions(path)] == [("x",), ("y",)]
