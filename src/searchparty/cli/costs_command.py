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
    from searchparty.evaluation.costs.by_workflow import by_workflow, workflow_table
    from searchparty.evaluation.costs.reading import read_costs
    from searchparty.evaluation.wide_tables import print_tables

    pairs, prices = read_costs(options.run_directory, options.prices)
    rows = by_workflow(pairs)
    if options.json:
        for row in rows:
            print(orjson.dumps(asdict(row)).decode())
        return 0
    console = make_console()
    print_tables(console, workflow_table(rows))
    console.print("no prices: give --prices FILE for USD" if prices is None else f"prices of {prices.dated}, {prices.source}")
    return 0
