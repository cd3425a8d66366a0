"""`searchparty diagnose`: where a run loses the evidence, how its roles behave, and when behaviour changed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from searchparty.diagnosis.reading import EvaluationDiagnosis, StageDiagnosis
    from searchparty.diagnosis.roles import RoleDiagnosis
    from searchparty.diagnosis.summary import Diagnosis


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="directory of an evaluation or of a training run")
    parser.add_argument(
        "--false-alarms", type=float, default=0.01, metavar="P",
        help="chance that a training stage in which nothing changes is said to have changed (default 0.01)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> int:
    """Read, diagnose and print."""
    import orjson

    from searchparty.cli.console import make_console
    from searchparty.diagnosis.reading import TrainingDiagnosis, diagnose_run
    from searchparty.errors import UserError

    if not 0 < options.false_alarms < 1:
        raise UserError(f"--false-alarms {options.false_alarms}: a chance between 0 and 1 is needed, such as 0.01")
    found = diagnose_run(options.run_directory, false_alarms=options.false_alarms)
    if options.json:
        print(orjson.dumps(found).decode())
        return 0
    console = make_console()
    if not isinstance(found, TrainingDiagnosis):
        _print_evaluation(found.path, found, console)
        console.print(f"read one: searchparty show {found.path} --question QUESTION")
        return 0
    for stage in found.stages:
        _print_stage(stage, console)
        console.print(
            f"read one: searchparty show {found.path} --stage {stage.name} --step STEP --question QUESTION\n", soft_wrap=True
        )
    for name, evaluation in found.evaluations.items():
        _print_evaluation(f"evaluation {name} ({evaluation.path})", evaluation, console)
    return 0


def _print_evaluation(title: str, evaluation: EvaluationDiagnosis, console: Console) -> None:
    from searchparty.diagnosis.wording import not_played_in_words
    from searchparty.evaluation.wide_tables import print_tables

    console.print(*not_played_in_words(evaluation), sep="\n", end="\n" if evaluation.not_played else "")
    if not evaluation.judged:
        console.print("No question has a golden answer, so what is said below of right, wrong and lost means nothing.")
    _print(title, evaluation.whole, console)
    if evaluation.datasets:
        print_tables(console, _datasets(evaluation))
        console.print()


def _print(title: str, diagnosis: Diagnosis, console: Console) -> None:
    from searchparty.diagnosis.wording import examples_in_words, in_words
    from searchparty.episodes.printable import printable
    from searchparty.evaluation.wide_tables import print_tables

    console.print(title, style="bold", soft_wrap=True)
    console.print(*map(printable, in_words(diagnosis)), sep="\n", soft_wrap=True)
    print_tables(console, _roles(diagnosis))
    if diagnosis.losses:
        console.print("Episodes that show it, as question#sample:")
        console.print(*map(printable, examples_in_words(diagnosis.losses)), sep="\n", soft_wrap=True)
    console.print()


def _print_stage(stage: StageDiagnosis, console: Console) -> None:
    from searchparty.diagnosis.wording import alarms_in_words, course_in_words
    from searchparty.episodes.printable import printable

    if stage.late is not None:
        first, last = stage.late_steps[0], stage.late_steps[-1]
        _print(f"stage {stage.name}, its last recorded steps ({first} to {last})", stage.late, console)
    else:
        console.print(f"stage {stage.name}: no episodes were recorded", style="bold")
    console.print("step by step:")
    said = [*course_in_words(stage), *alarms_in_words(stage.alarms), *stage.notes]
    console.print(*map(printable, said), sep="\n", soft_wrap=True)


def _datasets(evaluation: EvaluationDiagnosis) -> Table:
    from rich.table import Table

    from searchparty.diagnosis.summary import loss_at
    from searchparty.episodes.printable import printable
    from searchparty.evaluation.wide_tables import LOOK

    seen = [loss.interface for loss in evaluation.whole.losses]
    table = Table(title="by dataset: shares of episodes in %, [95 % interval]", **LOOK)
    for name in ("dataset", "episodes", "right", "no search", *(f"lost: {interface}" for interface in seen)):
        table.add_column(name, justify="left" if name == "dataset" else "right")
    for dataset, diagnosis in evaluation.datasets.items():
        shares = [
            (diagnosis.right, *diagnosis.intervals["right"]),
            (diagnosis.no_search, *diagnosis.intervals["no_search"]),
            *(loss_at(interface, diagnosis) for interface in seen),
        ]
        cells = [f"{100 * share:.1f}\n[{100 * low:.1f}, {100 * high:.1f}]" for share, low, high in shares]
        table.add_row(printable(dataset), str(diagnosis.episodes), *cells)
    return table


def _roles(diagnosis: Diagnosis) -> Table:
    from rich.table import Table

    from searchparty.evaluation.wide_tables import LOOK

    table = Table(title="roles: means per episode in which they acted, [95 % interval]", **LOOK)
    columns = {
        "agents": ("agents", 2), "calls": ("calls", 2), "searches": ("searches", 2), "tokens in": ("input_tokens", 0),
        "without\nhistory": ("unique_input_tokens", 0), "tokens out": ("output_tokens", 0), "cut": ("cut", 2),
    }  # fmt: skip
    table.add_column("role")
    for name in ("n", *columns):
        table.add_column(name, justify="right", no_wrap=True)
    for role, use in diagnosis.roles.items():
        table.add_row(role, str(use.episodes), *(_mean(use, name, digits) for name, digits in columns.values()))
    return table


def _mean(use: RoleDiagnosis, name: str, digits: int) -> str:
    """A mean, and its interval on a line of its own, so that seven stand side by side in 80 columns."""
    mean: float | None = getattr(use, name)
    if mean is None:
        return "–"
    low, high = use.intervals[name]
    return f"{mean:.{digits}f}\n[{low:.{digits}f},{high:.{digits}f}]"
