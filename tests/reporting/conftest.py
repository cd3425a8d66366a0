"""Finished evaluations of scripted teams, and a finished training run, as a report reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from reporting_factories import write_evaluation, write_finished_training


@pytest.fixture
def evaluations(tmp_path: Path) -> list[Path]:
    """Two systems over the same four questions of two datasets."""
    return [write_evaluation(tmp_path / "first", right=1), write_evaluation(tmp_path / "second", right=3)]


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A training run with one rl stage and one evaluation of what it made."""
    return write_finished_training(tmp_path / "train")
