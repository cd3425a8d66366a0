"""One score per question: means over its samples, paired differences between two systems, and means over datasets.

Whatever compares systems starts here. A table of scores is dataset → question key → mean of the question's samples; statistics
take its columns, dataset → values in the order of question keys. Knows rows of scores, not where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from searchparty.errors import UserError
from searchparty.evaluation.intervals import FloatArray
from searchparty.files import read_jsonl

QuestionScores = dict[str, dict[str, float]]
"""Dataset to question key to the mean score of the question's samples."""
Columns = dict[str, FloatArray]
"""Dataset to one value per question, in the order of question keys."""


def read_question_scores(scores_file: Path, field: str) -> QuestionScores:
    """The means of one field of a file of scored episodes. UserError names the damaged line, or the file that is missing."""
    return question_scores(read_jsonl(scores_file), field, scores_file)


def question_scores(rows: Iterable[tuple[int, Mapping[str, Any]]], field: str, source: Path) -> QuestionScores:
    """The means of one field of numbered rows with `dataset` and `question_key`. UserError for a row without the field."""
    found: dict[str, dict[str, list[float]]] = {}
    for number, row in rows:
        try:
            dataset, key, value = str(row["dataset"]), str(row["question_key"]), float(row[field])
            if not isfinite(value):
                raise ValueError(f"{value} is no score")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{source}:{number}: no {field} ({error!r}); make the file anew: searchparty score {source.parent}"
            ) from None
        found.setdefault(dataset, {}).setdefault(key, []).append(value)
    return {
        dataset: {key: sum(values) / len(values) for key, values in sorted(questions.items())}
        for dataset, questions in sorted(found.items())
    }


def columns(scores: QuestionScores) -> Columns:
    """The values alone."""
    return {dataset: np.array([questions[key] for key in sorted(questions)]) for dataset, questions in sorted(scores.items())}


def paired_differences(ours: QuestionScores, theirs: QuestionScores) -> Columns:
    """Our score less theirs, question by question. ValueError if the two did not answer the same questions."""
    if {name: set(keys) for name, keys in ours.items()} != {name: set(keys) for name, keys in theirs.items()}:
        raise ValueError("the two evaluations asked other questions, so they cannot be paired")
    first, second = columns(ours), columns(theirs)
    return {dataset: first[dataset] - second[dataset] for dataset in first}


def macro(values_Q_by_dataset: Mapping[str, FloatArray]) -> float:
    """The mean over datasets, each with equal weight."""
    return float(np.mean([values.mean() for values in values_Q_by_dataset.values()]))
