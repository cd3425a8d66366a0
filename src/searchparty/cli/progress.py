"""Progress of long work on standard error: a bar in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchparty.episodes.types import Episode

SECONDS_BETWEEN_LINES = 15.0


class EpisodeProgress:
    """Counts episodes, answers and failures, and tells the time left."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from searchparty.cli.console import make_console

        console = make_console(stderr=True)
        self._in_terminal = console.is_terminal
        self._bar = Progress(
            TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
            TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console, disable=not self._in_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("episodes", total=None, note="")
        self._failed = 0
        self._started = self._last_line = time.monotonic()

    def on_episode(self, episode: Episode, done: int, asked: int) -> None:
        """Show that one more episode has ended."""
        self._failed += episode.stop_reason.is_service_failure
        note = f"{self._failed} ended by a failing service" if self._failed else ""
        self._bar.update(self._task, completed=done, total=asked, note=note)
        now = time.monotonic()
        if not self._in_terminal and (done == asked or now - self._last_line > SECONDS_BETWEEN_LINES):
            self._last_line = now
            print(f"{done}/{asked} episodes, {now - self._started:.0f} s {note}".rstrip(), file=sys.stderr, flush=True)

    def __enter__(self) -> EpisodeProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()
