"""From what the trainer holds of a step to the record of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from searchparty.credit.result import CreditResult
from searchparty.evaluation.scoring import ScoredEpisode
from searchparty.training.grouping import answer_call, group_name
from searchparty.training.judge import Judgement
from searchparty.training.recipe import RLStage
from searchparty.training.records import Judged, Scored, StepRecord
from searchparty.training.rollout import RolledOut


def step_record(
    step: int,
    seed: int,
    played: RolledOut,
    scored: Sequence[ScoredEpisode],
    golden: Mapping[str, Sequence[str]],
    credit: CreditResult,
    teacher_said: Mapping[Any, Scored],
    judgement: Judgement,
    spec: RLStage,
) -> StepRecord:
    """What a step leaves on disk (`records`), from what the trainer holds in memory."""
    calls = {
        (episode.question_key, episode.sample, transcript.agent): answer_call(transcript)
        for episode in played.episodes
        for transcript in episode.agents
        if any(span.call is not None for span in transcript.spans)
    }
    groups = {}
    for signal in credit.signals:
        key = signal.key
        call = calls[key.question_key, key.sample, key.agent]
        groups[key] = group_name(spec.credit.roles[signal.role], key, call)
    judged = {one.key: [Judged(candidate.exact_match, candidate.problem) for candidate in one.candidates] for one in scored}
    scores = {} if spec.judge is None else {"judge": judgement.scores}
    return StepRecord(step, played.episodes, credit.signals, groups, golden, judged, teacher_said, scores, seed)
