"""Evaluations of teams that carry out workflows, by quality and cost: `workflows.json` and `workflows.md` of a run.

Reads finished evaluations; trains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from searchparty.evaluation.estimates import Estimate, estimate_means
from searchparty.evaluation.intervals import MACRO
from searchparty.evaluation.question_scores import paired_differences
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.files import atomic_output, write_json
from searchparty.training.recipe import EvalStage, TrainRecipe
from searchparty.training.run_directory import TrainDirectory
from searchparty.training.sweep_report import Point, costs_of, measure_run, question_values


@dataclass(frozen=True)
class ComparedWorkflows:
    """One evaluation, and how far it is from its baseline."""

    point: Point
    baseline: str | None
    f1: Estimate | None
    """F1 less the baseline's, macro over datasets, paired by question; None without a baseline, like `cost`."""
    cost: Estimate | None
    """Cost CP less the baseline's."""


def write_workflow_report(run: TrainDirectory, recipe: TrainRecipe) -> list[ComparedWorkflows]:
    """Compare a finished run's evaluations; nothing is written if none of them carried out workflows."""
    points = [point for point in measure_run(run, recipe, None) if point.planner_cost is not None]
    if not points:
        return []
    costs = costs_of(recipe)
    values = {one.evaluation: question_values(RunDirectory(run.evaluation(one.evaluation)), costs) for one in points}
    rows = []
    for point in points:
        stage = recipe.stages[point.evaluation]
        baseline = stage.baseline if isinstance(stage, EvalStage) else None
        if baseline not in values:
            rows.append(ComparedWorkflows(point, None, None, None))
            continue
        ours, theirs = values[point.evaluation], values[baseline]
        title = next(one.title for one in points if one.evaluation == baseline)
        f1, cost = (estimate_means(paired_differences(ours[key], theirs[key]))[MACRO] for key in ("f1", "planner_cost"))
        rows.append(ComparedWorkflows(point, title, f1, cost))
    write_json(run.path / "workflows.json", [asdict(row) for row in rows])
    with atomic_output(run.path / "workflows.md") as stream:
        stream.write(as_markdown(rows))
    return rows


def as_markdown(rows: Sequence[ComparedWorkflows]) -> str:
    """The rows as a table that is read in plain text as well."""
    columns = (
        "system",
        "F1 [95 %]",
        "EM",
        "cost CP",
        "planner turns",
        "searches",
        "invalid",
        "F1 to baseline",
        "cost to baseline",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        point = row.point
        assert point.planner_cost is not None and point.planner_turns is not None and point.invalid_workflows is not None
        cells = [
            point.title, point.f1_shown,
            f"{100 * point.exact_match:.1f}", f"{point.planner_cost:.2f}", f"{point.planner_turns:.2f}",
            f"{point.searches:.2f}", f"{100 * point.invalid_workflows:.1f}",
            _shown(row.f1, 100, 1), _shown(row.cost, 1, 2),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    baselines = sorted({row.baseline for row in rows if row.baseline is not None})
    note = f"; differences [95 %, paired] to {', '.join(baselines)}" if baselines else ""
    return "\n".join(lines) + f"\n\nShares in %; costs, turns and searches per question; macro over datasets{note}.\n"


def _shown(one: Estimate | None, scale: int, digits: int) -> str:
    return "–" if one is None else one.text(scale, digits, signed=True)
