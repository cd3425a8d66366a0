"""Reading and writing files so that nothing is half-written and every fault names its line.

Knows nothing of questions, passages or episodes.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar, cast

from searchparty.errors import UserError

T = TypeVar("T")


def require_file(path: Path) -> Path:
    """Return `path` if it is a readable, non-empty file. Raises UserError otherwise."""
    if not path.exists():
        raise UserError(f"{path}: no such file; check the path")
    if path.is_dir():
        raise UserError(f"{path}: is a folder, a file is needed")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path}: may not be read; check its permissions")
    if path.stat().st_size == 0:
        raise UserError(f"{path}: the file is empty; was its download or conversion cut off?")
    return path


def open_bytes(path: Path) -> BinaryIO:
    """Open a plain or gzip-compressed file for reading; compression is found by content, not by name."""
    with require_file(path).open("rb") as probe:
        is_gzip = probe.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if is_gzip else path.open("rb")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield `(line number from 1, text without line end)` for each non-blank line; a byte order mark is dropped.

    Raises UserError with file and line for bytes that are not UTF-8 and for a compressed file that is cut short.
    """
    number = 0
    try:
        with open_bytes(path) as stream:
            for number, raw in enumerate(stream, start=1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise UserError(f"{path}:{number}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
                if line.strip():
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}:{number + 1}: the compressed file is damaged or cut short ({error}); fetch it again") from None


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield `(line number, object)` of a JSON-lines file. Raises UserError naming the line that is not a JSON object."""
    for number, line in read_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: not valid JSON ({error}); repair or remove this line") from None
        if not isinstance(record, dict):
            raise UserError(f"{path}:{number}: a JSON object is needed on each line, found {type(record).__name__}")
        yield number, record


@contextmanager
def atomic_output(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; it takes the name `path` only when the block ends without an exception."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open(mode, encoding=None if "b" in mode else "utf-8", newline=None if "b" in mode else "\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "; make room and go on with --resume, or begin again" if full else ""
        raise UserError(f"{path}: cannot be written ({error.strerror}); nothing was left behind{advice}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    with atomic_output(path) as stream:
        json.dump(value, stream, ensure_ascii=False, indent=2)
        stream.write("\n")


def read_json(path: Path, check: Callable[[Any], T]) -> T:
    """Read a JSON file and pass it through `check`, which raises ValueError or KeyError for a wrong form."""
    try:
        with open_bytes(path) as stream:
            return check(json.load(stream))
    except (ValueError, KeyError, TypeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"{path}: not in the expected form ({told}); was it edited, or written by another version?") from None


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
