"""Whether every sequence that was trained is what its episode says: agent, role, ids, mask, log-probabilities, teacher's ids.

Reads spans and arrays; knows nothing of rewards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.gathering import says_something
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.types import SequenceKey
from searchparty.episodes.types import Episode, SpanKind, Transcript
from searchparty.training.audit_history import History, histories
from searchparty.training.audit_report import Proved, Rule, Violation, of_episode, of_sequence
from searchparty.training.grouping import group_name
from searchparty.training.recorded_arrays import RecordedSequence


@dataclass(slots=True)
class Trained:
    """A recorded sequence with the history that it must be."""

    recorded: RecordedSequence
    history: History


@dataclass
class Paired:
    """The sequences of a step, in the order of its episodes."""

    trained: list[Trained] = field(default_factory=list)
    empty: list[History] = field(default_factory=list)
    """Histories without a token to train. They have no signal, and are compared with others all the same."""


def pair(
    episodes: Sequence[Episode], recorded: Sequence[RecordedSequence], plan: CreditPlan, proved: Proved, paired: Paired
) -> Iterator[Violation]:
    """Find the history of every signal and the signal of every history, and add them to `paired`.

    A history goes without a signal if it has no trainable token, or one whose log-probability is not finite.
    """
    by_key: dict[SequenceKey, RecordedSequence] = {}
    for one in recorded:
        if one.key in by_key:
            yield of_sequence(one.key, Rule.ROLES, "signals of this sequence", "two", "one")
        by_key[one.key] = one
    for episode in episodes:
        for transcript in episode.agents:
            role = plan.roles.get(transcript.role)
            place = (episode.question_key, episode.sample)
            if role is None:
                yield of_episode(
                    place, Rule.ROLES, "role", transcript.role, f"one of {', '.join(plan.roles)}", transcript.agent
                )
            elif role.learns and says_something(episode):
                if (gap := _gap(transcript)) is not None:
                    yield of_episode(place, Rule.HISTORIES, *gap, transcript.agent)
                    continue
                for history in histories(episode, transcript):
                    found = by_key.pop(history.key, None)
                    if found is not None:
                        paired.trained.append(Trained(found, history))
                    elif not np.isfinite(history.logprobs_T).all():
                        proved.left_out += 1
                    elif not history.own_T.any():
                        paired.empty.append(history)
                    else:
                        expected = "one: its role learns and its log-probabilities are finite"
                        yield of_sequence(history.key, Rule.ROLES, "signals of this sequence", "none", expected)
    known = {(episode.question_key, episode.sample): episode for episode in episodes}
    for key, one in by_key.items():
        yield of_sequence(key, Rule.ROLES, f"a signal of role {one.role}", "one", f"none: {_why_none(key, known)}")


def _gap(transcript: Transcript) -> tuple[str, str, str] | None:
    """What a learning agent's transcript must not lack: what it is, what was found, what was expected."""
    for number, span in enumerate(transcript.spans):
        if span.ids is None:
            return f"ids of span {number}", "none", "the ids that were given or sampled"
        if span.kind is SpanKind.ACTION and span.logprobs is None:
            return f"log-probabilities of span {number}", "none", "one for every sampled token"
    return None


def _why_none(key: SequenceKey, episodes: Mapping[tuple[str, int], Episode]) -> str:
    episode = episodes.get((key.question_key, key.sample))
    if episode is None:
        return "the step has no such episode"
    if not says_something(episode):
        return f"the episode ended with {episode.stop_reason} and teaches nothing"
    if key.agent not in [transcript.agent for transcript in episode.agents]:
        return "the episode has no such agent"
    return "its role does not learn, or the agent's last turn has no such candidate"


