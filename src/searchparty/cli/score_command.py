"""`searchparty score`: score a finished run again, without sampling, and say what that changed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchparty.evaluation.rescoring import Change, Moved

SHOWN = 10
"""Episodes whose answer or exact match changed that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run_directory", type=Path, metavar="RUN")
    parser.add_argument("--scorer", help="squad, hotpotqa, 2wiki, musique or triviaqa (default: the run's own)")
    parser.add_argument("--unfinished", action="store_true", help="count the episodes that an unfinished run lacks as wrong")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Score and print."""
    from dataclasses import asdict

    import orjson

    from searchparty.cli.console import make_console
    from searchparty.evaluation.rescoring import changes, scores_before
    from searchparty.evaluation.run import score_run
    from searchparty.evaluation.run_directory import RunDirectory
    from searchparty.evaluation.scorers import scorer_named
    from searchparty.evaluation.table import print_summary

    directory = RunDirectory(options.run_directory)
    recipe = directory.read_recipe()
    before = scores_before(directory.scores_file)
    summary = score_run(directory, recipe, scorer_named(options.scorer or recipe.scorer), unfinished=options.unfinished)
    changed, moved = changes(before, directory.scores_file)
    if options.json:
        written = orjson.loads(directory.summary_file.read_bytes())
        written["changes"] = {"scores": [asdict(one) for one in changed], "episodes": [asdict(one) for one in moved]}
        print(orjson.dumps(written).decode())
    else:
        print_summary(summary, make_console())
        _print_changes(changed, moved, scored_before=bool(before))
    return 0


def _print_changes(changed: list[Change], moved: list[Moved], *, scored_before: bool) -> None:
    from searchparty.episodes.printable import brief

    if not scored_before:
        print("scored for the first time")
    elif not changed and not moved:
        print("nothing changed: these are the scores that were there")
    else:
        for one in changed:
            before = "not there before" if one.before is None else f"was {100 * one.before:.1f}"
            print(f"changed: {one.field} is {100 * one.after:.1f}, {before}; another score in {one.episodes} episodes")
        for episode in moved[:SHOWN]:
            place, before, after = map(brief, (episode.question_key, episode.before, episode.after))
            print(f"  {place} #{episode.sample}: {before} → {after}")
        if len(moved) > SHOWN:
            print(f"  ... {len(moved) - SHOWN} more; --json prints all")
