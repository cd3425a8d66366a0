"""Training runs of scripted teams: what a trainer would have left on disk of them, without any learning."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from world_factories import Searching

from playing import scripted_model
from searchparty.episodes.types import Episode
from searchparty.evaluation.scorers import SCORERS
from searchparty.evaluation.scoring import score_episode
from searchparty.files import write_json
from searchparty.models.types import GenerateRequest, Sampling
from searchparty.retrieval.bm25 import BM25Index
from searchparty.teams.cast import Part
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.play import play
from searchparty.training.measures import batch_measures, endings, watched_shares
from searchparty.training.records import StepRecord, write_step
from searchparty.training.run_directory import MetricsLog, TrainDirectory
from searchparty.world.experts import Expert
from searchparty.world.faults import TYPICAL
from searchparty.world.prompting import world_prompt
from searchparty.world.types import World


class Forgetful:
    """An imperfect expert whose Searcher, with a chance that the test sets, reports without having searched.

    Its report names something, and the rest of the team goes on as ever: the workflow completes.
    """

    def __init__(self, world: World) -> None:
        self._expert = Expert(world, TYPICAL)
        self._cities = [str(passage.title) for passage in world.passages]
        self.chance = 0.0

    def __call__(self, request: GenerateRequest) -> str | Sequence[str]:
        dice = random.Random(request.seed)
        first = not any("<search>" in message.content for message in request.messages if message.role == "assistant")
        if request.role == "searcher" and first and dice.random() < self.chance:
            return f"<report>it is {dice.choice(self._cities)}.</report>"
        return self._expert(request)


def play_steps(
    world: World, index: BM25Index, chance_at: Callable[[int], float], steps: Iterable[int], questions: int = 5
) -> dict[int, list[Episode]]:
    """Two attempts of the hierarchical team at each of a few questions at every step, new questions each time."""
    script, team = Forgetful(world), Hierarchical()
    model = scripted_model(script)
    cast = {role: Part(model, world_prompt(name), Sampling()) for role, name in team.prompts.items()}

    async def of_step(step: int) -> list[Episode]:
        script.chance = chance_at(step)
        asked = random.Random(step).sample(world.questions["train"], questions)
        search = Searching(index)
        return [await play(team, question, cast, search, sample=sample, seed=step) for question in asked for sample in range(2)]

    return {step: asyncio.run(of_step(step)) for step in steps}


def write_training(path: Path, world: World, folder: Path, played: dict[int, list[Episode]]) -> Path:
    """The run directory of one rl stage, `student`, as far as a diagnosis reads it; `folder` is where the world lies."""
    golden = {question.key: question.golden_answers for question in world.questions["train"]}
    path.mkdir(parents=True)
    stage = path / "stages" / "student"
    write_json(stage / "stage.json", {"format": 1, "name": "student", "kind": "rl"})
    (path / "recipe.resolved.yaml").write_text(
        "stages:\n  student:\n    kind: rl\n    policy: tiny\n    teacher: tiny\n    team: hierarchical\n"
        f"    credit: searcher-on-outcome\n    questions: {folder / 'questions-train.jsonl'}\n    steps: {max(played)}\n"
    )
    metrics = MetricsLog(TrainDirectory(path).metrics_file)
    for step, episodes in played.items():
        own = {episode.question_key: golden[episode.question_key] for episode in episodes}
        write_step(stage / "episodes", StepRecord(step, episodes, [], {}, own, {}))
        metrics.append({"stage": "student", "step": step, "kind": "step", **measured(episodes, own)})
    return path


def measured(episodes: Sequence[Episode], golden: dict[str, Any]) -> dict[str, Any]:
    """What the trainer writes of a step's episodes."""
    scored = [score_episode(episode, golden[episode.question_key], SCORERS["squad"]) for episode in episodes]
    return {"datasets": batch_measures(scored), "endings": endings(scored), "watched": watched_shares(scored)}
