"""What a sweep found: a row for every evaluation of every value, as data, as a table, and as curves of quality over cost.

Reads finished evaluations; trains nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from searchparty.credit.planner_rewards import PlannerCosts, workflow_cost
from searchparty.episodes.store import read_episodes
from searchparty.episodes.types import Episode
from searchparty.errors import missing_package
from searchparty.evaluation.estimates import Estimate
from searchparty.evaluation.intervals import bootstrap_means
from searchparty.evaluation.question_scores import (
    Columns,
    QuestionScores,
    columns,
    macro,
    question_scores,
    read_question_scores,
)
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.files import atomic_output, read_jsonl, write_json
from searchparty.training.recipe import EvalStage, RLStage, TrainRecipe
from searchparty.training.run_directory import TrainDirectory


@dataclass(frozen=True)
class Point:
    """One evaluation at one value. Means are over questions, macro over datasets."""

    value: Any
    seed: int
    evaluation: str
    """Name of the stage."""
    title: str
    questions: int
    samples: int
    exact_match: float
    f1: float
    f1_low: float
    """95 % interval, by drawing the questions of each dataset again."""
    f1_high: float
    f1_joined: float
    searches: float
    input_tokens: float | None
    output_tokens: float | None
    planner_cost: float | None
    """CP of an episode, summed over its questions and sub-questions; None for teams without workflows, like the five below."""
    token_cost: float | None
    turn_cost: float | None
    search_cost: float | None
    planner_turns: float | None
    """Questions and sub-questions with a workflow, planned or fixed."""
    invalid_workflows: float | None
    """Share of them."""

    @property
    def f1_shown(self) -> str:
        """In points, with its interval."""
        return Estimate(self.f1, self.f1_low, self.f1_high).text(100, 1)

    @property
    def cost(self) -> float:
        """What the curves show as cost: the planner's, or searches where there is no planner."""
        return self.searches if self.planner_cost is None else self.planner_cost


def measure_run(run: TrainDirectory, recipe: TrainRecipe, value: Any) -> list[Point]:
    """A point for every evaluation of a finished run, in the order of its recipe."""
    costs = costs_of(recipe)
    return [
        _point(RunDirectory(run.evaluation(name)), name, spec, value, recipe.seed, costs)
        for name, spec in recipe.stages.items()
        if isinstance(spec, EvalStage)
    ]


def costs_of(recipe: TrainRecipe) -> PlannerCosts:
    """How the recipe's first rl stage computes the cost of a workflow; as the paper does, if there is none."""
    stages = [spec for spec in recipe.stages.values() if isinstance(spec, RLStage)]
    return stages[0].credit.planner_costs if stages else PlannerCosts()


def question_values(run: RunDirectory, costs: PlannerCosts) -> dict[str, QuestionScores]:
    """`f1` and `planner_cost` of an evaluation by question."""
    return {
        "f1": read_question_scores(run.scores_file, "f1"),
        "planner_cost": question_scores(_cost_rows(run, costs), "planner_cost", run.episodes_file),
    }


def write_sweep(directory: Path, name: str, points: Sequence[Point]) -> None:
    """Write `points.json`, `points.csv` and `sweep.md`, and the curves if matplotlib is there."""
    write_json(directory / "points.json", [asdict(point) for point in points])
    with atomic_output(directory / "points.csv") as stream:
        rows = csv.DictWriter(stream, [name if field.name == "value" else field.name for field in fields(Point)])
        rows.writeheader()
        rows.writerows({name if key == "value" else key: entry for key, entry in asdict(point).items()} for point in points)
    with atomic_output(directory / "sweep.md") as stream:
        stream.write(as_markdown(name, points))


