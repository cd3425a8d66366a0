"""Where the real sample files lie, and small files made on the spot."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "questions"


def native_record(**changes: object) -> dict[str, object]:
    """A small record of the native format."""
    return {"id": "a", "dataset": "d", "question": "who?", "golden_answers": ["me"], **changes}


def json_lines(path: Path, *records: object) -> Path:
    """Write the records as JSON lines."""
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def compressed(path: Path, source: Path) -> Path:
    """Write the content of `source` to `path`, gzip-compressed."""
    path.write_bytes(gzip.compress(source.read_bytes()))
    return path
