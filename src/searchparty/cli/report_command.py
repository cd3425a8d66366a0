"""`searchparty report`: runs as one page to hand on, with the same tables as Markdown, CSV and LaTeX, and model cards."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchparty.questions.types import Question


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="evaluations and training runs; the first is the base"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="directory of the report (default: RUN-report)")
    parser.add_argument("--title", help="title of the page (default: the names of the runs)")
    parser.add_argument(
        "--trained-on", type=Path, action="append", default=[], metavar="FILE",
        help="questions that models were trained on, to be compared with those asked; may be given again",
    )  # fmt: skip
    parser.add_argument("--deviations", type=Path, metavar="FILE", help="text file with a deviation a line, to be printed")


def run(options: argparse.Namespace) -> int:
    """Gather, draw, write."""
    from searchparty.files import read_lines
    from searchparty.questions import load_questions

    trained_on = {str(path): load_questions(path).questions for path in options.trained_on}
    deviations = [] if options.deviations is None else [line for _, line in read_lines(options.deviations)]
    report_and_print(options.runs, options.output, options.title, deviations, trained_on)
    return 0


def report_and_print(
    runs: Sequence[Path],
    output: Path | None = None,
    title: str | None = None,
    deviations: Sequence[str] = (),
    trained_on: Mapping[str, Sequence[Question]] = MappingProxyType({}),
) -> Path:
    """Write the report of some runs and say where it is. Without matplotlib it has no plots, and says so. Returns the page."""
    from searchparty.errors import missing_package
    from searchparty.reporting.plots import can_draw
    from searchparty.reporting.result_tables import Results
    from searchparty.reporting.systems import gather
    from searchparty.reporting.writing import make_report, write_model_cards, write_report

    found = gather(runs)
    title = title or ", ".join(path.resolve().name for path in runs)
    if not can_draw():
        found.notes.append("Plots are missing, since matplotlib was not installed.")
        print(f"no plots: {missing_package('matplotlib', 'plot', 'drawing plots')}", file=sys.stderr)
    results = Results()
    document = make_report(found, title=title, deviations=deviations, trained_on=trained_on, plots=can_draw(), results=results)
    first = runs[0] if runs[0].name else runs[0].resolve()
    folder = output or first.with_name(f"{first.resolve().name}-report")
    page = write_report(document, folder)
    print(f"report: {page}  (also report.md, tables/*.csv, tables/*.tex)")
    for card in write_model_cards(found, folder, results):
        print(f"model card: {card}")
    return page
