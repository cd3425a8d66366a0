"""A finished evaluation to be judged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reporting"))

from reporting_factories import write_evaluation

from searchparty.questions.types import Question

QUESTIONS = [
    Question("1", "What is the capital of France?", ("Paris",), "nq"),
    Question("2", "Who wrote Hamlet?", ("Shakespeare", "William Shakespeare"), "nq"),
    Question("3", "Where does the Vltava flow?", ("Prague",), "world"),
    Question("4", "Which river crosses Rome?", ("Tiber",), "world"),
    Question("5", "Which planet is red?", ("Mars",), "world"),
]


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """Five questions; only the first is right by exact match, the others were answered `the city of Prague, in Bohemia`."""
    return write_evaluation(tmp_path / "run", right=1, questions=QUESTIONS, said="the city of Prague, in Bohemia")
