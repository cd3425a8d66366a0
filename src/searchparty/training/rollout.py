"""Letting a team play a batch of questions, so that on a CPU equal weights, seeds and concurrency give equal episodes to the
last bit, if the engine has nothing cached from before, as after `Policy.publish`.

Knows teams and engines; nothing of rewards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from searchparty.episodes.types import Episode
from searchparty.evaluation.staging import Stage
from searchparty.models.transformers_engine import TransformersEngine
from searchparty.questions.types import Question
from searchparty.retrieval.types import Hit
from searchparty.teams.play import play
from searchparty.teams.workspace import SearchService, run_together

OnEpisode = Callable[[int, int], None]
"""Told how many episodes are done, and how many there are."""

ROUNDS_TO_SETTLE = 32
"""Turns of the event loop after which nothing that a reply set off is still on its way; a chain of awaits takes about ten."""
SERVICE_ATTEMPTS = 3
"""How often an episode is played if a service fails."""


@dataclass
class WatchedRetriever:
    """A retriever that knows how many searches are under way, and for how long there was at least one."""

    inner: SearchService
    under_way: int = 0
    busy_seconds: float = 0.0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no search is under way."""
    _since: float = 0.0

    def __post_init__(self) -> None:
        self.idle.set()

    async def search(self, query: str, k: int) -> list[Hit]:
        """See `SearchService.search`."""
        if self.under_way == 0:
            self._since = time.perf_counter()
            self.idle.clear()
        self.under_way += 1
        try:
            return await self.inner.search(query, k)
        finally:
            self.under_way -= 1
            if self.under_way == 0:
                self.busy_seconds += time.perf_counter() - self._since
                self.idle.set()


@dataclass(frozen=True)
class RolledOut:
    """What came of a batch."""

    episodes: list[Episode]
    """In the order of questions, and of samples within a question."""
    seconds: float
    retrieval_seconds: float
    """Of these, how long at least one search was under way."""
    repeated: int
    """Episodes that were played again because a service had failed."""


async def roll_out(
    stage: Stage, questions: Sequence[Question], samples: int, *, seed: int, concurrency: int, on_episode: OnEpisode
) -> RolledOut:
    """Play every question `samples` times.

    An episode that a failing service ended is played again, at most twice; if it fails again it is returned as it is.
    """
    started = time.perf_counter()
    retriever = None if stage.retriever is None else WatchedRetriever(stage.retriever)
    attempts = [(question, sample) for question in questions for sample in range(samples)]
    episodes: dict[int, Episode] = {}
    waiting = iter(enumerate(attempts))
    repeated = 0

    async def worker() -> None:
        nonlocal repeated
        for place, (question, sample) in waiting:
            for attempt in range(SERVICE_ATTEMPTS):
                episode = await play(stage.team, question, stage.cast, retriever, sample=sample, seed=seed)
                if not episode.stop_reason.is_service_failure or attempt == SERVICE_ATTEMPTS - 1:
                    break
                repeated += 1
            episodes[place] = episode
            on_episode(len(episodes), len(attempts))

    with _in_step(stage, retriever):
        await run_together([worker() for _ in range(min(concurrency, len(attempts)))])
    return RolledOut(
        [episodes[place] for place in range(len(attempts))],
        time.perf_counter() - started,
        0.0 if retriever is None else retriever.busy_seconds,
        repeated,
    )


@contextmanager
def _in_step(stage: Stage, retriever: WatchedRetriever | None) -> Iterator[None]:
    """Let every in-process engine wait, before it goes on, until all episodes wait for it."""
    engines = {id(part.model.engine): part.model.engine for part in stage.cast.values()}
    own = [engine for engine in engines.values() if isinstance(engine, TransformersEngine)]
    if len(own) != 1:  # two engines would wait for each other
        yield
        return
    loop = asyncio.get_running_loop()

    async def settled() -> None:
        while True:
            for _ in range(ROUNDS_TO_SETTLE):
                await asyncio.sleep(0)
            if retriever is None or not retriever.under_way:
                return
            await retriever.idle.wait()

    own[0].settle = lambda: asyncio.run_coroutine_threadsafe(settled(), loop).result()
    try:
        yield
    finally:
        own[0].settle = None
