"""Episodes on disk: JSON lines, one whole episode a line, appended and never changed.

A line is written with one call, so a process killed at any instant leaves whole lines and at most one torn last line, which the
writer removes when it opens the file again (contract 11). The reader refuses whatever this version does not know.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from searchparty.episodes.types import (
    SCHEMA_VERSION,
    Call,
    Episode,
    ExecutorUse,
    PlannerTurn,
    Retrieval,
    RetrievedPassage,
    Span,
    Transcript,
)
from searchparty.errors import Failure, UserError

for _record in (Failure, Span, Call, Transcript, RetrievedPassage, Retrieval, ExecutorUse, PlannerTurn, Episode):
    setattr(_record, "__pydantic_config__", ConfigDict(extra="forbid"))  # noqa: B010
_EPISODE = TypeAdapter(Episode)


class EpisodeWriter:
    """Appends episodes to a file, which it locks. Opening an existing file first removes a torn last line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("ab+", buffering=0)
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror}); check its permissions") from None
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._stream.close()
            raise UserError(f"{path}: another process is writing this run; wait for it or stop it") from None
        self._drop_torn_line()

    def _drop_torn_line(self) -> None:
        end = self._stream.seek(0, os.SEEK_END)
        position = end
        while position > 0:
            start = max(0, position - 65536)
            self._stream.seek(start)
            newline = self._stream.read(position - start).rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position != end:
            self._stream.truncate(position)

    def write(self, episode: Episode) -> None:
        """Append one episode. Raises UserError if the disk is full; the file then ends with its last whole line."""
        line = orjson.dumps(episode, option=orjson.OPT_APPEND_NEWLINE)
        try:
            written = self._stream.write(line)
            if written != len(line):
                raise OSError("only a part of the line was written")
        except OSError as error:
            self._drop_torn_line()
            raise UserError(f"{self._path}: cannot be written ({error}); free some space and resume the run") from error

    def close(self) -> None:
        """Flush to disk and close."""
        if not self._stream.closed:
            os.fsync(self._stream.fileno())
            self._stream.close()

    def __enter__(self) -> EpisodeWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def read_episodes(path: Path, *, allow_torn_end: bool = False) -> Iterator[Episode]:
    """Yield the episodes of a file in the order in which they were written.

    Args:
        allow_torn_end: pass over a last line without line end, as a killed process leaves it.

    Raises:
        UserError: naming the line, for another schema version, an unknown or missing field, a torn line.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file; is this a run directory?")
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                if allow_torn_end:
                    return
                raise UserError(f"{path}:{number}: the line is cut short; resume the run to repair it")
            yield _parse(line, f"{path}:{number}")


def _parse(line: bytes, where: str) -> Episode:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UserError(f"{where}: not valid JSON ({error}); the file is damaged") from None
    version = record.get("schema_version") if isinstance(record, dict) else None
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{where}: schema version {version}, this searchparty reads {SCHEMA_VERSION}; install the one that wrote it"
        )
    try:
        episode = _EPISODE.validate_python(record, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where}: {place}: {first['msg']}; the file is damaged or of another version") from None
    if episode.answering_agent is not None and episode.answering_agent not in [agent.agent for agent in episode.agents]:
        raise UserError(f"{where}: answering_agent: the episode has no agent {episode.answering_agent}; the file is damaged")
    return episode
