"""Each fault of a question file gives one line: the file, the line, what is wrong and what to do."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from question_files import DATA, json_lines, native_record

from searchparty.errors import UserError
from searchparty.questions.reading import read_questions


def fault_of(path: Path, **options: str) -> str:
    with pytest.raises(UserError) as fault:
        read_questions(path, **options)
    (line,) = fault.value.lines
    assert str(path) in line
    assert "\n" not in line
    return line


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "no such file" in fault_of(tmp_path / "none.jsonl")


@pytest.mark.parametrize("content", ["", " \n\n", "\ufeff\n", "[]"])
def test_a_file_without_records_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_text(content, encoding="utf-8")
    fault_of(path)


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "x", "dataset"',
        "[1]",
        "{}",
        json.dumps(native_record(question=" ")),
        json.dumps(native_record(golden_answers="x")),
    ],
    ids=["cut off", "no object", "no fields", "blank question", "answers as text"],
)
def test_a_malformed_line_17_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = [json.dumps(native_record(id=str(number))) for number in range(30)]
    path.write_text("\n".join([*good[:16], line, *good[16:]]))
    assert fault_of(path).startswith(f"{path}:17: ")


@pytest.mark.parametrize(
    "wrong",
    [
        {"golden_answers": [1]},
        {"golden_answers": None},
        {"id": None},
        {"id": 1.5},
        {"hops": "2"},
        {"hops": True},
        {"extra": []},
    ],
    ids=str,
)
def test_a_field_of_the_wrong_kind_is_named(wrong: dict[str, object], tmp_path: Path) -> None:
    assert f"'{next(iter(wrong))}'" in fault_of(json_lines(tmp_path / "a.jsonl", native_record(id="1"), native_record(**wrong)))


def test_two_records_with_one_key_are_refused_with_both_lines(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "a.jsonl", native_record(id="1"), native_record(), native_record(id="2"), native_record(question="r?")
    )
    line = fault_of(path)
    assert line.startswith(f"{path}:4: d/a ")
    assert "at 2" in line


def test_the_native_format_refuses_even_an_equal_repeat(tmp_path: Path) -> None:
    assert ":2: d/a" in fault_of(json_lines(tmp_path / "a.jsonl", native_record(), native_record()))


def test_another_format_refuses_unequal_records_with_one_id(tmp_path: Path) -> None:
    record = {"id": "test_0", "question": "q?", "golden_answers": ["a"]}
    path = json_lines(tmp_path / "a.jsonl", record, {**record, "metadata": {"x": 1}})
    assert ":2: flashrag/test_0" in fault_of(path)


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    line = fault_of(json_lines(tmp_path / "a.jsonl", {"query": "q?", "passages": []}))
    assert "query, passages" in line
    assert "--format" in line
    assert "hotpotqa" in line
    (tmp_path / "notes.txt").write_text("just a text\nof two lines\n")
    assert "unknown format" in fault_of(tmp_path / "notes.txt")


def test_a_mistyped_format_names_the_nearest() -> None:
    assert "did you mean flashrag?" in fault_of(DATA / "flashrag_nq_test.sample.jsonl", format="flashrg")


def test_a_forced_format_that_is_never_text_is_refused_for_text() -> None:
    assert "never delimited text" in fault_of(DATA / "bamboogle.csv", format="musique")


def test_a_forced_format_that_does_not_fit_names_the_first_record() -> None:
    path = DATA / "nq_open_dev.sample.jsonl"
    assert fault_of(path, format="ircot").startswith(f"{path}:1: the field 'question_text'")


def test_a_row_with_too_few_cells_is_named(tmp_path: Path) -> None:
    path = tmp_path / "dpr.tsv"
    path.write_text("who?\t['a']\nwho else?\n")
    assert fault_of(path).startswith(f"{path}:2: 1 cells where 2")


def test_a_cell_that_is_no_list_is_never_run(tmp_path: Path) -> None:
    path = tmp_path / "dpr.tsv"
    path.write_text("who?\t['a']\nwho else?\t[__import__('os').getcwd()]\n")
    assert fault_of(path).startswith(f"{path}:2: the second cell")


def test_a_quote_that_is_never_closed_is_named_by_the_row_it_opens_in(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text('Question,Answer\nq1?,a\n"q2?,b\nq3?,c\n')
    assert fault_of(path).startswith(f"{path}:3: ")


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes("Question,Answer\nwho was it?,Böll\n".encode("latin-1"))
    assert "not UTF-8" in fault_of(path)


def test_a_json_array_that_is_cut_off_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[\n{"question": "q?", "answer": "a"},\n{"question":')
    assert fault_of(path).startswith(f"{path}:3: not valid JSON")


def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress((DATA / "nq_open_dev.sample.jsonl").read_bytes())
    for name, content in {"tail.gz": whole[:-20], "head.gz": whole[:5]}.items():
        (tmp_path / name).write_bytes(content)
        assert "damaged or cut short" in fault_of(tmp_path / name)


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes((DATA / "search_r1_nq_test.sample.parquet").read_bytes()[:5000])
    assert "parquet file is damaged" in fault_of(tmp_path / "a.parquet")


@pytest.mark.parametrize("key", ["id", "dataset"])
def test_half_of_a_surrogate_pair_in_what_makes_the_key_is_refused(tmp_path: Path, key: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**native_record(), key: "q\ud800"}) + "\n")
    assert "half of a surrogate pair ('q\\ud800')" in fault_of(path)
