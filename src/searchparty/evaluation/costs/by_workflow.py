"""Quality beside cost, one row for each workflow that was chosen: what a planner's choices are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from searchparty.costs.prices import Prices
from searchparty.costs.spending import Spending, spending_of, workflow_of
from searchparty.episodes.printable import printable
from searchparty.episodes.types import Episode
from searchparty.evaluation.intervals import FloatArray
from searchparty.evaluation.ratio_intervals import rate_interval, ratio_interval
from searchparty.evaluation.scoring import ScoredEpisode
from searchparty.evaluation.wide_tables import LOOK

ALL = "all"


@dataclass(frozen=True, slots=True)
class WorkflowRow:
    """The episodes whose own question was answered by one workflow. Means are per episode."""

    workflow: str
    episodes: int
    share: float
    exact_match: float
    f1: float
    f1_joined: float
    searches: float
    turns: float
    tokens: float | None
    usd: float | None
    """None without prices, or where a model does not say how many tokens it used."""
    intervals: dict[str, tuple[float, float]]
    """95 %, of every mean above that is known and of the share of a single workflow, by drawing questions again."""


@dataclass(frozen=True, slots=True)
class Costed:
    """One episode with its score and what it used; small, so that a large run is never in memory as a whole."""

    workflow: str
    spent: Spending
    usd: float | None


Pair = tuple[Costed, ScoredEpisode]


def costed(episode: Episode, prices: Prices | None) -> Costed:
    """What of an episode the table needs."""
    spent = spending_of(episode)
    return Costed(workflow_of(episode), spent, None if prices is None else spent.usd(prices))


def by_workflow(pairs: Sequence[Pair]) -> list[WorkflowRow]:
    """A row for each workflow, the most frequent first, and the row `all`. Raises ValueError for no episode."""
    if not pairs:
        raise ValueError("no episode")
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair[0].workflow, []).append(pair)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [_row(name, group, pairs) for name, group in [*ordered, (ALL, list(pairs))]]


def workflow_table(rows: Sequence[WorkflowRow]) -> Table:
    """The rows for the terminal."""
    table = Table(title="by workflow: shares and quality in %, the rest per question, [95 % interval]", **LOOK)
    names = ("workflow", "episodes", "%", "EM", "F1", "searches", "turns", "tokens", "USD")
    for name in names:
        table.add_column(name, justify="left" if name == "workflow" else "right")
    shown = {
        "share": (100, 1), "exact_match": (100, 1), "f1": (100, 1), "searches": (1, 2), "turns": (1, 2), "tokens": (1, 0),
        "usd": (1, 6),
    }  # fmt: skip
    for row in rows:
        if row.workflow == ALL:
            table.add_section()
        numbers = [_number(row, name, scale, digits) for name, (scale, digits) in shown.items()]
        table.add_row(printable(row.workflow), str(row.episodes), *numbers)
    return table


def _row(name: str, group: Sequence[Pair], everything: Sequence[Pair]) -> WorkflowRow:
    rates = {
        "exact_match": [score.exact_match for _, score in group],
        "f1": [score.f1 for _, score in group],
        "f1_joined": [score.f1_joined for _, score in group],
    }
    amounts: dict[str, list[float | None]] = {
        "searches": [cost.spent.searches for cost, _ in group],
        "turns": [cost.spent.turns for cost, _ in group],
        "tokens": [cost.spent.tokens for cost, _ in group],
        "usd": [cost.usd for cost, _ in group],
    }
    known = {
        key: numbers
        for key, values in amounts.items()
        if len(numbers := [one for one in values if one is not None]) == len(group)
    }
    chosen = [float(cost.workflow == name) for cost, _ in everything]
    intervals = {
        **({} if name == ALL else {"share": rate_interval(*_by_question(everything, chosen))}),
        **{key: rate_interval(*_by_question(group, values)) for key, values in rates.items()},
        **{key: ratio_interval(*_by_question(group, values)) for key, values in known.items()},
    }
    means = {key: sum(values) / len(values) for key, values in {**rates, **known}.items()}
    return WorkflowRow(
        workflow=name,
        episodes=len(group),
        share=len(group) / len(everything),
        exact_match=means["exact_match"],
        f1=means["f1"],
        f1_joined=means["f1_joined"],
        searches=means["searches"],
        turns=means["turns"],
        tokens=means.get("tokens"),
        usd=means.get("usd"),
        intervals={key: (one.low, one.high) for key, one in intervals.items()},
    )


def _by_question(pairs: Sequence[Pair], values: Sequence[float]) -> tuple[FloatArray, FloatArray, list[str]]:
    """Of each question the sum of its values, its episodes, and its dataset."""
    sums: dict[str, tuple[float, int]] = {}
    datasets: dict[str, str] = {}
    for (_, score), value in zip(pairs, values, strict=True):
        total, count = sums.get(score.question_key, (0.0, 0))
        sums[score.question_key] = total + value, count + 1
        datasets[score.question_key] = score.dataset
    totals_Q, counts_Q = np.array(list(sums.values()), dtype=np.float64).T
    return totals_Q, counts_Q, list(datasets.values())


def _number(row: WorkflowRow, name: str, scale: int, digits: int) -> str:
    value: float | None = getattr(row, name)
    if value is None:
        return "–"
    ends = ", ".join(f"{scale * end:.{digits}f}" for end in row.intervals.get(name, ()))
    return f"{scale * value:.{digits}f}" + (f"\n[{ends}]" if ends else "")
