"""The evaluations of a run side by side: quality with intervals, and paired differences to their baselines.

Knows summaries and scores of finished evaluations; nothing of training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from searchparty.errors import UserError
from searchparty.evaluation.estimates import Estimate, estimate_differences
from searchparty.evaluation.intervals import MACRO
from searchparty.evaluation.question_scores import QuestionScores, paired_differences, read_question_scores
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.files import atomic_output, read_json, write_json
from searchparty.training.overlap import overlap_lines, stage_overlaps
from searchparty.training.recipe import EvalStage, TrainRecipe
from searchparty.training.run_directory import TrainDirectory


@dataclass(frozen=True)
class Compared:
    """One evaluation."""

    stage: str
    title: str
    questions: int
    samples: int
    exact_match: float
    """avg@k, macro over datasets."""
    exact_match_interval: tuple[float, float]
    pass_at_k: float
    answered: float
    no_search: float
    searches: float
    input_tokens: float | None
    output_tokens: float | None
    baseline: str | None
    """Title of what it is compared with."""
    difference: float | None
    """Exact match less the baseline's, macro over datasets; None without a baseline."""
    difference_interval: tuple[float, float] | None
    """95 %, by drawing the questions of each dataset again, the same for both (paired)."""


def write_report(run: TrainDirectory, recipe: TrainRecipe) -> list[Compared]:
    """Compare all evaluations of a run and write `report.json` and `report.md`; nothing is written if there are none."""
    stages = {name: stage for name, stage in recipe.stages.items() if isinstance(stage, EvalStage)}
    if not stages:
        return []
    scores = {name: read_question_scores(RunDirectory(run.evaluation(name)).scores_file, "exact_match") for name in stages}
    rows = [_compare(run, name, stage, stages, scores) for name, stage in stages.items()]
    write_json(run.path / "report.json", [asdict(row) for row in rows])
    try:
        overlaps = stage_overlaps(recipe)
        lines = overlap_lines(overlaps)
        write_json(run.path / "overlap.json", [asdict(one) for one in overlaps])
    except UserError as error:  # the files of questions may be gone by now, and the numbers must not be lost for that
        lines = [f"Overlap of training and evaluation is not known: {line}" for line in error.lines]
    with atomic_output(run.path / "report.md") as stream:
        stream.write(as_markdown(rows) + "".join(f"\n{line}\n" for line in lines))
    return rows


def read_report(run: TrainDirectory) -> list[Compared]:
    """The report that was written; empty if there is none."""
    file = run.path / "report.json"
    return [Compared(**row) for row in read_json(file, list)] if file.is_file() else []


def as_markdown(rows: list[Compared]) -> str:
    """The report as a table that is read in plain text as well."""
    lines = [
        "| system | EM avg@k [95 %] | pass@k | answered | without search | searches | difference [95 %, paired] |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + f"\n\nk = {rows[0].samples}, {rows[0].questions} questions; shares in %; macro over datasets.\n"


def cells(row: Compared) -> list[str]:
    """One row of the report as text."""
    difference = "–"
    if row.difference is not None and row.difference_interval is not None:
        difference = f"{Estimate(row.difference, *row.difference_interval).text(100, 1, signed=True)} to {row.baseline}"
    return [
        row.title,
        Estimate(row.exact_match, *row.exact_match_interval).text(100, 1),
        f"{100 * row.pass_at_k:.1f}",
        f"{100 * row.answered:.1f}",
        f"{100 * row.no_search:.1f}",
        f"{row.searches:.2f}",
        difference,
    ]


def _compare(
    run: TrainDirectory,
    name: str,
    stage: EvalStage,
    stages: Mapping[str, EvalStage],
    scores: Mapping[str, QuestionScores],
) -> Compared:
    summary: dict[str, Any] = read_json(RunDirectory(run.evaluation(name)).summary_file, dict)
    quality, behaviour = summary["quality"]["macro"], summary["behaviour"]["all"]
    difference = interval = None
    if stage.baseline is not None:
        paired = estimate_differences(paired_differences(scores[name], scores[stage.baseline]))[MACRO]
        difference, interval = paired.value, (paired.low, paired.high)
    return Compared(
        stage=name,
        title=stage.title or name,
        questions=quality["questions"],
        samples=summary["samples"],
        exact_match=quality["exact_match"]["value"],
        exact_match_interval=(quality["exact_match"]["low"], quality["exact_match"]["high"]),
        pass_at_k=quality["pass_at_k"]["value"],
        answered=behaviour["answered"],
        no_search=behaviour["no_search"],
        searches=behaviour["searches"],
        input_tokens=behaviour["input_tokens"],
        output_tokens=behaviour["output_tokens"],
        baseline=None if stage.baseline is None else (stages[stage.baseline].title or stage.baseline),
        difference=difference,
        difference_interval=interval,
    )
