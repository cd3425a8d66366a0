"""How good a retriever is for questions whose answers, and sometimes passages, are known. Plays no team.

Per question, over its k best passages:

answer@k   1 if a golden answer stands in the title or text of one of them, both normalised as SQuAD does, whole words only (as
           DPR counts it, with another way to split words);
golden@k   share of the question's supporting passages that are among them;
mrr@k      1 / rank of the first supporting passage, 0 if none is among them (k: the deepest asked for);
ndcg@k     Σ 1/log2(rank + 1) over the supporting passages among them, over the greatest such sum (Järvelin and Kekäläinen
           2002, with relevance 0 or 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2

import numpy as np

from searchparty.errors import UserError
from searchparty.evaluation.estimates import Estimate, estimate_rates
from searchparty.evaluation.normalise import normalise_answer
from searchparty.questions.types import Question
from searchparty.retrieval.types import Hit, Retriever

BATCH = 64
"""Questions searched for at once: so few that a server which needs 0.2 s for each answers within a client's 30 s."""
_JUDGED = {"yes", "no"}
"""Answers that stand in no passage, or in every one."""

Scores = dict[str, dict[str, list[float]]]
"""Measure, dataset, value of each question that it can be said of, in the order of the questions."""


def score_retriever(
    retriever: Retriever,
    questions: Sequence[Question],
    cutoffs: Sequence[int],
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Scores:
    """Search for every question's own words and score what is found.

    Args:
        retriever: asked for as many hits as the greatest cutoff.
        questions: those without a usable golden answer, and those answered with yes or no, have no `answer@k`; those without
            supporting ids have only that.
        cutoffs: the k, each at least 1.
        progress: told how many questions are done.

    Raises:
        UserError: no question can be scored.
    """
    scores: Scores = {}
    for start in range(0, len(questions), BATCH):
        batch = questions[start : start + BATCH]
        for question, hits in zip(batch, retriever.search([question.text for question in batch], max(cutoffs)), strict=True):
            for measure, value in _measures(question, hits, sorted(cutoffs)).items():
                scores.setdefault(measure, {}).setdefault(question.dataset, []).append(value)
        progress("searching", start + len(batch), len(questions))
    if not scores:
        raise UserError("none of the questions has golden answers to look for, or the ids of its supporting passages")
    return dict(sorted(scores.items(), key=_in_order))


def estimate_scores(scores: Scores) -> dict[str, dict[str, Estimate]]:
    """The mean of every measure with its 95 % interval, per dataset and over datasets (see `estimate_rates`)."""
    return {
        measure: estimate_rates({dataset: np.array(values, np.float64) for dataset, values in by_dataset.items()})
        for measure, by_dataset in scores.items()
    }


def _in_order(column: tuple[str, dict[str, list[float]]]) -> tuple[str, int]:
    name, _, cutoff = column[0].partition("@")
    return name, int(cutoff)


def _measures(question: Question, hits: Sequence[Hit], cutoffs: Sequence[int]) -> dict[str, float]:
    found: dict[str, float] = {}
    answers = {normalise_answer(answer) for answer in question.golden_answers} - {""}
    if answers - _JUDGED:
        rank = _first_with_answer(answers - _JUDGED, hits)
        found |= {f"answer@{k}": float(rank is not None and rank <= k) for k in cutoffs}
    if golden := set(question.supporting_ids):
        ranks = [rank for rank, hit in enumerate(hits, start=1) if hit.passage.id in golden]
        found |= {f"golden@{k}": sum(rank <= k for rank in ranks) / len(golden) for k in cutoffs}
        found[f"mrr@{cutoffs[-1]}"] = 1 / ranks[0] if ranks else 0.0
        found |= {
            f"ndcg@{k}": _gain([rank for rank in ranks if rank <= k]) / _gain(range(1, min(k, len(golden)) + 1))
            for k in cutoffs
        }
    return found


def _first_with_answer(answers: set[str], hits: Sequence[Hit]) -> int | None:
    """Rank of the first passage in which one of the normalised answers stands."""
    for rank, hit in enumerate(hits, start=1):
        text = f" {normalise_answer(f'{hit.passage.title} {hit.passage.text}')} "
        if any(f" {answer} " in text for answer in answers):
            return rank
    return None


def _gain(ranks: Sequence[int]) -> float:
    return sum(1 / log2(rank + 1) for rank in ranks)
