"""Proof, from what a step left on disk, that it trained on what was sampled; or the first token that says otherwise.

Everything is derived once more from the episodes alone, by the rules of the contracts, and compared with the arrays that the
learner was given: nothing is believed because it was written down. The checks of a step, in their order:

    calls      every action span is the reply to a recorded call, of the length that the engine reported, after exactly the
               tokens that the call was given; nothing else claims to have been sampled
    roles      every signal belongs to an agent of its role, the role learns, and no sequence is missing or there twice
    ids        what was trained on is what the agent was given and sampled, in its own history
    masks      trainable is exactly what was sampled, and nothing is said about any other token
    sampler    old log-probabilities are those that were recorded while sampling
    teacher    the teacher was given the same ids, and answered with finite numbers
    groups     each sequence was compared in the group that its plan declares
    answers    candidates are judged as the scorer judges them now
    credit     advantages, weights and returns are those that the plan gives for these episodes

Knows episodes, plans and records; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn

import numpy as np

from searchparty.credit.assign import assign_credit
from searchparty.credit.evidence import Evidence, is_finite
from searchparty.credit.gathering import says_something
from searchparty.credit.plan import CreditPlan
from searchparty.credit.sequences import TokenSequence, agent_sequences
from searchparty.credit.types import SequenceKey, Signal
from searchparty.episodes.types import AgentEnd, Episode, SpanKind, Transcript
from searchparty.errors import UserError
from searchparty.evaluation.scorers import Scorer
from searchparty.evaluation.scoring import score_episode
from searchparty.teams.actions import Action, TagRules, read_action
from searchparty.training.grouping import group_name
from searchparty.training.records import RecordedSignal, StepRecord

AnySignal = Signal | RecordedSignal


@dataclass(frozen=True)
class Violation:
    """The first thing in a step that is not as it must be."""

    check: str
    """Its name in the list of checks."""
    place: str
    """Question, sample, agent and candidate."""
    token: int | None
    """Position in the sequence, from 0; None if it concerns no single token."""
    detail: str
    """What was found, and what was expected."""

    def __str__(self) -> str:
        token = "" if self.token is None else f", token {self.token}"
        return f"{self.check}: {self.place}{token}: {self.detail}"


class _Found(Exception):
    """Carries the first violation out of the checks."""

    def __init__(self, violation: Violation) -> None:
        self.violation = violation


@dataclass
class StepAudit:
    """What was looked at in one step, and the first violation, if there is one."""

    episodes: int = 0
    set_aside: int = 0
    """Of these, ended by a failing service or by the team's code: nothing may be learned from them."""
    sequences: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    teacher_tokens: int = 0
    groups: int = 0
    reports: int = 0
    """Reports that Searchers wrote as actions of their own."""
    reports_observed: int = 0
    """How often another agent read one of them: always as an observation."""
    violation: Violation | None = None


@dataclass
class _Step:
    """One step under audit."""

    record: StepRecord
    plan: CreditPlan
    scorer: Scorer
    teacher_temperature: float
    audit: StepAudit = field(default_factory=StepAudit)
    expected: dict[SequenceKey, TokenSequence] = field(default_factory=dict)
    owners: dict[SequenceKey, Transcript] = field(default_factory=dict)


def audit_step(record: StepRecord, plan: CreditPlan, scorer: Scorer, teacher_temperature: float = 1.0) -> StepAudit:
    """Check one step. Stops at the first violation."""
    step = _Step(record, plan, scorer, teacher_temperature)
    try:
        for episode in record.episodes:
            _check_calls(episode)
        _derive(step)
        _check_roles(step)
        for signal in record.signals:
            _check_sequence(step, signal)
        _check_answers(step)
        _check_credit(step)
    except _Found as found:
        step.audit.violation = found.violation
    return step.audit


def _check_calls(episode: Episode) -> None:
    for transcript in episode.agents:
        where = f"{_episode(episode)}, {transcript.agent}"
        before, sampled = 0, dict[int, list[int]]()
        for number, span in enumerate(transcript.spans):
            if span.ids is None:
                _violate("calls", where, None, f"span {number} has no token ids: the episode is not token-exact")
            length = len(span.ids)
            if span.kind is not SpanKind.ACTION:
                if span.call is not None or span.logprobs is not None:
                    _violate("calls", where, before, f"span {number} is of kind {span.kind} and claims to have been sampled")
                before += length
                continue
            if span.call is None or not 0 <= span.call < len(transcript.calls):
                _violate("calls", where, before, f"span {number} is an action and belongs to no recorded call")
            call = transcript.calls[span.call]
            if call.prompt_tokens is not None and span.candidate == 0 and call.prompt_tokens != before:
                detail = f"call {span.call} was given {call.prompt_tokens} tokens, its history has {before}"
                _violate("calls", where, before, detail)
            if span.logprobs is not None and len(span.logprobs) != length:
                _violate("calls", where, before, f"span {number}: {len(span.logprobs)} log-probabilities for {length} tokens")
            sampled.setdefault(span.call, []).append(length)
            if call.n == 1:
                before += length
        for call_number, lengths in sampled.items():
            call = transcript.calls[call_number]
            if len(lengths) != call.n:
                _violate("calls", where, None, f"call {call_number} asked for {call.n} candidates, {len(lengths)} are there")
            if call.output_tokens is not None and sum(lengths) != call.output_tokens:
                detail = f"call {call_number}: the engine sampled {call.output_tokens} tokens, its spans hold {sum(lengths)}"
                _violate("calls", where, None, detail)


