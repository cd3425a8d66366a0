"""The evaluations of a run side by side: quality with intervals, and paired differences to their baselines.

Knows summaries and scores of finished evaluations; nothing of training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from searchparty.errors import UserError
from searchparty.evaluation.intervals import Interval, bootstrap_means
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.files import atomic_output, read_json, read_jsonl, write_json
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
    scores = {name: question_scores(RunDirectory(run.evaluation(name)).scores_file) for name in stages}
    rows = [_compare(run, name, stage, stages, scores) for name, stage in stages.items()]
    write_json(run.path / "report.json", [asdict(row) for row in rows])
    with atomic_output(run.path / "report.md") as stream:
        stream.write(as_markdown(rows))
    return rows


def read_report(run: TrainDirectory) -> list[Compared]:
    """The report that was written; empty if there is none."""
    file = run.path / "report.json"
    return [Compared(**row) for row in read_json(file, list)] if file.is_file() else []


def question_scores(scores_file: Path) -> dict[str, dict[str, float]]:
    """Dataset to question to avg@k of exact match. Raises UserError if the file is missing or damaged."""
    found: dict[str, dict[str, list[float]]] = {}
    for number, episode in read_jsonl(scores_file):
        try:
            dataset, key, exact_match = str(episode["dataset"]), str(episode["question_key"]), float(episode["exact_match"])
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{scores_file}:{number}: no score ({error!r}); make the file anew: searchparty score {scores_file.parent}"
            ) from None
        found.setdefault(dataset, {}).setdefault(key, []).append(exact_match)
    return {
        dataset: {key: sum(values) / len(values) for key, values in questions.items()} for dataset, questions in found.items()
    }


def paired_difference(
    ours: Mapping[str, Mapping[str, float]], theirs: Mapping[str, Mapping[str, float]]
) -> tuple[float, Interval]:
    """Macro mean of the differences per question, and its 95 % interval from a bootstrap stratified by dataset.

    Raises:
        ValueError: the two did not answer the same questions.
    """
    if {name: set(keys) for name, keys in ours.items()} != {name: set(keys) for name, keys in theirs.items()}:
        raise ValueError("the two evaluations asked other questions, so they cannot be paired")
    differences = {
        dataset: np.array([value - theirs[dataset][key] for key, value in sorted(questions.items())])
        for dataset, questions in sorted(ours.items())
    }
    intervals = bootstrap_means(differences)
    return float(np.mean([values.mean() for values in differences.values()])), intervals.macro


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
    low, high = row.exact_match_interval
    difference = "–"
    if row.difference is not None and row.difference_interval is not None:
        ends = row.difference_interval
        difference = f"{100 * row.difference:+.1f} [{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}] to {row.baseline}"
    return [
        row.title,
        f"{100 * row.exact_match:.1f} [{100 * low:.1f}, {100 * high:.1f}]",
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
    scores: Mapping[str, dict[str, dict[str, float]]],
) -> Compared:
    summary: dict[str, Any] = read_json(RunDirectory(run.evaluation(name)).summary_file, dict)
    quality, behaviour = summary["quality"]["macro"], summary["behaviour"]["all"]
    difference = interval = None
    if stage.baseline is not None:
        difference, ends = paired_difference(scores[name], scores[stage.baseline])
        interval = (ends.low, ends.high)
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
