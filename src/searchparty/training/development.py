"""The score by which the best checkpoint is chosen: the policy plays development questions as in an evaluation."""

from __future__ import annotations

import time
from typing import Any

from searchparty.evaluation.scorers import Scorer
from searchparty.evaluation.scoring import score_episode
from searchparty.evaluation.staging import Stage
from searchparty.questions.types import Question
from searchparty.training.listening import TrainListener
from searchparty.training.measures import batch_measures, endings, macro_exact_match
from searchparty.training.recipe import DevelopmentSpec
from searchparty.training.rollout import roll_out


async def measure_development(
    stage: Stage,
    questions: list[Question],
    spec: DevelopmentSpec,
    scorer: Scorer,
    *,
    seed: int,
    concurrency: int,
    listener: TrainListener,
) -> dict[str, Any]:
    """Play and score. The seed is the same each time, so that two evaluations differ by the weights alone.

    Returns:
        The entries of a line in `metrics.jsonl`; `score` is exact match, macro over datasets.
    """
    started = time.perf_counter()
    played = await roll_out(
        stage,
        questions,
        spec.samples,
        seed=seed,
        concurrency=concurrency,
        on_episode=lambda done, total: listener.on_work("development", done, total),
    )
    golden = {question.key: question.golden_answers for question in questions}
    scored = [score_episode(episode, golden[episode.question_key], scorer) for episode in played.episodes]
    return {
        "score": macro_exact_match(scored),
        "datasets": batch_measures(scored),
        "endings": endings(scored),
        "seconds": {"total": time.perf_counter() - started},
    }
