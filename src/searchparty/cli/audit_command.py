"""`searchparty audit`: prove of a training run that every token was trained as its episodes say."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from searchparty.training.audit_report import AuditReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="directory of a training run, or of its seeds")
    parser.add_argument("--stage", metavar="NAME", help="only this stage")
    parser.add_argument("--step", type=int, metavar="N", help="only this step")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, metavar="X",
        help="relative difference of recomputed numbers that is taken for rounding (default 0: equal bits)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Audit and print. Returns 1 at the first violation, which is named in one line."""
    from searchparty.errors import UserError

    if not 0 <= options.tolerance < 1:
        raise UserError(f"--tolerance {options.tolerance}: must be at least 0 and below 1; 1e-6 is about eight roundings")
    proved = audit_and_print(options.run_directory, options.stage, options.step, options.tolerance)
    return 0 if proved else 1


def audit_and_print(path: Path, stage: str | None = None, step: int | None = None, tolerance: float = 0.0) -> bool:
    """Audit a run or the runs of its seeds, print what was proved, and say whether everything was. See `audit_run`."""
    from searchparty.cli.console import make_console
    from searchparty.training.audit import audit_run
    from searchparty.training.run_directory import seed_runs

    for one in seed_runs(path) or [path]:
        report = audit_run(one, stage=stage, step=step, tolerance=tolerance)
        if report.violation is not None:
            print(f"searchparty: audit: {one}: {report.violation}", file=sys.stderr)
            return False
        console = make_console()
        console.print(audit_table(report))
        for audited in report.stages:
            if audited.note:
                console.print(f"{audited.name} ({audited.kind}): {audited.note}")
        if any(audited.proved.steps for audited in report.stages):
            console.print(_summary(report))
    return True


def audit_table(report: AuditReport) -> Table:
    """How much was proved, one column per stage with recorded steps."""
    from rich.table import Table

    from searchparty.evaluation.wide_tables import LOOK

    stages = [stage for stage in report.stages if stage.proved.steps]
    table = Table(title=f"proved of {report.path}", **LOOK)
    table.add_column("", no_wrap=True)
    for stage in stages:
        table.add_column(stage.name, justify="right", no_wrap=True)
    rows = {
        "steps": "steps",
        "episodes": "episodes",
        "sequences: roles, histories, masks, groups": "sequences",
        "tokens in them": "tokens",
        "of these trained, with the log-probabilities sampled": "trained_tokens",
        "of these scored by the teacher": "teacher_tokens",
        "sequences left out: log-probabilities not finite": "left_out",
        "sequences that the teacher did not score": "unscored",
        "reports observed by a reader": "reports",
        "groups": "groups",
        "of these with one member, which got no advantage": "singletons",
        "candidates judged again": "judged",
        "advantages and weights computed again": "advantages",
    }
    seldom = ("left_out", "unscored")
    for name, field in rows.items():
        values = [getattr(stage.proved, field) for stage in stages]
        if stages and (any(values) or field not in seldom):
            table.add_row(name, *(f"{value:,}" for value in values))
    return table


def _summary(report: AuditReport) -> str:
    largest = max(stage.proved.largest_difference for stage in report.stages)
    exactness = f"largest relative difference {largest:.1e}" if largest else "equal bit by bit"
    return f"No rule is broken; recomputed numbers: {exactness}."
