"""Small training recipes over a small world, and ways to run and compare them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from searchparty.config.load import merged, parse_recipe
from searchparty.training.listening import SilentTrainListener
from searchparty.training.recipe import TrainRecipe
from searchparty.training.run import train
from searchparty.training.run_directory import TrainDirectory

TIMED = ("seconds",)


class Notes(SilentTrainListener):
    """Keeps what a person would have read."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def on_message(self, text: str) -> None:
        self.messages.append(text)


def rl_stage(world: Path, **changes: Any) -> dict[str, Any]:
    """A chained stage of two steps with two questions each."""
    return merged(
        {
            "kind": "rl",
            "team": "chained",
            "policy": "tiny",
            "questions": str(world / "questions-train.jsonl"),
            "index": str(world / "index"),
            "prompts": "world",
            "sampling": {"max_tokens": 48},
            "credit": "chained-rl",
            "steps": 2,
            "questions_per_step": 2,
            "samples": 3,
            "candidates": 3,
            "learner": {"learning_rate": 1e-4, "minibatches": 2},
            "concurrency": 16,
        },
        changes,
    )


def opd_stage(world: Path, **changes: Any) -> dict[str, Any]:
    """A hierarchical stage taught by a stage named `teacher`."""
    return rl_stage(world, **{"team": "hierarchical", "credit": "multiagent-opd", "teacher": "stage:teacher", **changes})


def eval_stage(world: Path, **changes: Any) -> dict[str, Any]:
    """An evaluation of the untrained policy."""
    stage = rl_stage(world)
    kept = {key: stage[key] for key in ("policy", "index", "prompts", "sampling", "concurrency")}
    return merged(
        {"kind": "eval", "team": "chained", "questions": str(world / "questions-test.jsonl"), "limit": 3, **kept}, changes
    )


def sft_stage(world: Path, **changes: Any) -> dict[str, Any]:
    """Imitation of an imperfect expert in both teams."""
    stage = rl_stage(world)
    kept = {key: stage[key] for key in ("policy", "questions", "index", "prompts", "sampling", "concurrency")}
    own = {"kind": "sft", "teams": ["chained", "hierarchical"], "expert": f"scripted:world-imperfect@{world}", "limit": 6}
    return merged({**kept, **own, "sequences_per_step": 8, "learner": {"learning_rate": 1e-4}}, changes)


def recipe(seed: int = 0, **stages: dict[str, Any]) -> TrainRecipe:
    """A recipe of the given stages."""
    return parse_recipe(TrainRecipe, {"seed": seed, "stages": stages}, "test")


def run(made: TrainRecipe, folder: Path, **options: Any) -> TrainDirectory:
    """Train."""
    return asyncio.run(train(made, folder, **options))


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of the metrics without what differs from run to run."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMED} for line in lines]


def episode_ids(folder: Path) -> list[Any]:
    """Every token id and log-probability of all recorded episodes."""
    return [
        [(span["ids"], span["logprobs"]) for agent in json.loads(line)["agents"] for span in agent["spans"]]
        for file in sorted(folder.glob("stages/*/episodes/*.jsonl"))
        for line in file.read_text().splitlines()
    ]
