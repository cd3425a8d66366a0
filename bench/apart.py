"""A step in a process of its own, so that its peak of memory is its own too."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Used:
    """What a step took."""

    seconds: float
    """Of the processor: the same however busy the machine is. What `prepare` took is not in it."""
    peak: float
    """MiB that the process held at most, interpreter, libraries and what was prepared included."""

    def line(self, name: str, plain: Used | None = None) -> str:
        """The step as a row, beside a plain way to do the same."""
        ratio = "" if plain is None else f"   {plain.seconds / max(self.seconds, 1e-3):5.1f} times as quick as plain"
        return f"  {name:58s} {self.seconds:8.2f} s  {self.peak:7.0f} MiB{ratio}"


def apart(prepare: Callable[[], Any], step: Callable[[Any], object]) -> Used:
    """Carry out `step` with what `prepare` gives, both in a fresh process. Both must be functions of a module.

    RuntimeError if the process fails; its own message has been printed then.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(there, prepare, step))
    process.start()
    there.close()
    try:
        return Used(*here.recv())
    except EOFError:
        raise RuntimeError(f"{step} failed in its process") from None
    finally:
        process.join()


def _measure(answer: Connection, prepare: Callable[[], Any], step: Callable[[Any], object]) -> None:
    prepared = prepare()
    began = time.process_time()
    step(prepared)
    seconds = time.process_time() - began
    answer.send((seconds, _peak()))


def _peak() -> float:
    """MiB. What getrusage says would hold what the parent process had when it began this one; Linux has a figure without it."""
    status = Path("/proc/self/status")
    if status.is_file():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM:")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
