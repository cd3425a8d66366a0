"""Making an index folder so that it appears complete or not at all. Knows no retriever."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from searchparty.errors import UserError
from searchparty.retrieval.manifest import MANIFEST_FILE

Progress = Callable[[str, int, int | None], None]
"""Called while an index is built: what is being done, how many are done, and of how many (None: not known)."""


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Say nothing."""


@contextmanager
def new_index_folder(target: Path, overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder beside `target` to fill; it takes the name `target` when the block ends without an exception.

    With `overwrite` an existing index is replaced at that moment and not before. A folder that holds something else is never
    replaced.

    Raises:
        UserError: `target` exists and may not be replaced, or the disk refuses to be written.
    """
    _check_target(target, overwrite)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.building")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        _flush(temporary)
        _check_target(target, overwrite)
        _move(temporary, target)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error}); nothing was left behind") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_target(target: Path, overwrite: bool) -> None:
    if target.is_dir() and not any(target.iterdir()):
        return
    if not target.exists():
        return
    if not overwrite:
        raise UserError(f"{target}: already exists; choose another folder or add --overwrite")
    if not (target / MANIFEST_FILE).is_file():
        raise UserError(
            f"{target}: is not an index ({MANIFEST_FILE} is missing), so --overwrite leaves it alone; choose another folder"
        )


def _flush(folder: Path) -> None:
    """Have every file on the disk before the folder gets its name."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())


def _move(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`; an index that is there steps aside first and is deleted afterwards."""
    replaced = target.with_name(f".{target.name}.{os.getpid()}.replaced")
    if (target / MANIFEST_FILE).is_file():
        target.rename(replaced)
    temporary.rename(target)
    shutil.rmtree(replaced, ignore_errors=True)
