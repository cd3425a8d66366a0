"""The bundled sample: 200 real questions, and a small corpus that holds their evidence among distractors.

`ATTRIBUTION.md` beside the files names sources, licences and how they were chosen.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

_FOLDER = Path(str(files(__package__)))


def sample_questions() -> Path:
    """The questions, in the native format."""
    return _FOLDER / "questions.jsonl"


def sample_corpus() -> Path:
    """The passages, one `{"id", "title", "text"}` a line."""
    return _FOLDER / "corpus.jsonl"


def sample_attribution() -> Path:
    """Sources and licences of both."""
    return _FOLDER / "ATTRIBUTION.md"