def _derive(step: _Step) -> None:
    """Every sequence that the plan trains, from the episodes alone."""
    audit = step.audit
    for episode in step.record.episodes:
        audit.episodes += 1
        _count_reports(audit, episode)
        if not says_something(episode):
            audit.set_aside += 1
            continue
        for transcript in episode.agents:
            credit = step.plan.roles.get(transcript.role)
            if credit is None or not credit.learns:
                continue
            try:
                sequences = agent_sequences(episode, transcript)
            except (UserError, ValueError) as error:
                _violate("calls", f"{_episode(episode)}, {transcript.agent}", None, str(error))
            for sequence in sequences:
                step.expected[sequence.key] = sequence
                step.owners[sequence.key] = transcript


def _check_roles(step: _Step) -> None:
    seen: set[SequenceKey] = set()
    agents = {
        (episode.question_key, episode.sample, transcript.agent): transcript.role
        for episode in step.record.episodes
        for transcript in episode.agents
    }
    for signal in step.record.signals:
        key, where = signal.key, _place(signal.key)
        role = agents.get((key.question_key, key.sample, key.agent))
        if role is None:
            _violate("roles", where, None, "there is no such agent in the episodes")
        if role != signal.role:
            _violate("roles", where, None, f"was trained as {signal.role}, the episode says {role}")
        if key not in step.expected:
            _violate("roles", where, None, f"was trained, though the plan does not train it (role {role}, or set aside)")
        if key in seen:
            _violate("roles", where, None, "was trained twice")
        seen.add(key)
    for key, sequence in step.expected.items():
        if key not in seen and len(sequence.trained) and is_finite(sequence.old_logprobs_T, sequence):
            _violate("roles", _place(key), None, "was sampled by a role that learns, and is not among the signals")


def _check_sequence(step: _Step, signal: AnySignal) -> None:
    expected, where = step.expected[signal.key], _place(signal.key)
    transcript = step.owners[signal.key]
    _compare("ids", where, signal.ids_T, expected.ids_T, transcript, "id trained on", "id sampled or given")
    _compare("masks", where, signal.trainable_T, expected.trainable_T, transcript, "trainable", "sampled by this agent")
    for name in ("old_logprobs_T", "advantages_T", "weights_T", "returns_T"):
        array = getattr(signal, name)
        if array is None:
            continue
        if array.shape != expected.ids_T.shape:
            _violate("masks", where, None, f"{name} has {len(array)} entries for {len(expected.ids_T)} tokens")
        outside = np.flatnonzero((array != 0) & ~expected.trainable_T)
        if len(outside):
            token = int(outside[0])
            _violate("masks", where, token, f"{name} is {array[token]:.6g} at a token that was not sampled", transcript)
    _compare(
        "sampler", where, signal.old_logprobs_T, expected.old_logprobs_T, transcript, "old log-probability", "recorded one"
    )
    credit = step.plan.roles[signal.role]
    if credit.needs_teacher:
        scored = step.record.teacher.get(signal.key)
        if scored is not None:
            _compare("teacher", where, scored.ids_T, expected.ids_T, transcript, "id that the teacher was given", "id sampled")
            strange = np.flatnonzero(~np.isfinite(scored.logprobs_T) & expected.trainable_T)
            if len(strange):
                _violate("teacher", where, int(strange[0]), "its log-probability is not a finite number", transcript)
            step.audit.teacher_tokens += len(expected.trained)
    declared, found = group_name(credit, signal.key, expected.call), step.record.groups.get(signal.key, "")
    if declared != found:
        _violate("groups", where, None, f"was compared in {found or 'no group'!r}, its plan declares {declared or 'none'!r}")
    step.audit.sequences += 1
    step.audit.tokens += len(expected.ids_T)
    step.audit.trained_tokens += len(expected.trained)


