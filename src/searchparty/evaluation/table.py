"""A run's summary as a table in the terminal. Formats numbers; computes none."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from searchparty.evaluation.summary import MACRO, Rate, RunSummary


def percent(rate: Rate) -> str:
    """A rate with its interval: `41.2 [37.0, 45.1]`."""
    return f"{100 * rate.value:.1f} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def quality_table(summary: RunSummary) -> Table:
    """Quality, behaviour and effort, one row per dataset."""
    k = summary.samples
    table = Table(title=f"{summary.team} · {summary.model} · scorer {summary.scorer} · rates in % with 95 % intervals")
    table.add_column("dataset")
    columns = ["questions", "EM" if k == 1 else f"EM avg@{k}", *([] if k == 1 else [f"pass@{k}", f"all-{k}"]), "F1"]
    for name in [*columns, "answered", "no search", "searches", "steps", "tokens in", "tokens out"]:
        table.add_column(name, justify="right")
    for dataset, quality in summary.quality.items():
        behaviour = summary.behaviour["all" if dataset == MACRO else dataset]
        several = [] if k == 1 else [f"{100 * quality.pass_at_k.value:.1f}", f"{100 * quality.all_k_right.value:.1f}"]
        if dataset == MACRO:
            table.add_section()
        table.add_row(
            dataset, str(quality.questions), percent(quality.exact_match), *several, percent(quality.f1),
            f"{100 * behaviour.answered:.1f}", f"{100 * behaviour.no_search:.1f}", f"{behaviour.searches:.2f}",
            f"{behaviour.steps:.2f}", _count(behaviour.input_tokens), _count(behaviour.output_tokens),
        )  # fmt: skip
    return table


def team_table(summaries: Sequence[RunSummary]) -> Table:
    """Several runs over the same questions, one row per run; macro quality, behaviour over all episodes."""
    k = summaries[0].samples
    table = Table(title="macro over datasets, rates in % with 95 % intervals")
    table.add_column("team")
    for name in ["EM" if k == 1 else f"EM avg@{k}", "F1", "answered", "searches", "steps", "tokens in", "tokens out"]:
        table.add_column(name, justify="right")
    for summary in summaries:
        quality, behaviour = summary.quality[MACRO], summary.behaviour["all"]
        table.add_row(
            summary.team, percent(quality.exact_match), percent(quality.f1), f"{100 * behaviour.answered:.1f}",
            f"{behaviour.searches:.2f}", f"{behaviour.steps:.2f}", _count(behaviour.input_tokens), _count(behaviour.output_tokens),
        )  # fmt: skip
    return table


def print_summary(summary: RunSummary, console: Console) -> None:
    """The table, then how episodes ended and which turns failed their format."""
    console.print(quality_table(summary))
    everything = summary.behaviour["all"]
    console.print("endings: " + ", ".join(f"{reason} {count}" for reason, count in everything.stop_reasons.items()))
    for role, use in summary.roles.items():
        if use.format_failures:
            kinds = ", ".join(f"{kind} {count}" for kind, count in use.format_failures.items())
            console.print(f"format failures of {role}: {kinds}")
    if everything.unscorable:
        console.print(
            f"unscorable: {everything.unscorable} episodes have golden answers that normalise to nothing; they score 0"
        )


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"
