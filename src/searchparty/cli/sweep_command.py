"""`searchparty sweep`: carry out a training recipe once for each of several values of one key, and compare."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recipe", nargs="+", metavar="RECIPE.yaml | key.path=value", help="a training recipe, and overrides of its keys"
    )
    parser.add_argument("--vary", required=True, metavar="key.path=V1,V2,...", help="the key that takes several values")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="directory of the runs (default runs/NAME-sweep)")
    parser.add_argument("--resume", action="store_true", help="pass over finished runs and go on; values may be added")
    parser.add_argument("--overwrite", action="store_true", help="begin again in an existing directory")


def run(options: argparse.Namespace) -> int:
    """Check every value, train, write the table and the curves. Returns 1 if an alarm stopped a run."""
    from searchparty.cli.interruption import run_until_interrupted
    from searchparty.cli.train_progress import TrainProgress
    from searchparty.config.load import split_words
    from searchparty.errors import UserError
    from searchparty.training.listening import TrainingStopped
    from searchparty.training.sweep_report import as_markdown, draw_curves
    from searchparty.training.sweeping import read_variation, sweep, varied_recipes

    variation = read_variation(options.vary)
    path, overrides = split_words(options.recipe)
    recipes = varied_recipes(path, overrides, variation)
    directory = options.output or Path("runs") / f"{recipes[0].name}-sweep"
    try:
        with TrainProgress() as progress:
            work = sweep(variation, recipes, directory, resume=options.resume, overwrite=options.overwrite, listener=progress)
            points = run_until_interrupted(work)
    except TrainingStopped as stop:
        print(f"searchparty: {stop}", file=sys.stderr)
        return 1
    if not points:
        print(f"run directories: {directory}  (the recipe has no eval stage, so there is nothing to compare)")
        return 0
    print(as_markdown(variation.name, points))
    print(f"data: {directory / 'points.csv'}, {directory / 'points.json'}")
    try:
        print(f"curves: {draw_curves(directory, variation.name, points)}")
    except UserError as error:
        print(f"no curves: {error}", file=sys.stderr)
    return 0
