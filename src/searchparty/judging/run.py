"""Judging a finished evaluation: `judge.json` beside its summary, and `judge.jsonl` with every verdict.

A secondary column: exact match stays the score. An answer that a question got several times is judged once; an episode without
an answer is wrong without being asked about; so is one whose verdict is not usable, which is listed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from searchparty.errors import UserError
from searchparty.evaluation.intervals import bootstrap_means, wilson_interval
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import scorer_named
from searchparty.files import atomic_output, read_json, read_jsonl, write_json
from searchparty.judging.agreement import Agreement, agreement_of
from searchparty.judging.canaries import make_canaries
from searchparty.judging.judge import AnswerJudge
from searchparty.questions.types import Question

FORMAT = 1
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said of a run."""

    prompt: str
    """Version of the prompt."""
    prompt_digest: str
    model: str
    """Identity of the judge's model."""
    scores_sha256: str
    """Of the scores that it read: after another scoring the column is out of date."""
    right: float
    """Share of answers it calls right, macro over datasets."""
    low: float
    high: float
    """95 %."""
    exact_match: float
    """The score of the same episodes, macro over datasets."""
    agreement: Agreement
    canaries: dict[str, tuple[int, int]]
    """Kind of canary to how many were asked and how many were called right, or got no verdict; the second must be 0."""
    unusable: list[str]
    """A line for every answer without a usable verdict; it counts as wrong."""
    only_judge: list[str]
    """The first answers that are right for the judge alone: to be read."""

    @property
    def failed_canaries(self) -> int:
        """How many canaries did not score 0."""
        return sum(failed for _, failed in self.canaries.values())


async def judge_run(path: Path, judge: AnswerJudge, *, canaries: int = 10) -> Judgement:
    """Judge every answer of a finished evaluation and write what was found.

    Args:
        canaries: of how many questions wrong answers of every kind are asked about as well.

    Raises:
        UserError: the run is none or was not scored.
    """
    directory = RunDirectory(path)
    scorer = scorer_named(directory.read_recipe().scorer)
    if not directory.scores_file.is_file():
        raise UserError(f"{path}: was not finished; resume it, or score what is there with: searchparty score {path}")
    questions = {question.key: question for question in directory.read_questions()}
    rows = [_checked(row, questions, f"{directory.scores_file}:{number}") for number, row in read_jsonl(directory.scores_file)]
    if not rows:
        raise UserError(f"{directory.scores_file}: holds no answer")
    birds = make_canaries(list(questions.values()), scorer, canaries)
    asked = list(dict.fromkeys((row["question_key"], row["answer"]) for row in rows if row["answer"] is not None))
    said = await judge.verdicts(
        [*((questions[key], answer) for key, answer in asked), *((bird.question, bird.answer) for bird in birds)]
    )
    verdicts = dict(zip(asked, said, strict=False))
    counts: dict[str, tuple[int, int]] = {}
    for bird, verdict in zip(birds, said[len(asked) :], strict=True):
        total, failed = counts.get(bird.kind, (0, 0))
        counts[bird.kind] = (total + 1, failed + (verdict is not False))
    judgement = _judgement(directory, judge, rows, verdicts, counts)
    with atomic_output(path / "judge.jsonl", "wb") as stream:
        for (key, answer), verdict in verdicts.items():
            line = {"question_key": key, "answer": answer, "right": verdict if isinstance(verdict, bool) else None}
            stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    write_json(path / "judge.json", {"format": FORMAT, **asdict(judgement)})
    return judgement


def read_judgement(path: Path) -> Judgement | None:
    """What a judge said of a run; None if there is nothing, or if the run was scored again since.

    Raises:
        UserError: the file was written by another version.
    """
    file, scores = path / "judge.json", RunDirectory(path).scores_file
    if not file.is_file() or not scores.is_file():
        return None
    judgement = read_json(file, _parse)
    return judgement if judgement.scores_sha256 == _sha256(scores) else None


def _judgement(
    directory: RunDirectory,
    judge: AnswerJudge,
    rows: Sequence[Mapping[str, Any]],
    verdicts: Mapping[tuple[str, str], bool | str],
    canaries: dict[str, tuple[int, int]],
) -> Judgement:
    opinions = [verdicts.get((row["question_key"], row["answer"])) is True for row in rows]
    right = _by_question(rows, [float(opinion) for opinion in opinions])
    value, low, high = _macro(right)
    alone = dict.fromkeys(
        f"{row['question_key']}: {row['answer']}"
        for row, opinion in zip(rows, opinions, strict=True)
        if opinion and row["exact_match"] < 1
    )
    return Judgement(
        prompt=judge.prompt.version,
        prompt_digest=judge.prompt.digest,
        model=judge.model.identity,
        scores_sha256=_sha256(directory.scores_file),
        right=value,
        low=low,
        high=high,
        exact_match=_macro(_by_question(rows, [float(row["exact_match"]) for row in rows]))[0],
        agreement=agreement_of((opinion, row["exact_match"] == 1) for opinion, row in zip(opinions, rows, strict=True)),
        canaries=canaries,
        unusable=[f"{key}: {verdict}" for (key, _), verdict in verdicts.items() if isinstance(verdict, str)],
        only_judge=list(alone)[:SHOWN],
    )


def _checked(row: dict[str, Any], questions: Mapping[str, Question], where: str) -> dict[str, Any]:
    try:
        known = row["question_key"] in questions
        float(row["exact_match"]), row["answer"], row["dataset"]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{where}: no score ({error!r}); make the file anew with searchparty score") from None
    if not known:
        raise UserError(f"{where}: a score of {row['question_key']}, which the run did not ask; was the file edited?")
    return row


def _by_question(rows: Sequence[Mapping[str, Any]], values: Sequence[float]) -> dict[str, Any]:
    """Dataset to the mean of each question over its samples."""
    found: dict[str, dict[str, list[float]]] = {}
    for row, value in zip(rows, values, strict=True):
        found.setdefault(row["dataset"], {}).setdefault(row["question_key"], []).append(value)
    return {name: np.array([np.mean(own) for own in questions.values()]) for name, questions in sorted(found.items())}


def _macro(values_Q_by_dataset: Mapping[str, Any]) -> tuple[float, float, float]:
    """The mean over datasets and its 95 % interval, put together from those of the datasets (MOVER, Zou and Donner 2008)."""
    intervals = bootstrap_means(values_Q_by_dataset).datasets
    below, above, means = [], [], []
    for name, values_Q in values_Q_by_dataset.items():
        mean, interval = float(values_Q.mean()), intervals[name]
        if mean in (0.0, 1.0):
            interval = wilson_interval(round(mean * len(values_Q)), len(values_Q))
        means.append(mean)
        below.append(mean - interval.low)
        above.append(interval.high - mean)
    mean = float(np.mean(means))
    return mean, max(0.0, mean - hypot(*below) / len(means)), min(1.0, mean + hypot(*above) / len(means))


def _parse(value: Any) -> Judgement:
    if value["format"] != FORMAT:
        raise ValueError(f"format {value['format']}, this version reads {FORMAT}")
    fields = {key: entry for key, entry in value.items() if key != "format"}
    counts = {str(kind): (int(asked), int(failed)) for kind, (asked, failed) in dict(fields["canaries"]).items()}
    return Judgement(**{**fields, "agreement": Agreement(**fields["agreement"]), "canaries": counts})


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
