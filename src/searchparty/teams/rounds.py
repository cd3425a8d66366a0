"""Environment steps of a team whose agents branch: several lines of work that advance in synchronous rounds.

Knows who waits and nothing of what they do. Work is written as straight lines; whoever is about to act awaits `next`, and when
all lines that are under way wait, a step begins and they go on in the order of their paths. So neither the number of steps nor
the names and seeds of agents depend on whose model answers first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from searchparty.teams.agent import EpisodeStopped
from searchparty.teams.workspace import Workspace, run_together

T = TypeVar("T")
Path = tuple[int, ...]
"""Where a line of work lies: the numbers of its branches, from the first."""


class Rounds:
    """One for an episode. It begins with one line of work."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._under_way = 1
        self._waiting: list[tuple[Path, asyncio.Future[None]]] = []

    async def next(self, path: Path) -> None:
        """Wait until the next step begins. An agent must be created right after, before anything else is awaited.

        Raises:
            EpisodeStopped: STEP_LIMIT if the budget is used up.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((path, turn))
        self._look()
        await turn

    async def split(self, work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """Put several lines in the place of the one that calls this, and wait for all of them."""
        left = len(work)
        self._under_way += left - 1

        async def line(one: Coroutine[Any, Any, T]) -> T:
            nonlocal left
            result = await one
            left -= 1
            if left:  # the last line's place is taken over by the caller
                self._under_way -= 1
                self._look()
            return result

        return await run_together([line(one) for one in work])

    def _look(self) -> None:
        """See whether a step can begin, once whoever came last waits like the others: nobody goes on ahead of its turn."""
        asyncio.get_running_loop().call_soon(self._begin_if_all_wait)

    def _begin_if_all_wait(self) -> None:
        if len(self._waiting) < self._under_way:
            return
        turns, self._waiting = [turn for _, turn in sorted(self._waiting, key=lambda one: one[0])], []
        turns = [turn for turn in turns if not turn.done()]  # an episode that is being stopped cancels its lines
        try:
            self._workspace.begin_step()
        except EpisodeStopped as stop:
            for turn in turns:
                turn.set_exception(EpisodeStopped(stop.reason, stop.detail))
        else:
            for turn in turns:
                turn.set_result(None)
