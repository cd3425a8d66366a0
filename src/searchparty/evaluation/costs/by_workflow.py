"""Quality beside cost, one row for each workflow that was chosen: what a planner's choices are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from searchparty.costs.prices import Prices
from searchparty.costs.spending import Spending, spending_of, workflow_of
from searchparty.episodes.types import Episode
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


@dataclass(frozen=True, slots=True)
class Costed:
    """One episode with its score and what it used; small, so that a large run is never in memory as a whole."""

    workflow: str
    spent: Spending
    usd: float | None


def costed(episode: Episode, prices: Prices | None) -> Costed:
    """What of an episode the table needs."""
    spent = spending_of(episode)
    return Costed(workflow_of(episode), spent, None if prices is None else spent.usd(prices))


def by_workflow(pairs: Sequence[tuple[Costed, ScoredEpisode]]) -> list[WorkflowRow]:
    """A row for each workflow, the most frequent first, and the row `all`. Raises ValueError for no episode."""
    if not pairs:
        raise ValueError("no episode")
    groups: dict[str, list[tuple[Costed, ScoredEpisode]]] = {}
    for pair in pairs:
        groups.setdefault(pair[0].workflow, []).append(pair)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [_row(name, group, len(pairs)) for name, group in [*ordered, (ALL, list(pairs))]]


def workflow_table(rows: Sequence[WorkflowRow]) -> Table:
    """The rows for the terminal."""
    table = Table(title="by workflow: quality in %, the rest per question", **LOOK)
    names = ("workflow", "episodes", "%", "EM", "F1", "searches", "turns", "tokens", "USD")
    for name in names:
        table.add_column(name, justify="left" if name == "workflow" else "right")
    for row in rows:
        if row.workflow == ALL:
            table.add_section()
        table.add_row(
            row.workflow, str(row.episodes), f"{100 * row.share:.1f}", f"{100 * row.exact_match:.1f}", f"{100 * row.f1:.1f}",
            f"{row.searches:.2f}", f"{row.turns:.2f}", _number(row.tokens, ".0f"), _number(row.usd, ".6f"),
        )  # fmt: skip
    return table


def _row(name: str, group: Sequence[tuple[Costed, ScoredEpisode]], total: int) -> WorkflowRow:
    def mean(values: Sequence[Any]) -> float | None:
        return None if any(value is None for value in values) else float(sum(values) / len(values))

    def known(values: Sequence[float]) -> float:
        return float(sum(values) / len(values))

    scores, costs = [score for _, score in group], [cost for cost, _ in group]
    return WorkflowRow(
        workflow=name,
        episodes=len(group),
        share=len(group) / total,
        exact_match=known([score.exact_match for score in scores]),
        f1=known([score.f1 for score in scores]),
        f1_joined=known([score.f1_joined for score in scores]),
        searches=known([cost.spent.searches for cost in costs]),
        turns=known([cost.spent.turns for cost in costs]),
        tokens=mean([cost.spent.tokens for cost in costs]),
        usd=mean([cost.usd for cost in costs]),
    )


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
