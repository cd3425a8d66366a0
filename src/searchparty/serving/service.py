"""Plays questions for many clients at once, within limits. Knows nothing of HTTP but how a refusal is said.

All questions share one stage, so that their calls meet in the batches of its models and its retriever, as in an evaluation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.staging import Stage
from searchparty.http_server.asgi import RequestError, bad_request, overloaded
from searchparty.questions.asked import asked_question
from searchparty.retrieval.types import Hit, Passage
from searchparty.serving.wire import Asked
from searchparty.teams.play import play
from searchparty.teams.workspace import Listener, SearchService, run_together


@dataclass(frozen=True)
class Limits:
    """What one server takes on.

    Attributes:
        playing: episodes at work at once.
        under_way: episodes accepted at once, those that wait for a place included; more are answered with 503.
        seconds: from the acceptance of a question until all its samples have ended; then it is answered with 504.
        body_bytes: of one request.
    """

    playing: int = 32
    under_way: int = 256
    seconds: float = 300.0
    body_bytes: int = 1024 * 1024


@dataclass(frozen=True)
class Attempt:
    """One episode, and the passages that its searches found, by id."""

    episode: Episode
    passages: Mapping[str, Passage]


class Service:
    """One team at work. Made and used in one event loop."""

    def __init__(
        self, stage: Stage, seed: int, limits: Limits, on_episode: Callable[[Episode], None] = lambda episode: None
    ) -> None:
        """Args:
        seed: of questions that name none.
        on_episode: called with every episode as it ends. May raise UserError.
        """
        self._stage = stage
        self._seed = seed
        self._limits = limits
        self._on_episode = on_episode
        self._places = asyncio.Semaphore(limits.playing)
        self._under_way = 0

    @property
    def team(self) -> str:
        """The name of the team."""
        return self._stage.team.name

    @property
    def under_way(self) -> int:
        """Episodes that were accepted and have not ended."""
        return self._under_way

    @contextmanager
    def accepted(self, asked: Asked) -> Iterator[None]:
        """Hold room for a question until the block ends. Raises RequestError 503 if there is none now, 400 if never."""
        if asked.samples > self._limits.under_way:
            raise bad_request(f"{asked.samples} samples are more than the {self._limits.under_way} that this server takes on")
        if self._under_way + asked.samples > self._limits.under_way:
            raise overloaded(f"{self._under_way} episodes are under way already")
        self._under_way += asked.samples
        try:
            yield
        finally:
            self._under_way -= asked.samples

    async def answer(self, asked: Asked, listener: Callable[[int], Listener | None] = lambda sample: None) -> list[Attempt]:
        """Play all samples of a question that was accepted.

        Args:
            listener: who hears of a sample as it is played.

        Raises:
            RequestError: 504 when the time is over, 500 if an episode can be neither played nor recorded.
        """
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await run_together([self._attempt(asked, sample, listener) for sample in range(asked.samples)])
        except TimeoutError:
            reason = f"not answered within {self._limits.seconds:g} s, the time limit of this server"
            raise RequestError(504, reason, "time_limit") from None
        except UserError as error:
            raise RequestError(500, "; ".join(error.lines), "internal") from error

    async def close(self) -> None:
        """Close models and retriever."""
        await self._stage.close()

    async def _attempt(self, asked: Asked, sample: int, listener: Callable[[int], Listener | None]) -> Attempt:
        stage, seed = self._stage, self._seed if asked.seed is None else asked.seed
        search = None if stage.retriever is None else _Remembering(stage.retriever)
        async with self._places:
            question = asked_question(asked.question, seed)
            episode = await play(stage.team, question, stage.cast, search, sample=sample, seed=seed, listener=listener(sample))
        self._on_episode(episode)
        return Attempt(episode, {} if search is None else search.found)


class _Remembering:
    """A retriever that keeps what it found: an episode records ids and titles only."""

    def __init__(self, retriever: SearchService) -> None:
        self._retriever = retriever
        self.found: dict[str, Passage] = {}

    async def search(self, query: str, k: int) -> list[Hit]:
        """See `SearchService.search`."""
        hits = await self._retriever.search(query, k)
        self.found.update((hit.passage.id, hit.passage) for hit in hits)
        return hits
