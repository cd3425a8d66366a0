"""Whether credit comes out as it was used: candidates judged again, then advantages, weights and returns assigned again.

What a critic said is believed as it was recorded, like what a teacher said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from searchparty.credit.assign import assign_credit
from searchparty.credit.evidence import EpisodeKey, Evidence
from searchparty.credit.plan import CreditPlan
from searchparty.credit.types import FloatArray, SequenceKey, Signal
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.scorers import Scorer
from searchparty.evaluation.scoring import extract_answers
from searchparty.training.audit_report import Proved, Rule, Violation, of_episode, of_sequence
from searchparty.training.audit_sequences import Trained, first_difference
from searchparty.training.records import Judged


def judgement_faults(
    episodes: Sequence[Episode],
    golden_answers: Mapping[str, Sequence[str]],
    judged: Mapping[EpisodeKey, Sequence[Judged]],
    scorer: Scorer,
    proved: Proved,
) -> Iterator[Violation]:
    """Candidates that were judged otherwise than their answers deserve."""
    for episode in episodes:
        key = (episode.question_key, episode.sample)
        if episode.question_key not in golden_answers or key not in judged:
            missing = "golden answers" if episode.question_key not in golden_answers else "judged candidates"
            yield of_episode(key, Rule.CREDIT, missing, "none", "some for every episode", episode.answering_agent)
            continue
        used, answers = judged[key], extract_answers(episode)
        if len(used) != len(answers):
            yield of_episode(key, Rule.CREDIT, "judged candidates", len(used), len(answers), episode.answering_agent)
        for candidate, ((answer, problem), one) in enumerate(zip(answers, used, strict=False)):
            golden = golden_answers[episode.question_key]
            match, f1 = scorer.exact_match(answer, golden), scorer.f1(answer, golden)
            if (one.exact_match, one.f1, one.problem) != (match, f1, problem):
                said = repr(answer) if answer is not None else "no answer"
                yield Violation(
                    Rule.CREDIT, f"judged exact match, F1 and problem of {said}",
                    f"{one.exact_match:g}, {one.f1}, {one.problem}", f"{match:g}, {f1}, {problem}", *key,
                    episode.answering_agent, candidate,
                )  # fmt: skip
            proved.judged += 1


def credit_faults(
    episodes: Sequence[Episode],
    trained: Sequence[Trained],
    plan: CreditPlan,
    judged: Mapping[EpisodeKey, Sequence[Judged]],
    scores: Mapping[str, Mapping[SequenceKey, float]],
    teacher_temperature: float,
    tolerance: float,
    proved: Proved,
) -> Iterator[Violation]:
    """Numbers that come out otherwise than they were used, each array of a sequence at its first such token.

    Args:
        tolerance: largest difference, relative to the larger number, that is taken for rounding; 0 wants equal bits.
    """
    evidence = Evidence(
        candidates=judged,
        teacher_logprobs={one.recorded.key: one.recorded.teacher_logprobs_T for one in trained if one.recorded.scored},
        teacher_temperature=teacher_temperature,
        reference_logprobs={
            one.recorded.key: one.recorded.reference_logprobs_T
            for one in trained
            if one.recorded.reference_logprobs_T is not None
        },
        values={one.recorded.key: one.recorded.values_T for one in trained if one.recorded.values_T is not None},
        scores=scores,
    )
    try:
        result = assign_credit(episodes, plan, evidence)
    except (ValueError, KeyError, IndexError, OverflowError, UserError) as error:
        yield Violation(Rule.CREDIT, "credit", "cannot be assigned again", f"it can: {error}")
        return
    again = {signal.key: signal for signal in result.signals}
    for one in trained:
        key = one.history.key
        signal = again.get(key)
        if signal is None:
            yield of_sequence(key, Rule.CREDIT, "signals of this sequence", "one", "none comes out again")
            continue
        for name, found_T, expected_T in _numbers(one, signal):
            token, difference = _difference(found_T, expected_T, tolerance)
            proved.largest_difference = max(proved.largest_difference, difference)
            if token is not None:
                found, expected = found_T[token], expected_T[token]
                yield of_sequence(key, Rule.CREDIT, name, found, expected, token, one.history.near(token))
        proved.advantages += int(np.count_nonzero(one.history.own_T))


def _numbers(one: Trained, signal: Signal) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    yield "weights", one.recorded.weights_T, signal.weights_T
    yield "advantages", one.recorded.advantages_T, signal.advantages_T
    if one.recorded.returns_T is not None and signal.returns_T is not None:
        yield "returns", one.recorded.returns_T, signal.returns_T


def _difference(found_T: FloatArray, expected_T: FloatArray, tolerance: float) -> tuple[int | None, float]:
    """The first token that is not equal within the tolerance, if any, and the largest difference of those that are."""
    if first_difference(found_T, expected_T) is None:
        return None, 0.0
    larger_T = np.maximum(np.abs(found_T), np.abs(expected_T)).astype(np.float64)
    apart_T = np.abs(found_T.astype(np.float64) - expected_T)
    beyond_T = ~(apart_T <= tolerance * larger_T)
    if tolerance == 0:
        return first_difference(found_T, expected_T), 0.0
    if beyond_T.any():
        return int(beyond_T.argmax()), 0.0
    return None, float(np.max(apart_T[larger_T > 0] / larger_T[larger_T > 0], initial=0.0))
