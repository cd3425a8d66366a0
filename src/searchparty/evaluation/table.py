"""A run's summary as a table in the terminal. Formats numbers; computes none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from searchparty.episodes.printable import printable
from searchparty.evaluation.behaviour import Behaviour
from searchparty.evaluation.estimates import Estimate
from searchparty.evaluation.intervals import MACRO
from searchparty.evaluation.lenient import RULES
from searchparty.evaluation.scoring import NOT_PLAYED
from searchparty.evaluation.summary import Quality, RunSummary
from searchparty.evaluation.wide_tables import LOOK, print_tables

BEHAVIOUR_NAMES = ("answered", "no search", "searches", "steps", "tokens in", "tokens out")


def percent(estimate: Estimate) -> str:
    """A rate, and its interval in a line of its own, since five of them are to stand side by side."""
    return estimate.text(100, 1).replace(" ", "\n", 1)


def quality_table(summary: RunSummary) -> Table:
    """What the answers earned, one row per dataset."""
    k = summary.samples
    table = Table(title="quality in %, [95 % interval]", **LOOK)
    _columns(table, "dataset", "n", *_quality_names(k, summary.quality[MACRO].pass_at))
    for dataset, quality in summary.quality.items():
        if dataset == MACRO:
            table.add_section()
        table.add_row(printable(dataset), str(quality.questions), *_quality_cells(quality, k))
    return table


def beside_table(summary: RunSummary) -> Table:
    """What is reported beside the score and is never the score, one row per dataset."""
    table = Table(title="beside the score, in % [95 % interval]: never the score itself", **LOOK)
    _columns(
        table, "dataset", "EM", "loose\nspelling", f"{RULES}\nanswers", "bound: all\nformats repaired", "answer\ncovers gold"
    )
    for dataset, quality in summary.quality.items():
        if dataset == MACRO:
            table.add_section()
        columns = (
            quality.exact_match, quality.loose_exact_match, quality.lenient_exact_match, quality.repaired_exact_match,
            quality.cover_exact_match,
        )  # fmt: skip
        table.add_row(printable(dataset), *map(percent, columns))
    return table


def behaviour_table(summary: RunSummary) -> Table:
    """What the team did and used, one row per dataset."""
    table = Table(title="behaviour: shares in %, the rest per episode, [95 % interval]", **LOOK)
    _columns(table, "dataset", *BEHAVIOUR_NAMES)
    for dataset, behaviour in summary.behaviour.items():
        if dataset == "all":
            table.add_section()
        table.add_row(printable(dataset), *_behaviour_cells(behaviour))
    return table


def team_tables(summaries: Sequence[RunSummary]) -> tuple[Table, Table]:
    """Several runs over the same questions, one row per run: macro quality, and behaviour over all episodes."""
    k = summaries[0].samples
    quality = Table(title="quality in %, macro, [95 % interval]", **LOOK)
    _columns(quality, "team", *_quality_names(k, summaries[0].quality[MACRO].pass_at))
    behaviour = Table(title="behaviour: shares in %, the rest per episode, [95 % interval]", **LOOK)
    _columns(behaviour, "team", *BEHAVIOUR_NAMES)
    for summary in summaries:
        quality.add_row(summary.team, *_quality_cells(summary.quality[MACRO], k))
        behaviour.add_row(summary.team, *_behaviour_cells(summary.behaviour["all"]))
    return quality, behaviour


def print_summary(summary: RunSummary, console: Console) -> None:
    """Both tables, then how episodes ended and which turns failed their format."""
    everything = summary.behaviour["all"]
    named = f"{summary.team} · {summary.model} · scorer {summary.scorer}"
    console.print(f"{printable(named)} · {everything.episodes} episodes")
    print_tables(console, quality_table(summary), beside_table(summary), behaviour_table(summary))
    console.print("endings: " + ", ".join(f"{reason} {count}" for reason, count in everything.stop_reasons.items()))
    for role, use in summary.roles.items():
        if use.format_failures:
            kinds = ", ".join(f"{kind} {count}" for kind, count in use.format_failures.items())
            console.print(f"format failures of {role}: {kinds}")
    if missing := everything.stop_reasons.get(NOT_PLAYED):
        console.print(f"not played: {missing} episodes of an unfinished run; they count as wrong, without searches and tokens")
    if everything.unscorable:
        console.print(
            f"unscorable: {everything.unscorable} episodes have golden answers that normalise to nothing; they score 0"
        )


def _columns(table: Table, first: str, *others: str) -> None:
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)


def _quality_names(k: int, fewer_attempts: Iterable[str]) -> list[str]:
    return (
        ["EM", "F1"]
        if k == 1
        else [f"EM avg@{k}", *(f"pass@{fewer}" for fewer in fewer_attempts), f"pass@{k}", f"all-{k}", "F1"]
    )


def _quality_cells(quality: Quality, k: int) -> list[str]:
    several = [] if k == 1 else [percent(one) for one in (*quality.pass_at.values(), quality.pass_at_k, quality.all_k_right)]
    return [percent(quality.exact_match), *several, percent(quality.f1)]


def _behaviour_cells(behaviour: Behaviour) -> list[str]:
    shown = (("answered", 100, 1), ("no_search", 100, 1), ("searches", 1, 2), ("steps", 1, 2), ("input_tokens", 1, 0),
             ("output_tokens", 1, 0))  # fmt: skip
    return [_mean(behaviour, name, scale, digits) for name, scale, digits in shown]


def _mean(behaviour: Behaviour, name: str, scale: int, digits: int) -> str:
    value: float | None = getattr(behaviour, name)
    if value is None:
        return "unknown"
    low, high = (f"{scale * end:,.{digits}f}" for end in behaviour.intervals[name])
    return f"{scale * value:,.{digits}f}\n[{low}, {high}]"
