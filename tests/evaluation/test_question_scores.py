"""Differences between evaluations are paired by question and have every dataset count alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchparty.errors import UserError
from searchparty.evaluation.estimates import Estimate, estimate_means
from searchparty.evaluation.question_scores import (
    QuestionScores,
    columns,
    paired_differences,
    question_scores,
    read_question_scores,
)


def difference(ours: QuestionScores, theirs: QuestionScores) -> Estimate:
    return estimate_means(paired_differences(ours, theirs))["macro"]


def test_a_difference_is_the_macro_mean_over_datasets_of_differences_per_question() -> None:
    ours = {"nq": {"a": 1.0, "b": 0.5}, "world": {"c": 1.0}}
    theirs = {"nq": {"b": 0.0, "a": 0.75}, "world": {"c": 0.0}}
    found = difference(ours, theirs)
    assert found.value == pytest.approx((0.375 + 1.0) / 2)
    assert found.low <= found.value <= found.high


def test_pairing_takes_out_what_both_have_in_common() -> None:
    """Questions differ widely in difficulty; the same gain on each of them leaves nothing uncertain."""
    theirs = {"nq": {str(number): number / 50 for number in range(40)}}
    ours = {"nq": {key: value + 0.1 for key, value in theirs["nq"].items()}}
    found = difference(ours, theirs)
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))


def test_no_difference_has_an_interval_around_zero() -> None:
    ours = {"nq": {str(number): float(number % 2) for number in range(40)}}
    theirs = {"nq": {str(number): float((number + 1) % 2) for number in range(40)}}
    found = difference(ours, theirs)
    assert found.value == 0
    assert found.low < 0 < found.high


def test_columns_are_in_the_order_of_keys_whatever_the_order_of_rows() -> None:
    rows = [{"dataset": "nq", "question_key": key, "f1": score} for key, score in (("b", 0.25), ("a", 1.0), ("b", 0.75))]
    found = question_scores(enumerate(rows, start=1), "f1", Path("scores.jsonl"))
    assert columns(found)["nq"].tolist() == [1.0, 0.5]


@pytest.mark.parametrize("theirs", [{"nq": {"a": 1.0}}, {"world": {"a": 1.0, "b": 1.0}}, {}])
def test_evaluations_of_other_questions_are_not_paired(theirs: dict[str, dict[str, float]]) -> None:
    with pytest.raises(ValueError, match="asked other questions"):
        paired_differences({"nq": {"a": 1.0, "b": 0.0}}, theirs)


def test_the_score_of_a_question_is_the_mean_of_its_samples(tmp_path: Path) -> None:
    lines = [("nq", "nq/a", 1.0), ("nq", "nq/a", 0.0), ("world", "world/b", 1.0)]
    file = tmp_path / "scores.jsonl"
    rows = [{"dataset": dataset, "question_key": key, "exact_match": score} for dataset, key, score in lines]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_question_scores(file, "exact_match") == {"nq": {"nq/a": 0.5}, "world": {"world/b": 1.0}}


@pytest.mark.parametrize(
    "line", ["garbage", "[1]", '{"dataset": "nq"}', '{"dataset": "nq", "question_key": "a", "exact_match": null}']
)
def test_a_damaged_file_of_scores_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "scores.jsonl"
    file.write_text(json.dumps({"dataset": "nq", "question_key": "nq/a", "exact_match": 1.0}) + "\n" + line + "\n")
    with pytest.raises(UserError, match=r"scores\.jsonl:2: "):
        read_question_scores(file, "exact_match")


def test_a_missing_file_of_scores_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_question_scores(tmp_path / "scores.jsonl", "exact_match")
