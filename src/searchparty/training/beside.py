"""Evaluations of a training run in processes of their own, beside the stage under way.

A small model's work is mostly on one thread, and an evaluation needs nothing of the stage that trains meanwhile: on a machine
with idle cores both go on at once. Each process carries out one stage (`training.evaluating`) as the main process would.

What ends when:

- The main process holds a pipe to each of the others. Ctrl-C, a kill, or an error in the main stage ends them at once; their
  episodes are kept, and `--resume` goes on from there. Until they have ended, they hold the run's lock too.
- An evaluation that fails is told at once. The stage under way and the other evaluations that have begun finish first, so that
  no work is lost; then the run ends with the failure, and no further stage begins.

Knows processes and stages, not what an evaluation is.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

import torch

from searchparty.config.load import dump_recipe
from searchparty.errors import UserError
from searchparty.training.listening import TrainListener
from searchparty.training.recipe import EvalStage, TrainRecipe
from searchparty.training.references import named_stages
from searchparty.training.run_directory import TrainDirectory

COMMAND = (sys.executable, "-P", "-m", "searchparty.training.evaluating")


@contextmanager
def shared_threads(jobs: int) -> Iterator[None]:
    """Divide torch's threads among the processes: together they have one for each that this one had alone.

    On two cores two processes with two threads each hinder one another more than they gain.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class EvaluationsBeside:
    """Up to `processes` evaluations of a run at once. Use as an async context; leaving it with an error ends the processes.

    Args:
        lock: descriptor of the run's lock, which the processes inherit.
    """

    def __init__(self, run: TrainDirectory, recipe: TrainRecipe, processes: int, lock: int, listener: TrainListener) -> None:
        self._run, self._recipe, self._processes = run, recipe, processes
        self._lock, self._listener = lock, listener
        self._waiting: dict[str, dict[str, Path]] = {}
        self._begun: dict[str, asyncio.Task[None]] = {}
        self._failures: list[str] = []

    async def __aenter__(self) -> EvaluationsBeside:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.clear()
        for task in self._begun.values():
            task.cancel()
        await asyncio.gather(*self._begun.values(), return_exceptions=True)

    def claim(self, name: str) -> bool:
        """Take a stage for the main process. False if it has begun beside."""
        self._waiting.pop(name, None)
        return name not in self._begun

    def offer(self, now: str, made: Mapping[str, Path]) -> None:
        """Begin the evaluations, other than the stage that the main process has now, whose models are all made.

        Those for which no process is free wait for one, or until the main process claims them.
        """
        for name, spec in self._recipe.stages.items():
            may_begin = isinstance(spec, EvalStage) and name != now and named_stages(spec) <= made.keys()
            if may_begin and name not in self._begun and not self._run.stage(name).result.is_file():
                self._waiting.setdefault(name, dict(made))
        self._fill()

    async def check(self) -> None:
        """Raises UserError if an evaluation has failed, after those that have begun are finished."""
        if self._failures:
            await self.finish()

    async def finish(self) -> None:
        """Wait for all that have begun. Raises UserError with the failures, each beginning with its stage."""
        await asyncio.gather(*self._begun.values())
        if self._failures:
            raise UserError(*self._failures)

    def _fill(self) -> None:
        while self._waiting and not self._failures and self._under_way() < self._processes:
            name = next(iter(self._waiting))
            self._begun[name] = asyncio.create_task(self._evaluate(name, self._waiting.pop(name)))

    def _under_way(self) -> int:
        return sum(not task.done() for task in self._begun.values())

    async def _evaluate(self, name: str, made: Mapping[str, Path]) -> None:
        started = time.monotonic()
        self._listener.on_beside(name, None)
        try:
            lines = await self._in_process(name, made)
        except OSError as error:
            lines = [f"no process could be started for it ({error.strerror}); use fewer --jobs"]
        if lines:
            failures = [line if line.startswith("stages.") else f"stages.{name}: {line}" for line in lines]
            self._failures += failures
            for line in failures:
                self._listener.on_message(f"{line} (what is under way finishes first)")
        else:
            self._listener.on_beside(name, time.monotonic() - started)
        asyncio.get_running_loop().call_soon(self._fill)

    async def _in_process(self, name: str, made: Mapping[str, Path]) -> list[str]:
        """Carry out a stage in a process. Returns what was wrong, a line each; none if it is done."""
        task = {
            "run": str(self._run.path),
            "recipe": dump_recipe(self._recipe),
            "stage": name,
            "made": {stage: str(model) for stage, model in made.items()},
            "threads": torch.get_num_threads(),
        }
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(self._lock,),
            process_group=0,  # Ctrl-C in a terminal goes to the main process alone
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        try:
            with suppress(ConnectionError):
                process.stdin.write(json.dumps(task).encode() + b"\n")
                await process.stdin.drain()
            output, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        said = errors.decode(errors="replace").strip().splitlines()
        for line in said:
            self._listener.on_message(f"{name}: {line}")
        return _faults(code, output, said)


def _faults(code: int, output: bytes, said: list[str]) -> list[str]:
    if code == 0:
        return []
    if code == 2 and output:
        return [str(line) for line in json.loads(output.splitlines()[-1])]
    if code < 0:
        name = signal.Signals(-code).name
        return [f"its process was ended by {name}, perhaps for want of memory; go on with --resume and fewer --jobs"]
    return [f"its process ended with exit code {code}: {said[-1] if said else 'it said nothing'}"]
