"""Several server processes on one port: a supervisor starts them, replaces one that dies, and stops them all together.

Each process has a listening socket of its own on the port (SO_REUSEPORT), so that the kernel spreads connections evenly. The
supervisor keeps every socket open: connections that come while a process is being replaced wait for its successor. The index is
memory-mapped, so that the processes share its pages. Knows nothing of retrieval.
"""

from __future__ import annotations

import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from searchparty.errors import UserError

_FINISHING_SECONDS = 35.0
"""A little more than a worker gives its running requests."""
_ROW_BYTES = 2
"""Of a worker's number in the pipe; written in one piece."""
_QUICK_DEATH_SECONDS = 5.0
_MOST_QUICK_DEATHS = 5
"""In a row, of one worker: it will not live, and the supervisor gives up."""
_USER_ERROR = 2
"""Exit code of a worker whose input is at fault: a successor would meet the same fault."""


@dataclass(frozen=True)
class Inheritance:
    """What a worker gets from its supervisor, as numbers of open files.

    Attributes:
        listener: the listening socket.
        memory: the file of shared numbers.
        lifeline: the reading end of a pipe that closes when the supervisor is gone.
        ready: the writing end of a pipe that takes the worker's number when it serves.
        row: the worker's number, from 0.
    """

    listener: int
    memory: int
    lifeline: int
    ready: int
    row: int

    @property
    def argument(self) -> str:
        """As one command-line argument."""
        return f"{self.listener},{self.memory},{self.lifeline},{self.ready},{self.row}"

    @classmethod
    def from_argument(cls, argument: str) -> Inheritance:
        """Back from the argument."""
        return cls(*map(int, argument.split(",")))

    def socket(self) -> socket.socket:
        """The listening socket."""
        return socket.socket(fileno=self.listener)

    def shared_memory(self) -> mmap.mmap:
        """The shared numbers."""
        return mmap.mmap(self.memory, 0)

    def say_ready(self) -> None:
        """Tell the supervisor that this worker serves."""
        os.write(self.ready, self.row.to_bytes(_ROW_BYTES, "little"))

    def watch(self, orphaned: Callable[[], None]) -> None:
        """Call back, in a thread, when the supervisor is gone."""

        def wait() -> None:
            os.read(self.lifeline, 1)
            orphaned()

        threading.Thread(target=wait, name="lifeline", daemon=True).start()


class Supervisor:
    """Runs one worker per listening socket until a signal comes. SIGTERM and SIGINT stop all; running requests are finished."""

    def __init__(
        self,
        command: Callable[[Inheritance], Sequence[str]],
        listeners: Sequence[socket.socket],
        memory: int,
        ready: Callable[[], None],
    ) -> None:
        """Args:
        command: what starts a worker that inherits this.
        listeners: one for each worker, all on one port.
        memory: bytes of memory that the workers share.
        ready: called once, when all workers serve.
        """
        self._command = command
        self._listeners = listeners
        self._memory = memory
        self._ready = ready
        self._lifeline, self._our_end = os.pipe()
        self._readiness, self._their_end = os.pipe()
        os.set_blocking(self._readiness, False)
        self._serving: set[int] = set()
        self._was_ready = False
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * len(listeners)
        self._started = [0.0] * len(listeners)
        self._quick_deaths = [0] * len(listeners)
        self._signal: int | None = None

    def run(self) -> int:
        """Start the workers and keep them going. The exit code: 0 after SIGTERM, 130 after SIGINT, 2 for a fault of the input.

        Raises:
            UserError: the workers die as soon as they have started.
        """
        previous = {number: signal.signal(number, self._take_note) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with tempfile.TemporaryFile() as memory:
                memory.truncate(self._memory)
                return self._keep_going(memory.fileno())
        finally:
            self._stop()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _keep_going(self, memory: int) -> int:
        for row in range(len(self._workers)):
            self._start(row, memory)
        while self._signal is None:
            time.sleep(0.05)
            self._hear_who_is_ready()
            for row, worker in enumerate(self._workers):
                if worker is not None and worker.poll() is not None and self._signal is None:
                    if worker.returncode == _USER_ERROR:
                        return _USER_ERROR
                    self._count_death(row, worker.returncode)
                    self._start(row, memory)
        return 130 if self._signal == signal.SIGINT else 0

    def _start(self, row: int, memory: int) -> None:
        files = (self._listeners[row].fileno(), memory, self._lifeline, self._their_end)
        # A session of its own: Ctrl-C at a terminal reaches the supervisor only, which then stops the workers in order.
        self._workers[row] = subprocess.Popen(self._command(Inheritance(*files, row)), pass_fds=files, start_new_session=True)
        self._started[row] = time.monotonic()

    def _hear_who_is_ready(self) -> None:
        with suppress(BlockingIOError):
            rows = os.read(self._readiness, 4096)
            self._serving.update(int.from_bytes(rows[at : at + _ROW_BYTES], "little") for at in range(0, len(rows), _ROW_BYTES))
        if not self._was_ready and len(self._serving) == len(self._workers):
            self._was_ready = True
            self._ready()

    def _count_death(self, row: int, code: int) -> None:
        self._serving.discard(row)
        lived = time.monotonic() - self._started[row]
        self._quick_deaths[row] = self._quick_deaths[row] + 1 if lived < _QUICK_DEATH_SECONDS else 0
        if self._quick_deaths[row] >= _MOST_QUICK_DEATHS:
            raise UserError(
                f"worker {row}: ended {_MOST_QUICK_DEATHS} times at once, last with code {code}; see what it printed"
            )
        print(f"worker {row} ended with code {code}; starting another", file=sys.stderr, flush=True)

    def _stop(self) -> None:
        living = [worker for worker in self._workers if worker is not None and worker.poll() is None]
        for worker in living:
            worker.terminate()
        deadline = time.monotonic() + _FINISHING_SECONDS
        for worker in living:
            try:
                worker.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        for end in (self._our_end, self._lifeline, self._readiness, self._their_end):
            os.close(end)

    def _take_note(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
