"""`searchparty score`: score a finished run again, without sampling."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run_directory", type=Path, metavar="RUN")
    parser.add_argument("--scorer", help="squad, hotpotqa, 2wiki, musique or triviaqa (default: the run's own)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Score and print."""
    from searchparty.cli.console import make_console
    from searchparty.evaluation.run import score_run
    from searchparty.evaluation.run_directory import RunDirectory
    from searchparty.evaluation.scorers import scorer_named
    from searchparty.evaluation.table import print_summary

    directory = RunDirectory(options.run_directory)
    recipe = directory.read_recipe()
    summary = score_run(directory, recipe, scorer_named(options.scorer or recipe.scorer))
    if options.json:
        print(directory.summary_file.read_text(encoding="utf-8"), end="")
    else:
        print_summary(summary, make_console())
    return 0
