"""Runs one stage of a bench in a process of its own, and says how much memory it took."""

from __future__ import annotations

import multiprocessing
import resource
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KIB = 1024 / 1e6
"""MB in a KiB, in which the system counts."""
PEAK, OWN = "peak memory, MB", "of it not mapped, MB"


def in_own_process(stage: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    """Run a stage, a function of a module, in a fresh process; its figures and its memory."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_memory, stage, arguments).result()


@dataclass(frozen=True)
class Used:
    """What a step took."""

    seconds: float
    """Of the processor: the same however busy the machine is. What `prepare` took is not in it."""
    peak: float
    """MB that the process held at most, interpreter, libraries and what was prepared included."""

    def line(self, name: str, plain: Used | None = None) -> str:
        """The step as a row, beside a plain way to do the same."""
        ratio = "" if plain is None else f"   {plain.seconds / max(self.seconds, 1e-3):5.1f} times as quick as plain"
        return f"  {name:58s} {self.seconds:8.2f} s  {self.peak:7.0f} MB{ratio}"


def apart(prepare: Callable[[], Any], step: Callable[[Any], object]) -> Used:
    """Carry out `step` with what `prepare` gives, both in a fresh process. Both must be functions of a module."""
    figures = in_own_process(_timed, prepare, step)
    return Used(figures["seconds"], figures[PEAK])


def _timed(prepare: Callable[[], Any], step: Callable[[Any], object]) -> dict[str, float]:
    prepared = prepare()
    began = time.process_time()
    step(prepared)
    return {"seconds": time.process_time() - began}


def _with_memory(stage: Callable[..., dict[str, float]], arguments: tuple[Any, ...]) -> dict[str, float]:
    highest, over = _status("RssAnon"), threading.Event()

    def watch() -> None:
        nonlocal highest
        while not over.wait(0.05):
            highest = max(highest, _status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        figures = stage(*arguments)
    finally:
        over.set()
        watcher.join()
    # What getrusage says would hold what the parent process had when it began this one; Linux has a figure without it.
    peak = _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    return {**figures, PEAK: peak, **({OWN: highest} if highest else {})}


def _status(name: str) -> float:
    """A figure of this process in MB, see proc(5); 0 where there is no such file."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0.0
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(f"{name}:")) * KIB
