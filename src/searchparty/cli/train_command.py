"""`searchparty train`: carry out a training recipe, stage by stage."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from searchparty.cli.numbers import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recipe", nargs="+", metavar="RECIPE.yaml | key.path=value", help="a training recipe, and overrides of its keys"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="RUN", help="run directory (default runs/NAME)")
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N",
        help="stages at once: evaluations whose models are made go on in up to N-1 processes beside the main one, with the "
        "same seeds; each loads its own model and index, on a CUDA card too, so mind the memory (1)",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on from the latest whole checkpoint")
    parser.add_argument("--overwrite", action="store_true", help="begin again in an existing run directory")


def run(options: argparse.Namespace) -> int:
    """Check, train, print the report. Returns 1 if an alarm or non-finite numbers stopped the run."""
    from searchparty.cli.console import make_console
    from searchparty.cli.interruption import run_until_interrupted
    from searchparty.cli.report_table import report_table
    from searchparty.cli.train_progress import TrainProgress
    from searchparty.config.load import load_recipe, split_words
    from searchparty.evaluation.wide_tables import print_tables
    from searchparty.training.checking import check_recipe
    from searchparty.training.listening import TrainingStopped
    from searchparty.training.recipe import TrainRecipe
    from searchparty.training.report import read_report
    from searchparty.training.seeds import train_seeds

    path, overrides = split_words(options.recipe)
    recipe = load_recipe(TrainRecipe, path, overrides, {})
    check_recipe(recipe)
    directory = options.output or Path("runs") / recipe.name
    try:
        with TrainProgress() as progress:
            work = train_seeds(
                recipe,
                directory,
                resume=options.resume,
                overwrite=options.overwrite,
                jobs=options.jobs,
                listener=progress,
            )
            done = run_until_interrupted(work)
    except TrainingStopped as stop:
        print(f"searchparty: {stop}", file=sys.stderr)
        return 1
    for one in done:
        rows = read_report(one)
        if rows:
            print_tables(make_console(), report_table(rows))
        print(f"run directory: {one.path}  (prove it: searchparty audit {one.path})")
    if len(done) > 1:
        print(f"report over all seeds: {directory / 'report.md'}")
    return 0
