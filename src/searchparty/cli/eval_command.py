"""`searchparty eval`: run a team over questions and score it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from searchparty.cli.interruption import run_until_interrupted
from searchparty.cli.recipe_options import add_recipe_options, recipe_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recipe_options(parser)
    parser.add_argument("--questions", metavar="FILE", help="file of questions, any known format")
    parser.add_argument(
        "--protocol", metavar="NAME", help="multiagent-opd, mao-arag, search-r1 or a file: what is asked, how often, scored how"
    )
    parser.add_argument("--samples", type=int, metavar="N", help="attempts per question (default 1)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="RUN", help="run directory")
    parser.add_argument(
        "--resume", action="store_true", help="continue the run: play what is missing, retry what a service failed"
    )
    parser.add_argument("--overwrite", action="store_true", help="begin again in an existing run directory")


def run(options: argparse.Namespace) -> int:
    """Play, score, print the tables. Returns 1 if services or the team's code failed, so that the numbers are not final."""
    from searchparty.cli.console import make_console
    from searchparty.cli.progress import EpisodeProgress
    from searchparty.config.recipe import EvalRecipe
    from searchparty.evaluation.run import evaluate
    from searchparty.evaluation.run_directory import RunDirectory
    from searchparty.evaluation.table import print_summary

    recipe = recipe_from(
        options,
        EvalRecipe,
        questions=options.questions,
        samples=options.samples,
        limit=options.limit,
        protocol=options.protocol,
    )
    with EpisodeProgress() as progress:
        work = evaluate(
            recipe, options.output, resume=options.resume, overwrite=options.overwrite, on_episode=progress.on_episode
        )
        summary = run_until_interrupted(work)
    print_summary(summary, make_console())
    environment = json.loads(RunDirectory(options.output).environment_file.read_text(encoding="utf-8"))
    skipped = environment["skipped_records"]
    if skipped:
        print(f"{len(skipped)} records of {recipe.questions} are no questions, the first: {skipped[0]}", file=sys.stderr)
    protocol = environment["protocol"]
    if protocol is not None:
        print(f"protocol {protocol['name']}, version {protocol['version']}")
        for departure in protocol["departures"]:
            print(f"may depart from it: {departure}", file=sys.stderr)
    print(f"run directory: {options.output}  (read it: searchparty show {options.output})")
    failed = summary.behaviour["all"].service_failures
    if failed:
        print(
            f"searchparty: {failed} episodes were ended by a failing model or retriever and score 0; "
            f"repeat the command with --resume to try them again",
            file=sys.stderr,
        )
    broken = summary.behaviour["all"].stop_reasons.get("team_error", 0)
    if broken:
        print(
            f"searchparty: the team's own code raised in {broken} episodes; see: searchparty show {options.output}",
            file=sys.stderr,
        )
    return 1 if failed or broken else 0