def _check_answers(step: _Step) -> None:
    record = step.record
    for episode in record.episodes:
        where = _episode(episode)
        golden = record.golden_answers.get(episode.question_key)
        judged = record.judged.get((episode.question_key, episode.sample))
        if golden is None or judged is None:
            _violate("answers", where, None, "its golden answers or its judgement were not recorded")
        now = score_episode(episode, golden, step.scorer).candidates
        if len(now) != len(judged):
            _violate("answers", where, None, f"{len(judged)} candidates were judged, the episode has {len(now)}")
        for number, (before, again) in enumerate(zip(judged, now, strict=True)):
            if (before.exact_match, before.problem) != (again.exact_match, again.problem):
                detail = (
                    f"candidate {number} was judged {before.exact_match:g} ({before.problem or 'well-formed'}), the scorer "
                    f"says {again.exact_match:g} ({again.problem or 'well-formed'}) of {again.answer!r}"
                )
                _violate("answers", where, None, detail)


def _check_credit(step: _Step) -> None:
    record = step.record
    evidence = Evidence(
        candidates=record.judged,
        teacher_logprobs={key: scored.logprobs_T for key, scored in record.teacher.items()},
        teacher_temperature=step.teacher_temperature,
        scores=record.scores,
    )
    try:
        again = {signal.key: signal for signal in assign_credit(record.episodes, step.plan, evidence).signals}
    except (UserError, ValueError) as error:
        _violate("credit", f"step {record.step}", None, str(error))
    step.audit.groups = len({group for group in record.groups.values() if group})
    for signal in record.signals:
        expected = again.get(signal.key)
        if expected is None:
            _violate("credit", _place(signal.key), None, "the plan gives no signal for it")
        for name, what in (("advantages_T", "advantage"), ("weights_T", "weight"), ("returns_T", "return")):
            found, own = getattr(signal, name), getattr(expected, name)
            if (found is None) != (own is None):
                _violate("credit", _place(signal.key), None, f"{name} should {'not ' if own is None else ''}be there")
            if found is not None:
                transcript = step.owners[signal.key]
                _compare("credit", _place(signal.key), found, own, transcript, f"{what} trained on", "by its plan")


def _compare(check: str, where: str, found: Any, expected: Any, transcript: Transcript, what: str, against: str) -> None:
    """Both arrays must be equal to the last bit, or the first differing token is named."""
    if found.shape != expected.shape:
        _violate(check, where, min(len(found), len(expected)), f"{len(found)} tokens instead of {len(expected)}", transcript)
    equal = found == expected
    if found.dtype.kind == "f":
        equal |= np.isnan(found) & np.isnan(expected)
    differing = np.flatnonzero(~equal)
    if len(differing):
        token = int(differing[0])
        _violate(check, where, token, f"{what} is {found[token]}, {against}: {expected[token]}", transcript)


def _violate(check: str, where: str, token: int | None, detail: str, transcript: Transcript | None = None) -> NoReturn:
    near = "" if token is None or transcript is None else _near(transcript, token)
    raise _Found(Violation(check, where, token, detail + near))


def _near(transcript: Transcript, token: int) -> str:
    """The kind and beginning of the span that a token is in, for a person who looks for it."""
    end = 0
    for number, span in enumerate(transcript.spans):
        end += len(span.ids or ())
        if token < end:
            return f" (in span {number}, {span.kind}: {' '.join(span.text.split())[:60]!r})"
    return ""


def _count_reports(audit: StepAudit, episode: Episode) -> None:
    """Reports as actions of those who wrote them, and as observations of those who read them."""
    for transcript in episode.agents:
        if "report" not in transcript.tags or transcript.end is not AgentEnd.FINISHED or not transcript.last_turn():
            continue
        rules = TagRules(("report",), known=tuple(transcript.tags))
        action = read_action(transcript.last_turn()[0].text, rules, starts_in_thinking=transcript.starts_in_thinking)
        if not isinstance(action, Action):
            continue
        audit.reports += 1
        for other in episode.agents:
            if other is not transcript:
                audit.reports_observed += sum(
                    span.kind is SpanKind.OBSERVATION and action.content in span.text for span in other.spans
                )


def _episode(episode: Episode) -> str:
    return f"{episode.question_key}, sample {episode.sample}"


def _place(key: SequenceKey) -> str:
    return f"{key.question_key}, sample {key.sample}, {key.agent}, candidate {key.candidate}"


def totals(audits: Iterable[StepAudit]) -> StepAudit:
    """The counts of several steps together, and their first violation."""
    whole = StepAudit()
    for audit in audits:
        for count in fields(StepAudit):
            if count.name != "violation":
                setattr(whole, count.name, getattr(whole, count.name) + getattr(audit, count.name))
        whole.violation = whole.violation or audit.violation
    return whole
