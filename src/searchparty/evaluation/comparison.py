"""Several evaluations of the same questions against one of them: differences with intervals, tests, costs, and flips to read.

Knows what `compared_runs` reads. The question is the unit: its samples stay together, and two runs are paired by it.
Whatever an episode ended as, it counts (contract 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from searchparty.evaluation.compared_runs import Run, check_same_questions
from searchparty.evaluation.estimates import Estimate, estimate_differences, estimate_rates
from searchparty.evaluation.question_scores import Columns, columns, paired_differences
from searchparty.evaluation.significance import holm, mcnemar_exact, randomisation_p, smallest_detectable


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
    detectable: float | None
    """The macro difference that these questions would have shown with a power of 80 %; None where that cannot be told, since
    no question tells the two apart or a dataset has one question."""
    failed: int
    searches: float
    input_tokens: float | None
    output_tokens: float | None
    usd: float | None
    intervals: dict[str, tuple[float, float]]
    """95 %, of those of the means per episode above that are known, by name."""
    flips: list[tuple[str, str, str]] = field(default_factory=list)
    """Questions on which the two differ most: key, the first run's answer, this one's."""


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
    detectable = smallest_detectable(paired)
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
        detectable=detectable if 0 < detectable < inf else None,
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
