"""Judging a finished evaluation: `judge.json` beside its summary, and `judge.jsonl` with every verdict.

A secondary column: exact match stays the score. An answer that a question got several times is judged once; an episode without
an answer is wrong without being asked about; so is one whose verdict is not usable, which is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from searchparty.errors import UserError
from searchparty.evaluation.estimates import estimate_means, estimate_rates
from searchparty.evaluation.intervals import MACRO, MICRO
from searchparty.evaluation.question_scores import columns, question_scores
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import scorer_named
from searchparty.files import atomic_output, read_json, read_jsonl, sha256_of, write_json
from searchparty.judging.agreement import Agreement, agreement_of
from searchparty.judging.canaries import Canary, make_canaries
from searchparty.judging.judge import AnswerJudge
from searchparty.questions.types import Question

FORMAT = 1
SHOWN = 5
_EQUAL = 1e-12
"""Ends of an interval closer than this are one."""


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
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """95 %, of `exact_match`, of the share of `agreement`, and of its `kappa` where questions differ in it; earlier
    judgements have none."""

    @property
    def failed_canaries(self) -> int:
        """How many canaries did not score 0."""
        return sum(failed for _, failed in self.canaries.values())


@dataclass(frozen=True)
class Case:
    """What of a run a judge is asked about."""

    directory: RunDirectory
    rows: list[dict[str, Any]]
    """Its scored episodes."""
    answers: dict[tuple[str, str], Question]
    """Question key and answer to the question: each answer that a question got, once."""
    canaries: list[Canary]


def read_case(path: Path, *, canaries: int = 10) -> Case:
    """Read a finished evaluation.

    Args:
        canaries: of how many questions wrong answers of every kind are asked about as well.

    Raises:
        UserError: the run is none or was not scored.
    """
    directory = RunDirectory(path)
    scorer = scorer_named(directory.read_recipe().scorer)
    if not directory.scores_file.is_file():
        raise UserError(f"{path}: was not finished; resume it, or score what is there: searchparty score {path} --unfinished")
    questions = {question.key: question for question in directory.read_questions()}
    rows = [_checked(row, questions, f"{directory.scores_file}:{number}") for number, row in read_jsonl(directory.scores_file)]
    if not rows:
        raise UserError(f"{directory.scores_file}: holds no answer")
    answers = {
        (row["question_key"], row["answer"]): questions[row["question_key"]] for row in rows if row["answer"] is not None
    }
    return Case(directory, rows, answers, make_canaries(list(questions.values()), scorer, canaries))


async def judge_case(case: Case, judge: AnswerJudge) -> Judgement:
    """Judge every answer, and write what was found into the run's directory."""
    said = await judge.verdicts(
        [
            *((question, answer) for (_, answer), question in case.answers.items()),
            *((bird.question, bird.answer) for bird in case.canaries),
        ]
    )
    verdicts = dict(zip(case.answers, said, strict=False))
    counts: dict[str, tuple[int, int]] = {}
    for bird, verdict in zip(case.canaries, said[len(case.answers) :], strict=True):
        total, failed = counts.get(bird.kind, (0, 0))
        counts[bird.kind] = (total + 1, failed + (verdict is not False))
    judgement = _judgement(case, judge, verdicts, counts)
    with atomic_output(case.directory.path / "judge.jsonl", "wb") as stream:
        for (key, answer), verdict in verdicts.items():
            line = {"question_key": key, "answer": answer, "right": verdict if isinstance(verdict, bool) else None}
            stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    write_json(case.directory.path / "judge.json", {"format": FORMAT, **asdict(judgement)})
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
    return judgement if judgement.scores_sha256 == sha256_of(scores) else None


def _judgement(
    case: Case, judge: AnswerJudge, verdicts: Mapping[tuple[str, str], bool | str], canaries: dict[str, tuple[int, int]]
) -> Judgement:
    directory, rows = case.directory, case.rows
    opinions = [verdicts.get((row["question_key"], row["answer"])) is True for row in rows]
    numbered = list(
        enumerate(
            (
                {**row, "judged": opinion, "agreed": opinion == (row["exact_match"] == 1)}
                for row, opinion in zip(rows, opinions, strict=True)
            ),
            start=1,
        )
    )
    right, exact, agreed = (
        estimate_rates(columns(question_scores(numbered, name, directory.scores_file)))
        for name in ("judged", "exact_match", "agreed")
    )
    exact_macro, agreed_micro = exact[MACRO], agreed.get(MICRO, agreed[MACRO])
    agreement = agreement_of((opinion, row["exact_match"] == 1) for opinion, row in zip(opinions, rows, strict=True))
    alone = dict.fromkeys(
        f"{row['question_key']}: {row['answer']}"
        for row, opinion in zip(rows, opinions, strict=True)
        if opinion and row["exact_match"] < 1
    )
    return Judgement(
        prompt=judge.prompt.version,
        prompt_digest=judge.prompt.digest,
        model=judge.model.identity,
        scores_sha256=sha256_of(directory.scores_file),
        right=right[MACRO].value,
        low=right[MACRO].low,
        high=right[MACRO].high,
        exact_match=exact_macro.value,
        intervals={
            "exact_match": (exact_macro.low, exact_macro.high),
            "agreement": (agreed_micro.low, agreed_micro.high),
            **_kappa_interval(agreement, numbered, directory.scores_file),
        },
        agreement=agreement,
        canaries=canaries,
        unusable=[f"{key}: {verdict}" for (key, _), verdict in verdicts.items() if isinstance(verdict, str)],
        only_judge=list(alone)[:SHOWN],
    )


def _kappa_interval(
    agreement: Agreement, rows: list[tuple[int, dict[str, Any]]], where: Path
) -> dict[str, tuple[float, float]]:
    """None where all questions say the same, and one question does: there is nothing to draw, and no width is no proof."""
    if agreement.kappa is None:
        return {}
    values = [(number, {**row, "kappa": agreement.kappa_value(row["judged"], row["exact_match"] == 1)}) for number, row in rows]
    found = estimate_means(columns(question_scores(values, "kappa", where)))
    kappa = found.get(MICRO, found[MACRO])
    return {"kappa": (max(-1.0, kappa.low), min(1.0, kappa.high))} if kappa.high - kappa.low > _EQUAL else {}


def _checked(row: dict[str, Any], questions: Mapping[str, Question], where: str) -> dict[str, Any]:
    try:
        known = row["question_key"] in questions
        float(row["exact_match"]), row["dataset"]
        if not isinstance(row["answer"], str | None):
            raise TypeError("the answer is no text")
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{where}: no score ({error!r}); make the file anew with searchparty score") from None
    if not known:
        raise UserError(f"{where}: a score of {row['question_key']}, which the run did not ask; was the file edited?")
    return row


def _parse(value: Any) -> Judgement:
    if value["format"] != FORMAT:
        raise ValueError(f"format {value['format']}, this version reads {FORMAT}")
    fields = {key: entry for key, entry in value.items() if key != "format"}
    counts = {str(kind): (int(asked), int(failed)) for kind, (asked, failed) in dict(fields["canaries"]).items()}
    fields["intervals"] = {str(name): (float(low), float(high)) for name, (low, high) in fields.get("intervals", {}).items()}
    return Judgement(**{**fields, "agreement": Agreement(**fields["agreement"]), "canaries": counts})
