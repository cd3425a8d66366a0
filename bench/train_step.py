"""Seconds per step of the demo's two stages on this machine, split into sampling, retrieval, scoring, credit and update.

    python bench/train_step.py [--steps 4] [--world runs/world]

Runs the first steps of `recipes/world-demo.yaml`; the first step of a stage is left out, for it also opens files and builds the
caches. Retrieval overlaps with sampling: it is the part of that time in which at least one search was under way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from searchparty.config.load import load_recipe
from searchparty.demo import prepare_world
from searchparty.training.recipe import TrainRecipe
from searchparty.training.run import train

PARTS = ("sampling", "retrieval", "scoring", "credit", "update", "total")


def main() -> None:
    """Print one line per stage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4, help="steps of each stage, the first of which does not count")
    parser.add_argument("--recipe", type=Path, default=Path("recipes/world-demo.yaml"))
    options = parser.parse_args()
    prepare_world()
    loaded = load_recipe(TrainRecipe, options.recipe, [], {})
    short = {
        name: stage.model_copy(update={"steps": options.steps}) for name, stage in loaded.stages.items() if stage.kind == "rl"
    }
    with tempfile.TemporaryDirectory() as folder:
        run = asyncio.run(train(loaded.model_copy(update={"stages": short}), Path(folder) / "run"))
        lines = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    print(f"seconds per step, mean of {options.steps - 1}")
    print(f"{'':12s}" + "".join(f"{part:>11s}" for part in PARTS) + f"{'episodes':>11s}{'tokens':>11s}")
    for name in short:
        steps = [line for line in lines if line["stage"] == name and line["kind"] == "step" and line["step"] > 1]
        means = [sum(line["seconds"][part] for line in steps) / len(steps) for part in PARTS]
        episodes = sum(line["datasets"]["all"]["episodes"] for line in steps) / len(steps)
        tokens = sum(line["update"]["tokens"] for line in steps) / len(steps)
        print(f"{name:12s}" + "".join(f"{mean:11.2f}" for mean in means) + f"{episodes:11,.0f}{tokens:11,.0f}")


if __name__ == "__main__":
    main()
