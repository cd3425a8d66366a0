"""Who hears of a training run while it is under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class TrainListener(Protocol):
    """Shows a run to a person. Nothing that it does changes the run."""

    def on_stage(self, name: str, kind: str, steps: int, done: int) -> None:
        """A stage begins, or goes on after `done` of its steps."""

    def on_work(self, what: str, done: int, total: int) -> None:
        """A part of the step under way, such as sampling."""

    def on_step(self, line: Mapping[str, Any]) -> None:
        """A step or a development evaluation is finished; the line is that of `metrics.jsonl`."""

    def on_beside(self, name: str, seconds: float | None) -> None:
        """An evaluation begins in a process of its own (`seconds` is None), or was finished there after so long."""

    def on_message(self, text: str) -> None:
        """Something that a person should read."""


class SilentTrainListener:
    """Hears and says nothing."""

    def on_stage(self, name: str, kind: str, steps: int, done: int) -> None:
        """Ignore it."""

    def on_work(self, what: str, done: int, total: int) -> None:
        """Ignore it."""

    def on_step(self, line: Mapping[str, Any]) -> None:
        """Ignore it."""

    def on_beside(self, name: str, seconds: float | None) -> None:
        """Ignore it."""

    def on_message(self, text: str) -> None:
        """Ignore it."""


class TrainingStopped(Exception):
    """An alarm or a fault of the numbers ended the run; its state is kept as the message says."""
