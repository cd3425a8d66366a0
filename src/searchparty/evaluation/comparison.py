"""Several evaluations of the same questions against one of them: differences with intervals, tests, costs, and flips to read.

Reads finished runs and samples nothing. The question is the unit: its samples stay together, and two runs are paired by it.
Whatever an episode ended as, it counts (contract 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from searchparty.errors import UserError
from searchparty.evaluation.costs.reading import read_costs
from searchparty.evaluation.estimates import Estimate, estimate_differences, estimate_means, estimate_rates
from searchparty.evaluation.intervals import MACRO, MICRO
from searchparty.evaluation.question_scores import Columns, QuestionScores, columns, paired_differences, question_scores
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.run_folder import flat
from searchparty.evaluation.scoring import NOT_PLAYED
from searchparty.evaluation.significance import holm, mcnemar_exact, randomisation_p, smallest_detectable
from searchparty.files import read_json, read_jsonl

METRICS = ("exact_match", "f1", "f1_joined")
"""What may be compared."""
SHOWN = 3
"""Questions named in an error; the rest is counted."""


@dataclass(frozen=True)
class Run:
    """What of one run is compared."""

    name: str
    scores: QuestionScores
    texts: dict[str, str]
    """Question to the answer of its first sample, or why there is none."""
    failed: int
    """Episodes that a service failed, or that an unfinished run lacks; they count as wrong."""
    searches: float
    output_tokens: float | None
    input_tokens: float | None
    usd: float | None
    """Per episode; None without prices, if their file is gone, or where a model does not say how many tokens it used."""
    intervals: dict[str, tuple[float, float]]
    """95 %, of those of these means per episode that are known, by name."""
    samples: int
    """Attempts per question."""
    setting: dict[str, str]
    """What should be equal in runs that are compared: scorer, questions, retriever, sampling."""


@dataclass(frozen=True)
class Comparison:
    """One run beside the first."""

    name: str
    means: dict[str, Estimate]
    """Dataset, then `macro` and the other `pools`."""
    differences: dict[str, Estimate]
    """Less the first run's; paired."""
    wins: int
    ties: int
    losses: int
    """Questions on which it scored more, the same, less than the first."""
    p: float
    """Randomisation test of the macro difference; exact McNemar for one sample of one dataset."""
    test: str
    """Which of the two."""
    adjusted_p: float
    """By Holm over all comparisons, but the primary one, which is p itself."""
    primary: bool
    """Whether this is the comparison that was to be shown."""
    detectable: float
    """The macro difference that these questions would have shown with a power of 80 %."""
    failed: int
    searches: float
    input_tokens: float | None
    output_tokens: float | None
    usd: float | None
    intervals: dict[str, tuple[float, float]]
    """95 %, of those of the means per episode above that are known, by name."""
    flips: list[tuple[str, str, str]] = field(default_factory=list)
    """Questions on which the two differ most: key, the first run's answer, this one's."""


def usual_metric(path: Path) -> str:
    """What the protocol of a run compares first; exact match without a protocol or a run."""
    place = RunDirectory(path).environment_file
    protocol = read_json(place, dict).get("protocol") if place.is_file() else None
    return str(protocol["document"]["metric"]) if protocol else METRICS[0]


def read_run(path: Path, metric: str) -> Run:
    """What is compared of a finished evaluation.

    Raises:
        UserError: it is none, is unfinished, or has no scores.
    """
    directory = RunDirectory(path)
    recipe = directory.read_recipe()
    if not directory.scores_file.is_file() or not directory.summary_file.is_file():
        raise UserError(f"{path}: was not finished; resume it, or score what is there: searchparty score {path} --unfinished")
    rows = list(read_jsonl(directory.scores_file))
    scores = question_scores(rows, metric, directory.scores_file)
    texts: dict[str, str] = {}
    for _, row in rows:
        texts.setdefault(str(row["question_key"]), str(row["answer"] or f"({row['problem'] or row['stop_reason']})"))
    behaviour = read_json(directory.summary_file, lambda summary: summary["behaviour"]["all"])
    environment = read_json(directory.environment_file, dict)
    protocol = environment.get("protocol") or {}
    setting = {
        "protocol": f"{protocol['name']} version {protocol['version']}" if protocol else "none",
        **{f"protocol {key}": str(value) for key, value in flat(protocol.get("document", {})).items()},
        "scorer": str(read_json(directory.summary_file, lambda summary: summary["scorer"])),
        "retriever": str(environment.get("retriever")),
        "temperature": str(recipe.sampling.temperature),
        "max_tokens": str(recipe.sampling.max_tokens),
        "samples": str(recipe.samples),
    }
    usd = _usd(path) if recipe.prices is not None and recipe.prices.is_file() else None
    intervals = {name: (float(low), float(high)) for name, (low, high) in behaviour.get("intervals", {}).items()}
    return Run(
        name=str(path),
        scores=scores,
        texts=texts,
        failed=behaviour["service_failures"] + behaviour["stop_reasons"].get(NOT_PLAYED, 0),
        searches=behaviour["searches"],
        output_tokens=behaviour["output_tokens"],
        input_tokens=behaviour["input_tokens"],
        usd=None if usd is None else usd.value,
        intervals=intervals if usd is None else {**intervals, "usd": (usd.low, usd.high)},
        samples=recipe.samples,
        setting=setting,
    )


