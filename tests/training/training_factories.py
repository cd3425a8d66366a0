"""Small training recipes over a small world, and ways to run and compare them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from safetensors.numpy import load_file

from searchparty.config.load import dump_recipe, merged, parse_recipe
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


def small_stage(world: Path, **changes: Any) -> dict[str, Any]:
    """A chained stage whose step takes about a second."""
    return rl_stage(world, **{"samples": 2, "candidates": 2, "learner": {"minibatches": 1}, **changes})


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


def episode_ids(folder: Path, stage: str = "*") -> list[Any]:
    """Every token id and log-probability of all recorded episodes."""
    return [
        [(span["ids"], span["logprobs"]) for agent in json.loads(line)["agents"] for span in agent["spans"]]
        for file in sorted(folder.glob(f"stages/{stage}/episodes/*.jsonl"))
        for line in file.read_text().splitlines()
    ]


def start(made: TrainRecipe, folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    file = folder.parent / "recipe.yaml"
    document = yaml.safe_load(dump_recipe(made))
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    code = "import sys, torch; torch.set_num_threads(1); from searchparty.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "train", str(file), "-o", str(folder), *flags]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)


def wait_for(condition, process: subprocess.Popen[bytes]) -> None:  # type: ignore[no-untyped-def]
    """Until something is seen in the run directory; fails if the process ends before."""
    while not condition():
        assert process.poll() is None, process.stderr.read().decode() if process.stderr else ""
        time.sleep(0.01)


def kill_at(process: subprocess.Popen[bytes], folder: Path, stage: str, step: int) -> None:
    """Kill a started run once the step's checkpoint is there."""
    wait_for(lambda: (folder / f"stages/{stage}/checkpoints/step-{step:06d}").is_dir(), process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def masters(folder: Path, stage: str, step: int = 3) -> dict[str, np.ndarray]:
    return load_file(folder / f"stages/{stage}/checkpoints/step-{step:06d}/masters.safetensors")


def assert_equal_runs(folder: Path, other: Path, *stages: str) -> None:
    """Metrics, sampled ids and, after step 3 of the stages, every weight are the same."""
    assert metrics(folder) == metrics(other)
    assert episode_ids(folder) == episode_ids(other)
    for stage in stages:
        ours, theirs = masters(folder, stage), masters(other, stage)
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
