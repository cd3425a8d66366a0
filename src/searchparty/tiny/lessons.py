"""What the tiny policy learns from: episodes of imperfect experts in many small worlds, over the policy's own tokens.

Each world has its own names and facts, so that what carries over from one to the next is how to play, not what is true. Knows
worlds, teams and experts; nothing of weights.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from searchparty.episodes.types import Episode
from searchparty.models.chatml import ChatMLChat
from searchparty.models.loading import Model
from searchparty.models.scripted import ScriptedEngine
from searchparty.models.types import Sampling, Tokenizer
from searchparty.questions.types import Question
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.bm25 import BM25Index
from searchparty.teams.cast import Part
from searchparty.teams.play import play
from searchparty.teams.registry import BUILT_IN
from searchparty.teams.workspace import run_together
from searchparty.world import Expert, Faults, World, WorldParameters, make_world, write_world
from searchparty.world.prompting import world_prompt
from searchparty.world.storing import CORPUS_FILE

EPISODES_AT_ONCE = 64


@dataclass(frozen=True)
class Lesson:
    """A number of worlds of one kind, and who plays in them."""

    worlds: int
    first_seed: int
    """Seed of the first world; the others follow."""
    hops: tuple[float, float, float, float]
    shares: Mapping[str, float]
    """Team to the share of a world's questions that it plays."""
    faults: tuple[Faults, ...]
    """Of the experts; the worlds take them in turn."""
    entities: int = 150
    questions: int = 100


def play_lesson(lesson: Lesson, tokenizer: Tokenizer) -> Iterator[list[Episode]]:
    """The episodes of one world after another. Equal lessons give equal token ids."""
    for number in range(lesson.worlds):
        parameters = WorldParameters(
            seed=lesson.first_seed + number, entities=lesson.entities, train=lesson.questions, dev=1, test=1, hops=lesson.hops
        )
        world = make_world(parameters)
        script = Expert(world, lesson.faults[number % len(lesson.faults)])
        expert = Model("expert", "expert", ScriptedEngine(script, tokenizer), ChatMLChat(tokenizer), None)
        questions = world.questions["train"]
        yield play_teams(
            expert, world, {team: questions[: int(share * len(questions))] for team, share in lesson.shares.items()},
            seed=parameters.seed,
        )  # fmt: skip


def play_teams(
    model: Model,
    world: World,
    questions: Mapping[str, Sequence[Question]],
    *,
    seed: int = 0,
    sampling: Sampling | None = None,
) -> list[Episode]:
    """Let one model play every role of the named teams, with compact prompts, over an index of the world's passages.

    Args:
        questions: team to the questions that it is asked; the episodes come in this order. The model's engine is closed.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_world(world, Path(folder) / "world")
        index = BM25Index.build(Path(folder) / "world" / CORPUS_FILE, Path(folder) / "index")
        return asyncio.run(_play_all(model, index, questions, seed, sampling or Sampling()))


async def _play_all(
    model: Model, index: BM25Index, questions: Mapping[str, Sequence[Question]], seed: int, sampling: Sampling
) -> list[Episode]:
    retriever = AsyncRetriever(index)
    teams = {name: BUILT_IN[name]() for name in questions}
    casts = {
        name: {role: Part(model, world_prompt(prompt), sampling) for role, prompt in team.prompts.items()}
        for name, team in teams.items()
    }
    pairs = [(name, question) for name, asked in questions.items() for question in asked]
    episodes: dict[int, Episode] = {}
    waiting = iter(enumerate(pairs))

    async def worker() -> None:
        for place, (name, question) in waiting:
            episodes[place] = await play(teams[name], question, casts[name], retriever, seed=seed)

    try:
        await run_together([worker() for _ in range(min(EPISODES_AT_ONCE, len(pairs)))])
    finally:
        await model.engine.close()
        await retriever.close()
    return [episodes[place] for place in range(len(pairs))]