def _usd(path: Path) -> Estimate | None:
    """Mean cost of an episode at the prices of the run's own recipe; None if some episode's is not known."""
    pairs = read_costs(path, None)[0]
    if any(costed.usd is None for costed, _ in pairs):
        return None
    rows = [{"dataset": one.dataset, "question_key": one.question_key, "usd": costed.usd} for costed, one in pairs]
    found = estimate_means(columns(question_scores(enumerate(rows, start=1), "usd", path)))
    return found.get(MICRO, found[MACRO])


def differences_of_setting(runs: Sequence[Run]) -> list[str]:
    """One line for each thing that is not equal in all runs."""
    lines = []
    for key in dict.fromkeys(key for run in runs for key in run.setting):
        values = {run.name: run.setting.get(key, "not said") for run in runs}
        if len(set(values.values())) > 1:
            lines.append(f"{key} differs: " + "; ".join(f"{name} {value}" for name, value in values.items()))
    return lines


def check_same_questions(runs: Sequence[Run]) -> None:
    """Raises UserError with a line for each run that lacks questions of another."""
    every = {key for run in runs for questions in run.scores.values() for key in questions}
    lines = []
    for run in runs:
        missing = sorted(every - {key for questions in run.scores.values() for key in questions})
        if missing:
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            lines.append(f"{run.name}: lacks {len(missing)} questions of the others: {', '.join(missing[:SHOWN])}{more}")
    if lines:
        raise UserError(*lines, "runs can be compared only over the same questions; run them again over one file")


def compare(runs: Sequence[Run], *, flips: int = 0, primary: int = 1) -> list[Comparison]:
    """All runs beside the first.

    Args:
        runs: the first is what the others are compared with.
        flips: most questions to list on which each differs from the first.
        primary: place of the run whose comparison was to be shown, as declared beforehand: its p stays as it is, those of the
            others are corrected.

    Raises:
        UserError: they did not ask the same questions.
    """
    check_same_questions(runs)
    first = runs[0]
    rows = [_against(first, run, flips) for run in runs]
    secondary = [number for number in range(1, len(rows)) if number != primary]
    for number, p in zip(secondary, holm([rows[number].p for number in secondary]), strict=True):
        rows[number] = replace(rows[number], adjusted_p=p, primary=False)
    return rows


def _against(first: Run, run: Run, flips: int) -> Comparison:
    paired = paired_differences(run.scores, first.scores)
    everything = np.concatenate(list(paired.values()))
    p, test = _test(first, run, paired)
    return Comparison(
        name=run.name,
        means=estimate_rates(columns(run.scores)),
        differences=estimate_differences(paired),
        wins=int((everything > 0).sum()),
        ties=int((everything == 0).sum()),
        losses=int((everything < 0).sum()),
        p=p,
        test=test,
        adjusted_p=p,
        primary=run is not first,
        detectable=smallest_detectable(paired),
        failed=run.failed,
        searches=run.searches,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        usd=run.usd,
        intervals=run.intervals,
        flips=_flips(first, run, flips),
    )


def _test(first: Run, run: Run, paired: Columns) -> tuple[float, str]:
    values = np.concatenate(list(paired.values()))
    if len(paired) == 1 and first.samples == run.samples == 1 and set(np.unique(values)) <= {-1.0, 0.0, 1.0}:
        return mcnemar_exact(int((values > 0).sum()), int((values < 0).sum())), "McNemar"
    return randomisation_p(paired), "randomisation"


def _flips(first: Run, run: Run, count: int) -> list[tuple[str, str, str]]:
    differences = {
        key: value - first.scores[dataset][key] for dataset, questions in run.scores.items() for key, value in questions.items()
    }
    chosen = sorted((key for key, value in differences.items() if value), key=lambda key: (-abs(differences[key]), key))
    return [(key, first.texts[key], run.texts[key]) for key in chosen[:count]]
