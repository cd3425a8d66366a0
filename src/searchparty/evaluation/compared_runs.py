"""What is compared of finished evaluations, and whether they may be compared at all.

Reads run directories and samples nothing. Runs are compared over the same questions only: the same keys, under which the same
text was asked; what else differs is said and not refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from searchparty.episodes.printable import printable
from searchparty.errors import UserError
from searchparty.evaluation.costs.reading import read_costs
from searchparty.evaluation.estimates import Estimate, estimate_means
from searchparty.evaluation.intervals import MACRO, MICRO
from searchparty.evaluation.question_scores import QuestionScores, columns, question_scores
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.run_folder import flat
from searchparty.evaluation.scoring import NOT_PLAYED
from searchparty.evaluation.summary_file import read_summary
from searchparty.files import read_jsonl

METRICS = ("exact_match", "f1", "f1_joined")
"""What may be compared."""
SHOWN = 3
"""Questions named in an error; the rest is counted."""


@dataclass(frozen=True)
class Run:
    """What of one run is compared."""

    name: str
    path: Path
    asked_sha256: str | None
    """Of the file of questions; equal in runs that asked the same in the same order."""
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
    """What should be equal in runs that are compared, besides the questions: protocol, scorer, retriever, sampling."""


def usual_metric(path: Path) -> str:
    """What the protocol of a run compares first; exact match without a protocol or a run.

    Raises:
        UserError: `environment.json` is damaged.
    """
    directory = RunDirectory(path)
    protocol = directory.read_environment().get("protocol") if directory.environment_file.is_file() else None
    metric = protocol["document"].get("metric") if protocol else None
    return metric if metric in METRICS else METRICS[0]


def read_run(path: Path, metric: str, *, costs: bool = True) -> Run:
    """What is compared of a finished evaluation.

    Args:
        costs: whether to find out what it cost in USD, for which a run with prices is read a second time.

    Raises:
        UserError: it is none, is unfinished, or its files have another form.
    """
    directory = RunDirectory(path)
    recipe = directory.read_recipe()
    if not directory.scores_file.is_file() or not directory.summary_file.is_file():
        raise UserError(f"{path}: was not finished; resume it, or score what is there: searchparty score {path} --unfinished")
    rows = list(read_jsonl(directory.scores_file))
    scores = question_scores(rows, metric, directory.scores_file)
    environment = directory.read_environment()
    summary = read_summary(directory)
    behaviour = summary["behaviour"]["all"]
    protocol = environment.get("protocol") or {}
    setting = {
        "protocol": f"{protocol['name']} version {protocol['version']}" if protocol else "none",
        **{f"protocol {key}": str(value) for key, value in flat(protocol.get("document", {})).items()},
        "scorer": summary["scorer"],
        "retriever": str(environment.get("retriever")),
        "temperature": str(recipe.sampling.temperature),
        "max_tokens": str(recipe.sampling.max_tokens),
        "samples": str(recipe.samples),
    }
    usd = usd_per_episode(path) if costs else None
    intervals = {name: (low, high) for name, (low, high) in behaviour["intervals"].items()}
    return Run(
        name=str(path),
        path=path,
        asked_sha256=environment["questions"].get("asked_sha256"),
        scores=scores,
        texts=_texts(rows),
        failed=behaviour["service_failures"] + behaviour["stop_reasons"].get(NOT_PLAYED, 0),
        searches=behaviour["searches"],
        output_tokens=behaviour["output_tokens"],
        input_tokens=behaviour["input_tokens"],
        usd=None if usd is None else usd.value,
        intervals=intervals if usd is None else {**intervals, "usd": (usd.low, usd.high)},
        samples=recipe.samples,
        setting=setting,
    )


def _texts(rows: Sequence[tuple[int, dict[str, object]]]) -> dict[str, str]:
    """Question to the answer of its first sample, or why there is none."""
    texts: dict[str, str] = {}
    for _, row in rows:
        said = row.get("answer") or f"({row.get('problem') or row.get('stop_reason') or 'no answer'})"
        texts.setdefault(str(row["question_key"]), str(said))
    return texts


def usd_per_episode(path: Path) -> Estimate | None:
    """Mean cost of an episode at the prices of the run's own recipe, each question with equal weight.

    None without prices, if their file is gone, or where a model does not say how many tokens it used.
    """
    prices = RunDirectory(path).read_recipe().prices
    if prices is None or not prices.is_file():
        return None
    pairs = read_costs(path, None)[0]
    if any(costed.usd is None for costed, _ in pairs):
        return None
    rows = [{"dataset": one.dataset, "question_key": one.question_key, "usd": costed.usd} for costed, one in pairs]
    found = estimate_means(columns(question_scores(enumerate(rows, start=1), "usd", path)))
    return found.get(MICRO, found[MACRO])


def differences_of_setting(runs: Sequence[Run]) -> list[str]:
    """One line for each thing that is not equal in all runs, golden answers of the same questions among them."""
    lines = _other_golden_answers(runs)
    for key in dict.fromkeys(key for run in runs for key in run.setting):
        values = {run.name: run.setting.get(key, "not said") for run in runs}
        if len(set(values.values())) > 1:
            lines.append(f"{key} differs: " + "; ".join(f"{name} {value}" for name, value in values.items()))
    return lines


def _other_golden_answers(runs: Sequence[Run]) -> list[str]:
    if len({run.asked_sha256 for run in runs}) == 1:
        return []
    golden = [{one.key: set(one.golden_answers) for one in RunDirectory(run.path).read_questions()} for run in runs]
    return [
        f"golden answers differ: {run.name} has others than {runs[0].name} for {len(other)} questions: {_some(other)}"
        for run, own in zip(runs, golden, strict=True)
        if (other := sorted(key for key, answers in own.items() if answers != golden[0].get(key, answers)))
    ]


def check_same_questions(runs: Sequence[Run]) -> None:
    """Refuse runs over other questions: other keys, or other texts under the same keys, as files that number their lines have.

    Raises:
        UserError: a line for each run that lacks questions of another, or asked something else under its keys.
    """
    every = {key for run in runs for key in _keys(run)}
    lines = []
    for run in runs:
        missing = sorted(f"{key}" for _, key in every - _keys(run))
        if missing:
            lines.append(f"{run.name}: lacks {len(missing)} questions of the others: {_some(missing)}")
    if not lines and len({run.asked_sha256 for run in runs}) > 1:
        texts = [{question.key: question.text for question in RunDirectory(run.path).read_questions()} for run in runs]
        for run, own in zip(runs, texts, strict=True):
            other = sorted(key for key, text in own.items() if text != texts[0].get(key))
            if other:
                lines.append(f"{run.name}: asked something else than {runs[0].name} under {len(other)} keys: {_some(other)}")
    if lines:
        raise UserError(*lines, "runs can be compared only over the same questions; run them again over one file")


def _keys(run: Run) -> set[tuple[str, str]]:
    return {(dataset, key) for dataset, questions in run.scores.items() for key in questions}


def _some(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return f"{', '.join(map(printable, keys[:SHOWN]))}{more}"