def as_markdown(name: str, points: Sequence[Point]) -> str:
    """The points as a table that is read in plain text as well."""
    columns = (
        name, "seed", "system", "F1 [95 %]", "EM", "F1 joined", "cost CP", "tokens", "turns", "search", "planner turns",
        "invalid", "searches",
    )  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for point in points:
        costs = [point.planner_cost, point.token_cost, point.turn_cost, point.search_cost, point.planner_turns]
        shown = ["–" if cost is None else f"{cost:.2f}" for cost in costs]
        invalid = "–" if point.invalid_workflows is None else f"{100 * point.invalid_workflows:.1f}"
        cells = [
            str(point.value), str(point.seed), point.title, point.f1_shown, f"{100 * point.exact_match:.1f}",
            f"{100 * point.f1_joined:.1f}", *shown, invalid, f"{point.searches:.2f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\nShares in %; costs, turns and searches per question; macro over datasets.\n"


def draw_curves(directory: Path, name: str, points: Sequence[Point]) -> Path:
    """`curves.png`: quality over cost, and both over the value. Raises UserError if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_package("matplotlib", "plot", "drawing curves") from None
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    plane, course = figure.subplots(1, 2)
    has_planner = any(point.planner_cost is not None for point in points)
    for title in dict.fromkeys(point.title for point in points):
        own = [point for point in points if point.title == title]
        below = [point.f1 - point.f1_low for point in own]
        above = [point.f1_high - point.f1 for point in own]
        costs, quality = [point.cost for point in own], [point.f1 for point in own]
        is_curve = len({(point.cost, point.f1) for point in own}) > 1
        plane.errorbar(costs, quality, yerr=[below, above], fmt="o-" if is_curve else "s", label=title, capsize=2, alpha=0.8)
        if is_curve:
            for point in own:
                plane.annotate(str(point.value), (point.cost, point.f1), textcoords="offset points", xytext=(5, 5), fontsize=8)
            places = [str(point.value) for point in own]
            course.plot(places, quality, "o-", label=f"{title}: F1")
            course.plot(places, costs, "x--", label=f"{title}: cost")
    plane.set(xlabel="cost CP per question" if has_planner else "searches per question", ylabel="F1 [95 %]")
    course.set(xlabel=name, ylabel="F1; cost")
    for axes in (plane, course):
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    place = directory / "curves.png"
    with atomic_output(place, "wb") as stream:
        figure.savefig(stream, format="png", dpi=150)
    return place


def _point(run: RunDirectory, name: str, spec: EvalStage, value: Any, seed: int, costs: PlannerCosts) -> Point:
    scores = list(read_jsonl(run.scores_file))

    def values(field: str) -> Columns:
        return columns(question_scores(scores, field, run.scores_file))

    f1 = values("f1")
    interval = bootstrap_means(f1).macro
    planned = _planner_costs(run, costs)
    return Point(
        value=value,
        seed=seed,
        evaluation=name,
        title=spec.title or name,
        questions=sum(len(values) for values in f1.values()),
        samples=spec.samples,
        exact_match=macro(values("exact_match")),
        f1=macro(f1),
        f1_low=interval.low,
        f1_high=interval.high,
        f1_joined=macro(values("f1_joined")),
        searches=macro(values("searches")),
        input_tokens=_tokens([score for _, score in scores], "input_tokens"),
        output_tokens=_tokens([score for _, score in scores], "output_tokens"),
        **{key: None if planned is None else planned[key] for key in PLANNED},
    )


PLANNED = ("planner_cost", "token_cost", "turn_cost", "search_cost", "planner_turns", "invalid_workflows")


def _planner_costs(run: RunDirectory, costs: PlannerCosts) -> dict[str, float] | None:
    """The fields of a point that speak of the planner; None if no episode has a planner's turn."""
    rows = _cost_rows(run, costs)
    turns = sum(row["planner_turns"] for _, row in rows)
    if not turns:
        return None
    found = {
        key: macro(columns(question_scores(rows, key, run.episodes_file))) for key in PLANNED if key != "invalid_workflows"
    }
    return {**found, "invalid_workflows": sum(row["invalid_workflows"] for _, row in rows) / turns}


def _cost_rows(run: RunDirectory, costs: PlannerCosts) -> list[tuple[int, dict[str, Any]]]:
    """The costs of every episode, numbered, each once: its latest attempt."""
    latest = {(one.question_key, one.sample): one for one in read_episodes(run.episodes_file, allow_torn_end=True)}
    named = ({"dataset": one.dataset, "question_key": one.question_key, **episode_costs(one, costs)} for one in latest.values())
    return list(enumerate(named, start=1))


def episode_costs(episode: Episode, costs: PlannerCosts) -> dict[str, Any]:
    """What the planner's turns of one episode cost, summed."""
    parts = [workflow_cost(episode, turn, costs) for turn in episode.planner_turns]
    tokens, turns, search = (sum(column) for column in zip(*parts, strict=True)) if parts else (0.0, 0.0, 0.0)
    return {
        "planner_cost": sum(map(costs.weighed, parts)),
        "token_cost": tokens,
        "turn_cost": turns,
        "search_cost": search,
        "planner_turns": len(parts),
        "invalid_workflows": sum(turn.broken_rule is not None for turn in episode.planner_turns),
    }


def _tokens(scores: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Tokens of all roles per episode; None where a model does not say."""
    counts = [[role[key] for role in score["roles"].values()] for score in scores]
    if any(count is None for row in counts for count in row):
        return None
    return float(np.mean([sum(row) for row in counts]))
