"""Runs one stage of a bench in a process of its own, and says how much memory it took. Linux only."""

from __future__ import annotations

import multiprocessing
import resource
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any


def in_own_process(stage: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    """Run a stage in a fresh process; its figures and its peak memory in MB."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_peak_memory, stage, arguments).result()


def _with_peak_memory(stage: Callable[..., dict[str, float]], arguments: tuple[Any, ...]) -> dict[str, float]:
    highest, over = _own_memory(), threading.Event()

    def watch() -> None:
        nonlocal highest
        while not over.wait(0.05):
            highest = max(highest, _own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        figures = stage(*arguments)
    finally:
        over.set()
        watcher.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**figures, "peak memory, MB": peak, "of it not mapped, MB": highest}


def _own_memory() -> float:
    """Memory in MB that is no page of a file; Linux only, see proc(5)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) / 1024
