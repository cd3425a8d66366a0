"""From what the trainer holds of a step to the record of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchparty.credit.result import CreditResult
from searchparty.credit.sequences import last_turn_taken
from searchparty.evaluation.scoring import ScoredEpisode
from searchparty.training.grouping import group_name
from searchparty.training.recipe import RLStage
from searchparty.training.records import Judged, StepRecord
from searchparty.training.rollout import RolledOut
from searchparty.training.witnesses import Testimony


def step_record(
    step: int,
    seed: int,
    played: RolledOut,
    scored: Sequence[ScoredEpisode],
    golden: Mapping[str, Sequence[str]],
    credit: CreditResult,
    testimony: Testimony,
    spec: RLStage,
) -> StepRecord:
    """What a step leaves on disk (`records`), from what the trainer holds in memory."""
    calls = {
        (episode.question_key, episode.sample, transcript.agent): turn[0].call
        for episode in played.episodes
        for transcript in episode.agents
        if (turn := last_turn_taken(transcript))
    }
    groups = {}
    for signal in credit.signals:
        key = signal.key
        call = calls[key.question_key, key.sample, key.agent]
        assert call is not None
        groups[key] = group_name(spec.credit.roles[signal.role], key, call)
    judged = {
        one.key: [Judged(candidate.exact_match, candidate.f1, candidate.problem) for candidate in one.candidates]
        for one in scored
    }
    return StepRecord(
        step, played.episodes, credit.signals, groups, golden, judged, testimony.teacher, testimony.scores, seed,
        testimony.reference,
    )  # fmt: skip
