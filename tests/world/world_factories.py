"""Small worlds, their indexes, and teams that play in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playing import scripted_model
from searchparty.episodes.types import Episode
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import ScoredEpisode, score_episode
from searchparty.models.scripted import Script
from searchparty.models.types import Sampling
from searchparty.questions.types import Question
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.types import Hit
from searchparty.teams.cast import Part
from searchparty.teams.play import play
from searchparty.teams.prompts import Prompt
from searchparty.teams.registry import BUILT_IN
from searchparty.world.making import make_world
from searchparty.world.parameters import WorldParameters
from searchparty.world.prompting import world_prompt
from searchparty.world.storing import CORPUS_FILE, write_world
from searchparty.world.types import World


def small_world(**changes: Any) -> World:
    """A world of 80 entities and 40 questions, made in milliseconds."""
    return make_world(WorldParameters(**{"entities": 80, "train": 24, "dev": 6, "test": 10, **changes}))


def all_questions(world: World) -> list[Question]:
    """Of all splits."""
    return [question for questions in world.questions.values() for question in questions]


def written_index(world: World, folder: Path) -> BM25Index:
    """BM25 over the world's corpus, as a user would build it."""
    write_world(world, folder / "world")
    return BM25Index.build(folder / "world" / CORPUS_FILE, folder / "index")


class Searching:
    """A workspace's view of an index."""

    def __init__(self, index: BM25Index) -> None:
        self._index = index

    async def search(self, query: str, k: int) -> list[Hit]:
        return self._index.search([query], k)[0]


def play_all(
    team_name: str,
    script: Script,
    questions: Sequence[Question],
    index: BM25Index,
    prompts: Callable[[str], Prompt] = world_prompt,
    **options: Any,
) -> list[Episode]:
    """One episode per question, every role played by one script."""
    team, model = BUILT_IN[team_name](**options), scripted_model(script)
    cast = {role: Part(model, prompts(name), Sampling()) for role, name in team.prompts.items()}

    async def play_one_by_one() -> list[Episode]:
        return [await play(team, question, cast, Searching(index)) for question in questions]

    return asyncio.run(play_one_by_one())


def scores(episodes: Sequence[Episode], questions: Sequence[Question]) -> list[ScoredEpisode]:
    """The episodes' scores, in order."""
    scorer = scorer_named("squad")
    pairs = zip(episodes, questions, strict=True)
    return [score_episode(episode, question.golden_answers, scorer) for episode, question in pairs]


def exact_match(episodes: Sequence[Episode], questions: Sequence[Question]) -> float:
    """The share of right answers."""
    return sum(score.exact_match for score in scores(episodes, questions)) / len(questions)
