"""The command `questions`, as a person types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from question_files import DATA, json_lines, native_record

from searchparty.cli.main import main
from searchparty.questions.reading import read_questions


def run(*words: object) -> int:
    return main(["questions", *map(str, words)])


@pytest.mark.parametrize(
    "name", ["popQA.rewritten.sample.tsv", "search_r1_nq_test.sample.parquet", "2wikimultihopqa_dev.sample.json"]
)
def test_a_converted_file_holds_the_same_questions(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out.jsonl"
    assert run("convert", DATA / name, "-o", out) == 0
    assert read_questions(out) == read_questions(DATA / name)
    assert f"{len(read_questions(out))} questions" in capsys.readouterr().out


def test_converting_says_what_it_skipped_and_what_has_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("convert", DATA / "odd.jsonl", "-o", tmp_path / "out.jsonl") == 0
    printed = capsys.readouterr()
    assert "26 questions (format cases" in printed.out
    assert "6 without golden answers, 7 records skipped" in printed.out
    assert printed.err.count("skipped") == 7
    assert f"{DATA / 'odd.jsonl'}:27: no question" in printed.err


def test_converting_takes_a_limit_a_format_and_a_dataset(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert (
        run("convert", DATA / "nq_open_dev.sample.jsonl", "--format", "nq_open", "--dataset", "mine", "--limit", 3, "-o", out)
        == 0
    )
    assert [question.key for question in read_questions(out)] == ["mine/mine_0", "mine/mine_1", "mine/mine_2"]


def test_a_file_may_be_converted_onto_itself(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "nq.jsonl", {"question": "q", "answer": ["a"]})
    assert run("convert", path, "-o", path) == 0
    assert read_questions(path)[0].key == "nq/nq_0"


def test_a_faulty_file_leaves_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = json_lines(tmp_path / "in.jsonl", native_record(), {"id": 1})
    assert run("convert", path, "-o", tmp_path / "out" / "out.jsonl") == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["in.jsonl"]
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}:2" in line


def test_showing_prints_text_answers_and_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", DATA / "popQA.rewritten.sample.tsv", "--limit", 1) == 0
    printed = capsys.readouterr().out
    assert "popqa/4222362" in printed
    assert "politician | political leader" in printed
    assert "John Mayne" not in printed


def test_control_characters_of_a_text_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = json_lines(tmp_path / "a.jsonl", native_record(question="who\x1b[2J\nam I?", golden_answers=["a\n"]))
    assert run("show", path) == 0
    printed = capsys.readouterr().out
    assert "who\\x1b[2J\\nam I?" in printed
    assert len(printed.splitlines()) == 4


def test_one_question_is_shown_by_id_or_key_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("nq_33", "nq/nq_33"):
        assert run("show", DATA / "nq_open_dev.sample.jsonl", "--id", name, "--json") == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert json.loads(line)["id"] == "nq_33"


def test_an_id_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", DATA / "nq_open_dev.sample.jsonl", "--id", "zz") == 2
    assert "'zz'" in capsys.readouterr().err


def test_overlap_counts_what_two_files_share(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = DATA / "nq_open_dev.sample.jsonl", DATA / "agentic_rag_nq_test.sample.parquet"
    assert run("overlap", first, second, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    shared = {q.text for q in read_questions(first)} & {q.text for q in read_questions(second)}
    assert shared
    assert found["texts"] >= len(shared)
    assert found["answers"]["conflict"] == 0
    assert run("overlap", first, second) == 0
    assert f"{found['texts']} texts shared" in capsys.readouterr().out


def test_the_sample_is_copied_out_and_never_over_something(tmp_path: Path) -> None:
    assert run("sample", "-o", tmp_path / "s") == 0
    assert len(read_questions(tmp_path / "s" / "questions.jsonl")) == 200
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"questions.jsonl", "corpus.jsonl", "ATTRIBUTION.md"}
    assert run("sample", "-o", tmp_path / "s") == 2


def test_parquet_without_its_package_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("show", DATA / "search_r1_nq_test.sample.parquet") == 2
    assert "pip install 'searchparty[parquet]'" in capsys.readouterr().err
