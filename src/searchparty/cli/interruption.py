"""Running asynchronous work so that Ctrl-C ends it at once, whatever a model or a server is doing at that moment."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from types import FrameType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

SHOW_CURSOR = "\x1b[?25h"


def run_until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end and return the result; on SIGINT leave the process with exit code 130 without waiting for anything.

    Only for work that may be killed at any instant without loss, as a run may: it appends whole lines and renames whole files.
    """
    previous = signal.signal(signal.SIGINT, _leave)
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGINT, previous)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    if sys.stderr.isatty():
        sys.stderr.write(SHOW_CURSOR)
    print("searchparty: interrupted", file=sys.stderr, flush=True)
    os._exit(130)
