"""Turns of the vLLM engines of one process.

vLLM keeps the state of the step that it is in, and the memory of its CUDA graphs, once for a process; each engine's thread has
a CUDA stream of its own. So two engines may neither step at the same time nor have work on the card at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_TURN = threading.Lock()
_engines = 0


@contextmanager
def turn() -> Iterator[None]:
    """A block in which no other engine does anything. Where there is one, the card's work is done when the block ends."""
    with _TURN:
        yield
        if _engines > 1 and torch.cuda.is_available():
            torch.cuda.synchronize()


def engine_began() -> None:
    """Count an engine."""
    global _engines
    _engines += 1


def engine_ended() -> None:
    """Count it no more."""
    global _engines
    _engines -= 1
