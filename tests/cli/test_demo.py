"""The demo from beginning to end, with rules in place of the model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from searchparty.evaluation.run_directory import RunDirectory


def test_the_demo_runs_four_teams_and_says_where_everything_is_and_may_be_repeated(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "searchparty.demo_teams",
        "--output",
        str(tmp_path / "demo"),
        "--model",
        "scripted:default",
        "--questions",
        "6",
    ]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        for team in ("direct", "rag", "chained", "hierarchical"):
            assert len(RunDirectory(tmp_path / "demo" / team).latest(lambda episode: episode)) == 6
            assert f"--team {team}" in done.stdout
        assert "quality in %, macro" in done.stdout
        assert "wrote ▶" in done.stdout
