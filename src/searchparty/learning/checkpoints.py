"""A folder of checkpoints: written whole or not at all, checked before they are read, old ones removed.

    step-000004/  the files that the writer made, folders included, and manifest.json: their sizes and SHA-256, the step, the
                  score

Knows files and steps; must not know what is in the files. A checkpoint is made in a hidden folder beside the others, brought to
the disk and renamed, so that a process killed at any instant leaves the earlier ones and at most some hidden rubbish, which the
next save removes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from searchparty.errors import UserError
from searchparty.files import write_json

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """One whole checkpoint."""

    folder: Path
    step: int
    score: float | None
    """Development score, higher is better; None if none was measured."""


@dataclass(frozen=True)
class Found:
    """Where to resume."""

    checkpoint: Checkpoint | None
    """The latest whole checkpoint; None if there is none."""
    skipped: list[str]
    """One line for each later checkpoint that is not whole: which, what is wrong, what is used instead."""


class CheckpointFolder:
    """The checkpoints of one run in `path`: the last `keep_last` are kept, and the one with the best score.

    One process at a time may save.
    """

    def __init__(self, path: Path, *, keep_last: int = 2) -> None:
        if keep_last < 1:
            raise ValueError("keep_last must be at least 1")
        self.path = path
        self.keep_last = keep_last

    def save(self, step: int, write: Callable[[Path], None], score: float | None = None) -> Checkpoint:
        """Make the checkpoint of `step`: `write(folder)` puts files into an empty folder. One of the same step is replaced.

        Raises:
            UserError: if it cannot be written (disk full, no permission); earlier checkpoints are untouched.
        """
        final, temporary = self.path / f"step-{step:06d}", self.path / f".step-{step:06d}.new"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._remove_rubbish()
            temporary.mkdir()
            write(temporary)
            written = sorted(file for file in temporary.rglob("*") if file.is_file())
            files = {file.relative_to(temporary).as_posix(): _facts(file) for file in written}
            write_json(temporary / MANIFEST, {"format": FORMAT, "step": step, "score": score, "files": files})
            for path in (*written, temporary / MANIFEST, *(path for path in temporary.rglob("*") if path.is_dir())):
                _sync(path)
            _sync(temporary)
            if final.exists():
                self._remove(final)
            temporary.replace(final)
            _sync(self.path)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            reason = error.strerror or str(error)
            raise UserError(
                f"{final}: the checkpoint cannot be written ({reason}); earlier ones are kept. Make room and use --resume"
            ) from error
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        self._remove_old()
        return Checkpoint(final, step, score)

    def latest(self) -> Found:
        """The latest checkpoint whose files are all there and unchanged."""
        skipped: list[str] = []
        for folder in reversed(self._folders()):
            problem = check(folder)
            if problem is None:
                return Found(_read(folder), [f"{line}; going on from {folder.name}" for line in skipped])
            skipped.append(f"{folder}: {problem}")
        return Found(None, [f"{line}; no earlier checkpoint is whole" for line in skipped])

    def best(self) -> Checkpoint | None:
        """The checkpoint with the highest score, of equals the later; None if none has a score."""
        scored = [checkpoint for checkpoint in self._readable() if checkpoint.score is not None]
        return max(scored, key=lambda checkpoint: (checkpoint.score, checkpoint.step), default=None)

    def _folders(self) -> list[Path]:
        """Folders of checkpoints, whole or not, by step."""
        if not self.path.is_dir():
            return []
        named = [folder for folder in self.path.iterdir() if re.fullmatch(r"step-\d{6,}", folder.name)]
        return sorted(named, key=lambda folder: int(folder.name.removeprefix("step-")))

    def _readable(self) -> list[Checkpoint]:
        checkpoints = []
        for folder in self._folders():
            try:
                checkpoints.append(_read(folder))
            except (OSError, ValueError, KeyError, TypeError):
                continue
        return checkpoints

    def _remove_old(self) -> None:
        best = self.best()
        for folder in self._folders()[: -self.keep_last]:
            if best is None or folder != best.folder:
                self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Take the name away first: a removal that is broken off must not leave half a checkpoint under its name."""
        hidden = folder.with_name(f".{folder.name}.old")
        folder.replace(hidden)
        shutil.rmtree(hidden, ignore_errors=True)

    def _remove_rubbish(self) -> None:
        for folder in self.path.glob(".step-*"):
            shutil.rmtree(folder, ignore_errors=True)


def check(folder: Path) -> str | None:
    """What is wrong with a checkpoint, in a few words; None if it is whole."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT:
            return f"has format {manifest['format']}, this version reads {FORMAT}"
        for name, facts in manifest["files"].items():
            file = folder / name
            if not file.is_file():
                return f"{name} is missing"
            if file.stat().st_size != facts["bytes"]:
                return f"{name} is cut short or damaged ({file.stat().st_size} bytes instead of {facts['bytes']})"
            if _facts(file) != facts:
                return f"{name} is damaged (its SHA-256 is not that of the manifest)"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"has no readable {MANIFEST}"
    return None


def _read(folder: Path) -> Checkpoint:
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    score = manifest["score"]
    return Checkpoint(folder, int(manifest["step"]), None if score is None else float(score))


def _facts(file: Path) -> dict[str, int | str]:
    with file.open("rb") as stream:
        return {"bytes": file.stat().st_size, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
