"""The evaluations of a training run as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from searchparty.evaluation.wide_tables import LOOK
from searchparty.training.report import Compared, cells


def report_table(rows: Sequence[Compared]) -> Table:
    """One row per evaluation, in the order of the recipe."""
    k, questions = rows[0].samples, rows[0].questions
    table = Table(title=f"{questions} questions, {k} attempts each; shares in %, [95 % interval]", **LOOK)
    table.add_column("system", no_wrap=True)
    for name in (f"EM avg@{k}", f"pass@{k}", "answered", "no search", "searches", "difference, paired"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*cells(row))
    return table