def sequence_faults(one: Trained, plan: CreditPlan, proved: Proved) -> Iterator[Violation]:
    """What a sequence has otherwise than its history, each array at its first such token."""
    recorded, history = one.recorded, one.history
    key, own_T = history.key, history.own_T
    role = plan.roles[history.role]
    if recorded.role != history.role:
        yield of_sequence(key, Rule.ROLES, "role", recorded.role, history.role)
    yield from _compare(history, Rule.HISTORIES, "ids", recorded.ids_T, history.ids_T)
    yield from _compare(history, Rule.MASKS, "trainable", recorded.trainable_T, own_T)
    others = {
        "old_logprobs": recorded.old_logprobs_T,
        "advantages": recorded.advantages_T,
        "weights": recorded.weights_T,
        "returns": recorded.returns_T,
        "values": recorded.values_T,
        "teacher_logprobs": recorded.teacher_logprobs_T,
        "reference_logprobs": recorded.reference_logprobs_T,
    }
    for name, array_T in others.items():
        if array_T is not None and len(array_T) == len(own_T) and np.count_nonzero(array_T) != np.count_nonzero(array_T[own_T]):
            token = int(np.flatnonzero((array_T != 0) & ~own_T)[0])
            yield of_sequence(
                key, Rule.MASKS, f"{name} of a token that it does not train", array_T[token], 0, token, history.near(token)
            )
    yield from _compare(history, Rule.IDS, "old_logprobs", recorded.old_logprobs_T, history.logprobs_T)
    if not np.isfinite(recorded.old_logprobs_T).all():
        token = int(np.flatnonzero(~np.isfinite(recorded.old_logprobs_T))[0])
        found = recorded.old_logprobs_T[token]
        yield of_sequence(key, Rule.IDS, "old_logprobs", found, "a finite number", token, history.near(token))
    teacher_was_given = history.ids_T if recorded.scored else np.zeros_like(history.ids_T)
    yield from _compare(history, Rule.IDS, "teacher_ids", recorded.teacher_ids_T, teacher_was_given)
    if not recorded.scored and np.count_nonzero(recorded.teacher_logprobs_T):
        token = int(np.flatnonzero(recorded.teacher_logprobs_T)[0])
        found = recorded.teacher_logprobs_T[token]
        yield of_sequence(key, Rule.IDS, "teacher_logprobs", found, "0: no teacher scored it", token, history.near(token))
    if recorded.reference_ids_T is not None:
        yield from _compare(history, Rule.IDS, "reference_ids", recorded.reference_ids_T, history.ids_T)
    if role.needs_values is not (recorded.values_T is not None):
        found, expected = ("none", "some") if role.needs_values else ("some", "none")
        yield of_sequence(key, Rule.CREDIT, "values of a critic", found, f"{expected}: estimator {role.estimator.name}")
    expected = group_name(role, key, history.call)
    if recorded.group != expected:
        yield of_sequence(key, Rule.GROUPS, "group", repr(recorded.group), repr(expected))
    _count(one, role, proved)


def prefix_fault(first: Trained, other: Trained) -> Violation | None:
    """The first token before the candidate that is another than in the first candidate of the call."""
    shared = other.history.shared
    token = first_difference(other.recorded.ids_T[:shared], first.recorded.ids_T[:shared])
    if token is None:
        return None
    found, expected = _at(other.recorded.ids_T[:shared], token), _at(first.recorded.ids_T[:shared], token)
    what = "ids before the candidates of one call"
    return of_sequence(other.history.key, Rule.PREFIXES, what, found, expected, token, other.history.near(token))


def first_difference(found_T: NDArray[Any], expected_T: NDArray[Any]) -> int | None:
    """The first position at which two arrays differ, bit by bit if both are float32; None if they are equal."""
    length = min(len(found_T), len(expected_T))
    ours, theirs = found_T[:length], expected_T[:length]
    if ours.dtype == theirs.dtype == np.float32:
        ours, theirs = ours.view(np.int32), theirs.view(np.int32)
    unequal = ours != theirs
    if unequal.any():
        return int(unequal.argmax())
    return None if len(found_T) == len(expected_T) else length


def _compare(history: History, rule: Rule, what: str, found_T: NDArray[Any], expected_T: NDArray[Any]) -> Iterator[Violation]:
    token = first_difference(found_T, expected_T)
    if token is not None:
        found, expected = _at(found_T, token), _at(expected_T, token)
        yield of_sequence(history.key, rule, what, found, expected, token, history.near(token))


def _at(array_T: NDArray[Any], token: int) -> str:
    return str(array_T[token]) if token < len(array_T) else f"the end after {len(array_T)} tokens"


def _count(one: Trained, role: RoleCredit, proved: Proved) -> None:
    tokens = int(np.count_nonzero(one.history.own_T))
    proved.sequences += 1
    proved.tokens += len(one.history.ids_T)
    proved.trained_tokens += tokens
    if one.recorded.scored and np.isfinite(one.recorded.teacher_logprobs_T).all():
        proved.teacher_tokens += tokens
    elif role.needs_teacher:
        proved.unscored += 1
