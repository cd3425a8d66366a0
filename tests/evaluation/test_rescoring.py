"""Scoring a finished run again: what is said about the scores that were there before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchparty.cli.main import main


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two questions; the script answers both with the same words."""
    rows = [{"id": name, "question": "which one?", "golden_answers": ["Spider-Man"], "dataset": name} for name in ("a", "b")]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["eval", "--team", "direct", "--model", "scripted:default", "--questions", str(file), "-o", str(tmp_path / "run")]
    assert main(words) == 0
    return tmp_path / "run"


def rewrite(run: Path, **changes: object) -> None:
    """As an earlier version might have left the scores; None takes a field away."""
    rows = [json.loads(line) | changes for line in (run / "scores.jsonl").read_text().splitlines()]
    kept = [{key: value for key, value in row.items() if key not in changes or value is not None} for row in rows]
    (run / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))


def rescored(run: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["score", str(run), *words]) == 0
    return capsys.readouterr().out


def test_the_same_scorer_changes_nothing(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing changed" in rescored(run, capsys)


def test_what_changed_is_said_by_score_and_by_episode(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(run, exact_match=1.0)
    out = rescored(run, capsys)
    assert "changed: exact_match is 0.0, was 100.0; another score in 2 episodes" in out
    assert "a/a #0: " in out and "[1.0] → " in out
    assert "nothing changed" in rescored(run, capsys)


def test_a_score_that_an_older_version_did_not_have_is_new(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(run, loose_exact_match=None)
    found = json.loads(rescored(run, capsys, "--json"))["changes"]
    assert [(one["field"], one["before"], one["episodes"]) for one in found["scores"]] == [("loose_exact_match", None, 0)]
    assert found["episodes"] == []


@pytest.mark.parametrize("left", ["", "garbage\n", '{"exact_match": 1.0}\n'])
def test_missing_or_damaged_scores_are_made_anew(run: Path, left: str, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "scores.jsonl").write_text(left)
    assert "scored for the first time" in rescored(run, capsys)
    (run / "scores.jsonl").unlink()
    assert "scored for the first time" in rescored(run, capsys)
