"""`searchparty costs`: what a finished evaluation cost, workflow by workflow, beside what it was worth."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="what `searchparty eval` made")
    parser.add_argument("--prices", type=Path, help="file of prices (default: the run's own; without one no USD)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON lines")


def run(options: argparse.Namespace) -> int:
    """Read, count and print."""
    from dataclasses import asdict

    import orjson

    from searchparty.cli.console import make_console
    from searchparty.errors import UserError
    from searchparty.evaluation.costs.by_workflow import by_workflow, costed, workflow_table
    from searchparty.evaluation.costs.prices import check_prices, load_prices
    from searchparty.evaluation.run_directory import RunDirectory
    from searchparty.evaluation.scorers import scorer_named
    from searchparty.evaluation.scoring import score_episode

    directory = RunDirectory(options.run_directory)
    recipe = directory.read_recipe()
    path: Path | None = options.prices or recipe.prices
    prices = None if path is None else load_prices(path)
    golden = {question.key: question.golden_answers for question in directory.read_questions()}
    scorer = scorer_named(recipe.scorer)
    models: set[str] = set()

    def both(episode):  # type: ignore[no-untyped-def]
        models.update(transcript.model for transcript in episode.agents)
        return costed(episode, prices), score_episode(episode, golden[episode.question_key], scorer)

    pairs = list(directory.latest(both).values())
    if not pairs:
        raise UserError(f"{options.run_directory}: no episode was recorded yet; run or resume it first")
    if prices is not None and path is not None:
        check_prices(prices, sorted(models), path)
    rows = by_workflow(pairs)
    if options.json:
        for row in rows:
            print(orjson.dumps(asdict(row)).decode())
        return 0
    console = make_console()
    console.print(workflow_table(rows))
    console.print(
        "no prices: give --prices FILE for USD" if prices is None else f"prices of {prices.dated} ({prices.source}), {path}"
    )
    return 0
