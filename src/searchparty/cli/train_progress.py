"""Progress of a training run in a terminal: a bar for the stage with the time left, one for the work under way, and a line for
every finished step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from searchparty.cli.console import make_console


class TrainProgress:
    """Listens to a run (`training.listening`). Use as a context. Without a terminal only the lines are printed."""

    def __init__(self) -> None:
        console = make_console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:24s}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._stage: TaskID | None = None
        self._work: TaskID | None = None
        self._steps = 0

    def __enter__(self) -> TrainProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_stage(self, name: str, kind: str, steps: int, done: int) -> None:
        """See `TrainListener`."""
        for task in list(self._progress.task_ids):
            self._progress.remove_task(task)
        self._steps = steps
        self._stage = self._progress.add_task(f"{name} ({kind})", total=steps, completed=done)
        self._work = self._progress.add_task("", total=None)
        after = f", going on after step {done}" if done else ""
        self._say(f"stage {name} ({kind}), {steps} steps{after}" if kind != "eval" else f"stage {name} (eval)")

    def on_work(self, what: str, done: int, total: int) -> None:
        """See `TrainListener`."""
        if self._work is not None:
            self._progress.update(self._work, description=f"  {what}", completed=done, total=total)

    def on_step(self, line: Mapping[str, Any]) -> None:
        """See `TrainListener`."""
        if self._stage is not None:
            self._progress.update(self._stage, completed=line["step"])
        self._say(describe_line(line, self._steps))

    def on_beside(self, name: str, seconds: float | None) -> None:
        """See `TrainListener`."""
        self._say(f"stage {name} (eval) beside it" + (": begins" if seconds is None else f": done in {seconds:.0f} s"))

    def on_message(self, text: str) -> None:
        """See `TrainListener`."""
        self._say(f"! {text}")

    def _say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)


def describe_line(line: Mapping[str, Any], steps: int) -> str:
    """A line of the metrics in a few words."""
    place = f"{line['stage']} {line['step']}/{steps}"
    seconds = f"{line['seconds']['total']:.1f} s"
    if line["kind"] == "development":
        return f"{place}  development EM {100 * line['score']:.1f} %  ({seconds})"
    if "loss" in line:
        return f"{place}  loss {line['loss']:.4f} nats a token  ({seconds})"
    everything = line["datasets"]["all"]
    parts = line["seconds"]
    shares = ", ".join(f"{name} {parts[name]:.1f}" for name in ("sampling", "retrieval", "scoring", "update"))
    return (
        f"{place}  EM {100 * everything['exact_match']:.1f} %, any candidate {100 * everything['any_candidate']:.1f} %, "
        f"searches {everything['searches']:.2f}, answered {100 * everything['answered']:.0f} %  ({seconds}: {shares})"
    )
