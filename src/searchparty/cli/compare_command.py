"""`searchparty compare`: finished evaluations of the same questions side by side, with intervals for every difference."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from searchparty.cli.numbers import whole

if TYPE_CHECKING:
    from rich.table import Table

    from searchparty.evaluation.comparison import Comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the first is what the others are compared with")
    parser.add_argument(
        "--metric", help="exact_match, f1 or f1_joined (default: what the first run's protocol compares first, or exact_match)"
    )
    parser.add_argument(
        "--primary",
        type=Path,
        metavar="RUN",
        help="what was to be shown; others are corrected by Holm (default: the second)",
    )
    parser.add_argument("--flips", type=whole, default=0, metavar="N", help="list N questions on which each differs")
    parser.add_argument("--force", action="store_true", help="compare runs of different settings all the same")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> int:
    """Read, compare and print."""
    from dataclasses import asdict

    import orjson
    from rich.text import Text

    from searchparty.cli.console import make_console
    from searchparty.episodes.printable import brief, printable
    from searchparty.errors import UserError
    from searchparty.evaluation.compared_runs import (
        METRICS,
        check_same_questions,
        differences_of_setting,
        read_run,
        usual_metric,
    )
    from searchparty.evaluation.comparison import compare
    from searchparty.evaluation.wide_tables import print_tables

    if options.metric is not None and options.metric not in METRICS:
        raise UserError(f"--metric {options.metric}: unknown; there are: {', '.join(METRICS)}")
    if len(options.runs) < 2:
        raise UserError("one run cannot be compared; name at least two")
    primary = options.primary or options.runs[1]
    if primary not in options.runs[1:]:
        raise UserError(f"--primary {primary}: is not among the runs that are compared with the first; name one of them")
    metric = options.metric or usual_metric(options.runs[0])
    runs = [read_run(path, metric) for path in options.runs]
    check_same_questions(runs)
    unequal = differences_of_setting(runs)
    if unequal and not options.force:
        raise UserError(*unequal, "so the runs measure different things; add --force to compare them all the same")
    rows = compare(runs, flips=options.flips, primary=options.runs.index(primary, 1))
    if options.json:
        print(orjson.dumps({"metric": metric, "differs": unequal, "runs": [asdict(row) for row in rows]}).decode())
        return 0
    console = make_console()
    for line in unequal:
        console.print(Text(f"! {printable(line)}", style="yellow"))
    print_tables(console, _quality(rows, metric), _tests(rows), _costs(rows))
    for row in rows[1:]:
        for key, before, after in row.flips:
            console.print(Text(f"{printable(row.name)}: {brief(key)}: {brief(before)} → {brief(after)}"))
    return 0


def _quality(rows: list[Comparison], metric: str) -> Table:
    from rich.table import Table

    from searchparty.episodes.printable import printable
    from searchparty.evaluation.wide_tables import LOOK

    table = Table(title=f"{metric} in %, [95 % interval]; with a sign: the difference to the first run, paired", **LOOK)
    table.add_column("run")
    for dataset in rows[0].means:
        table.add_column(printable(dataset), justify="right")
    for number, row in enumerate(rows):
        name = printable(row.name)
        table.add_row(name, *(one.text(100, 1) for one in row.means.values()))
        if number:
            table.add_row("", *(one.text(100, 1, signed=True) for one in row.differences.values()))
    return table


def _tests(rows: list[Comparison]) -> Table:
    from rich.table import Table

    from searchparty.episodes.printable import printable
    from searchparty.evaluation.wide_tables import LOOK

    table = Table(title="against the first run, by question", **LOOK)
    for name in ("run", "wins", "ties", "losses", "p", "test", "p by Holm", "detectable"):
        table.add_column(name, justify="left" if name in ("run", "test") else "right")
    for row in rows[1:]:
        corrected = "primary" if row.primary else _p(row.adjusted_p)
        table.add_row(
            printable(row.name), str(row.wins), str(row.ties), str(row.losses), _p(row.p), row.test, corrected,
            "–" if row.detectable is None else f"{100 * row.detectable:.1f}",
        )  # fmt: skip
    table.caption = "detectable: the difference, in points, that these questions would have shown four times in five"
    return table


def _costs(rows: list[Comparison]) -> Table:
    from rich.table import Table

    from searchparty.episodes.printable import printable
    from searchparty.evaluation.wide_tables import LOOK

    table = Table(title="cost per episode, [95 % interval]", **LOOK)
    for name in ("run", "searches", "tokens in", "tokens out", "USD", "failed episodes"):
        table.add_column(name, justify="left" if name == "run" else "right")
    for row in rows:
        means = (("searches", 2), ("input_tokens", 0), ("output_tokens", 0), ("usd", 6))
        table.add_row(printable(row.name), *(_mean(row, name, digits) for name, digits in means), str(row.failed))
    return table


def _mean(row: Comparison, name: str, digits: int) -> str:
    value: float | None = getattr(row, name)
    if value is None:
        return "–"
    ends = ", ".join(f"{end:,.{digits}f}" for end in row.intervals.get(name, ()))
    return f"{value:,.{digits}f}" + (f"\n[{ends}]" if ends else "")


def _p(value: float) -> str:
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"
