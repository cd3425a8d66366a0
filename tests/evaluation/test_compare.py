"""Comparing finished evaluations on the command line and as a library call."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from searchparty.cli.main import main

QUESTIONS = [{"id": str(number), "question": f"what is {number}?", "golden_answers": ["Paris"]} for number in range(6)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two evaluations of equal scripts over the same questions, one over fewer, one with another scorer."""
    folder = tmp_path_factory.mktemp("runs")
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(row | {"dataset": "some"}) + "\n" for row in QUESTIONS))
    words = ["eval", "--team", "direct", "--model", "scripted:default", "--questions", str(file)]
    assert main([*words, "-o", str(folder / "a")]) == 0
    assert main([*words, "-o", str(folder / "b")]) == 0
    assert main([*words, "limit=4", "-o", str(folder / "fewer")]) == 0
    assert main([*words, "scorer=triviaqa", "-o", str(folder / "other")]) == 0
    change_scores(folder / "b", right=4)
    return folder


def change_scores(run: Path, right: int) -> None:
    """As if the first so many questions had been answered."""
    rows = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    for number, row in enumerate(sorted(rows, key=lambda row: row["question_key"])):
        row["exact_match"] = float(number < right)
    (run / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> dict:  # type: ignore[type-arg]
    capsys.readouterr()
    assert main(["compare", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_a_run_beside_itself_differs_by_nothing(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = compared(capsys, str(runs / "a"), str(runs / "a"))["runs"][1]
    assert row["differences"]["macro"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert (row["wins"], row["ties"], row["losses"], row["p"]) == (0, 6, 0, 1.0)
    assert row["detectable"] is None


def test_wins_losses_and_the_exact_test_are_by_question(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = compared(capsys, str(runs / "a"), str(runs / "b"), "--flips", "2")["runs"]
    before = first[0]["means"]["macro"]["value"]
    row = first[1]
    assert row["wins"] - row["losses"] == round(6 * (4 / 6 - before))
    assert row["test"] == "McNemar" and len(row["flips"]) == 2
    assert row["differences"]["some"]["value"] == pytest.approx(4 / 6 - before)


def test_the_primary_comparison_is_declared_and_the_others_are_corrected(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(runs / name) for name in ("a", "b", "b", "a")]
    second, third, fourth = compared(capsys, *names)["runs"][1:]
    assert [row["primary"] for row in (second, third, fourth)] == [True, False, False]
    assert second["adjusted_p"] == second["p"] < 1 and third["adjusted_p"] == min(1, 2 * third["p"])
    (runs / "c").symlink_to(runs / "b")
    declared = compared(capsys, *names[:3], str(runs / "c"), "--primary", str(runs / "c"))["runs"]
    assert [row["primary"] for row in declared] == [False, False, False, True]
    assert main(["compare", *names[:2], "--primary", str(runs / "a")]) == 2


def test_cost_in_usd_stands_beside_quality_where_the_run_has_prices(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("dated: 2026-01-01\nsource: a test\nmodels: {'scripted:default': {input: 1.0, output: 3.0}}\n")
    words = ["eval", "--team", "direct", "--model", "scripted:default", "--questions", str(runs / "questions.jsonl")]
    assert main([*words, f"prices={prices}", "-o", str(tmp_path / "priced")]) == 0
    first, priced = compared(capsys, str(runs / "a"), str(tmp_path / "priced"))["runs"]
    assert first["usd"] is None
    assert priced["usd"] == pytest.approx((priced["input_tokens"] + 3 * priced["output_tokens"]) / 1e6)
    low, high = priced["intervals"]["usd"]
    assert low <= priced["usd"] + 1e-12 and priced["usd"] <= high + 1e-12
    assert {"searches", "input_tokens", "output_tokens"} <= priced["intervals"].keys() > first["intervals"].keys()


def test_runs_over_other_questions_are_refused_with_what_is_missing_where(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(runs / "a"), str(runs / "fewer")]) == 2
    error = capsys.readouterr().err
    assert "fewer: lacks 2 questions of the others: some/" in error


def test_runs_of_other_settings_are_compared_only_by_force_and_say_so(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs / "a"), str(runs / "other")]) == 2
    assert "scorer differs" in capsys.readouterr().err
    assert "scorer differs" in compared(capsys, str(runs / "a"), str(runs / "other"), "--force")["differs"][0]


@pytest.mark.parametrize(
    ("words", "fault"),
    [(["a"], "at least two"), (["a", "nowhere"], "no run here"), (["a", "b", "--metric", "elo"], "unknown; there are")],
)
def test_what_cannot_be_compared_is_one_line(
    runs: Path, capsys: pytest.CaptureFixture[str], words: list[str], fault: str
) -> None:
    assert main(["compare", *(str(runs / word) if len(word) < 8 and "-" not in word else word for word in words)]) == 2
    assert fault in capsys.readouterr().err


def test_what_is_compared_first_is_what_the_protocol_of_the_first_run_says(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared(capsys, str(runs / "a"), str(runs / "b"))["metric"] == "exact_match"
    file = runs / "a" / "environment.json"
    before = file.read_text()
    protocol = {"name": "p", "version": 1, "document": {"metric": "f1"}, "departures": []}
    try:
        file.write_text(json.dumps({**json.loads(before), "protocol": protocol}))
        assert compared(capsys, str(runs / "a"), str(runs / "b"), "--force")["metric"] == "f1"
    finally:
        file.write_text(before)


def asked(folder: Path, name: str, **changes: object) -> Path:
    """A run over the same ids, with some fields of every question changed."""
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps({**row, "dataset": "some", **changes}) + "\n" for row in QUESTIONS))
    words = ["eval", "--team", "direct", "--model", "scripted:default", "--questions", str(file)]
    assert main([*words, "-o", str(folder / name)]) == 0
    return folder / name


def test_other_texts_under_the_same_ids_are_other_questions(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = asked(tmp_path, "other-texts", question="who is it?")
    assert main(["compare", str(runs / "a"), str(other), "--force"]) == 2
    error = capsys.readouterr().err
    assert "other-texts: asked something else than" in error and "under 6 keys: some/0, some/1, some/2 and 3 more" in error


def test_other_golden_answers_of_the_same_questions_are_another_setting(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = asked(tmp_path, "other-golds", golden_answers=["Lyon"])
    assert main(["compare", str(runs / "a"), str(other)]) == 2
    assert "golden answers differ" in capsys.readouterr().err
    assert "for 6 questions" in compared(capsys, str(runs / "a"), str(other), "--force")["differs"][0]
    same = asked(tmp_path, "same", split="dev")
    assert compared(capsys, str(runs / "a"), str(same))["differs"] == []


def test_a_question_under_another_dataset_is_missing_in_both(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "a", tmp_path / "moved")
    file = tmp_path / "moved" / "scores.jsonl"
    file.write_text(file.read_text().replace('"dataset":"some"', '"dataset":"none"', 1))
    assert main(["compare", str(runs / "a"), str(tmp_path / "moved")]) == 2
    error = capsys.readouterr().err
    assert "a: lacks 1 questions" in error and "moved: lacks 1 questions" in error


def damaged(run: Path, file: str, before: str, after: str) -> None:
    text = (run / file).read_text()
    assert before in text
    (run / file).write_text(text.replace(before, after))


@pytest.mark.parametrize(
    ("file", "before", "after", "fault"),
    [
        ("scores.jsonl", '"exact_match":0.0', '"exact_match":NaN', "nan is no score.*make the file anew: searchparty score"),
        ("summary.json", '"service_failures"', '"failures_of_services"', "make it anew: searchparty score"),
        ("environment.json", '"protocol": null', '"protocol": "p"', "written by another version"),
        ("environment.json", '"questions": {', '"questions": 3, "old": {', "written by another version"),
    ],
)
def test_files_of_another_version_are_refused_in_a_line_that_says_what_to_do(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, before: str, after: str, fault: str
) -> None:
    shutil.copytree(runs / "a", tmp_path / "old")
    damaged(tmp_path / "old", file, before, after)
    assert main(["compare", str(tmp_path / "old"), str(runs / "b")]) == 2
    assert re.search(fault, capsys.readouterr().err)


def test_a_protocol_of_which_pieces_are_missing_differs_from_none_and_is_compared_by_force(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "a", tmp_path / "old")
    damaged(tmp_path / "old", "environment.json", '"protocol": null', '"protocol": {"name": "p"}')
    assert main(["compare", str(tmp_path / "old"), str(runs / "b")]) == 2
    assert "protocol differs" in capsys.readouterr().err
    assert compared(capsys, str(tmp_path / "old"), str(runs / "b"), "--force")["metric"] == "exact_match"
    assert main(["score", str(tmp_path / "old")]) == 0


def test_flips_are_lines_of_a_readable_length_whatever_was_answered(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "b", tmp_path / "long")
    file = tmp_path / "long" / "scores.jsonl"
    rows = [{**json.loads(line), "answer": "Paris\n" * 5_000} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    assert main(["compare", str(runs / "a"), str(tmp_path / "long"), "--flips", "2"]) == 0
    shown = capsys.readouterr().out
    assert "Paris Paris" in shown and len(shown) < 5_000
    with pytest.raises(SystemExit):
        main(["compare", str(runs / "a"), str(runs / "b"), "--flips", "-2"])


def test_an_unfinished_run_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (runs / "a").iterdir():
        if file.is_file() and file.name != "scores.jsonl":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    assert main(["compare", str(runs / "a"), str(tmp_path)]) == 2
    assert "was not finished" in capsys.readouterr().err
