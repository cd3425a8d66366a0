"""From episodes and evidence to samples: every sequence with its reward and with all that an estimator may read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial

import numpy as np

from searchparty.credit.estimators.base import Sample
from searchparty.credit.evidence import EpisodeKey, Evidence, aligned, is_finite
from searchparty.credit.findings import Finding, FindingKind
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.planner_rewards import invalid_workflow, planner_cost
from searchparty.credit.reward_mix import Reward
from searchparty.credit.rewards import (
    JudgedCandidate,
    answer_f1,
    assignment,
    behaviour,
    divergence_from,
    exact_match,
    is_well_formed,
    reference_penalty,
    team_result,
)
from searchparty.credit.sequences import TokenSequence, agent_sequences, last_turn_taken
from searchparty.credit.types import SequenceKey
from searchparty.episodes.types import Episode, StopReason, Transcript
from searchparty.errors import UserError


@dataclass(slots=True)
class Gathered:
    """What came of the episodes."""

    samples: list[Sample] = field(default_factory=list)
    """Of roles that learn, in the order of episodes, agents and candidates."""
    rewards: dict[str, list[Reward]] = field(default_factory=dict)
    """Per role of the plan, of every sequence: also of roles that do not learn, and of sequences that made no sample."""
    episodes: Counter[str] = field(default_factory=Counter)
    """Per role, in how many episodes it acted."""
    set_aside: Counter[StopReason] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def says_something(episode: Episode) -> bool:
    """Whether an episode's ending is the policy's doing: not that of a failed service, nor of a fault in the team's code."""
    return not episode.stop_reason.is_service_failure and episode.stop_reason is not StopReason.TEAM_ERROR


def sequences_to_score(
    episodes: Iterable[Episode],
    plan: CreditPlan,
    needed: Callable[[RoleCredit], bool],
    *,
    logprobs_required: bool = True,
) -> list[TokenSequence]:
    """The sequences that a model must score before credit can be assigned: those of roles for which `needed` says so.

    `lambda role: role.needs_teacher`, and likewise for a reference and for a critic. Raises as `agent_sequences` does.
    """
    return [
        sequence
        for episode in episodes
        if says_something(episode)
        for transcript in episode.agents
        if needed(_planned(plan, episode, transcript))
        for sequence in agent_sequences(episode, transcript, logprobs_required=logprobs_required)
    ]


def gather(episodes: Sequence[Episode], plan: CreditPlan, evidence: Evidence) -> Gathered:
    """Build the samples of a batch. See `assign_credit` for what is raised."""
    gathered = Gathered(rewards={role: [] for role in plan.roles})
    seen: set[EpisodeKey] = set()
    for episode in episodes:
        if (episode.question_key, episode.sample) in seen:
            raise ValueError(f"{episode.question_key}: sample {episode.sample} is there twice, so groups would count it twice")
        seen.add((episode.question_key, episode.sample))
        if not says_something(episode):
            gathered.set_aside[episode.stop_reason] += 1
            continue
        _gather_episode(gathered, episode, plan, evidence)
    return gathered


def _gather_episode(gathered: Gathered, episode: Episode, plan: CreditPlan, evidence: Evidence) -> None:
    judged = evidence.judged(episode)
    acted: set[str] = set()
    for transcript in episode.agents:
        role = _planned(plan, episode, transcript)
        worth = _Worth(episode, transcript, judged, plan, role, evidence)
        if role.learns:
            for sequence in agent_sequences(episode, transcript, logprobs_required=evidence.old_logprobs is None):
                _gather_sequence(gathered, sequence, worth)
                acted.add(transcript.role)
        else:
            for candidate in range(len(last_turn_taken(transcript))):
                gathered.rewards[transcript.role].append(worth.of(candidate, None, None))
                acted.add(transcript.role)
    gathered.episodes.update(acted)


def _gather_sequence(gathered: Gathered, sequence: TokenSequence, worth: _Worth) -> None:
    """Add one sequence. Without finite numbers of its own it makes no sample; without finite teacher's, it is not scored."""
    evidence, role = worth.evidence, worth.role
    if evidence.old_logprobs is not None:
        old_logprobs = aligned(evidence.old_logprobs, sequence, "the sampling policy's log-probabilities")
        if old_logprobs is None:
            raise ValueError(f"{sequence.key}: the sampling policy's log-probabilities were computed anew, but not for it")
        kept_T = np.where(sequence.trainable_T, old_logprobs, 0).astype(np.float32)
        sequence = replace(sequence, old_logprobs_T=kept_T)
    usable = is_finite(sequence.old_logprobs_T, sequence)
    if not usable:
        gathered.findings.append(_non_finite(sequence, "log-probabilities of the sampling policy"))
    teacher_T = aligned(evidence.teacher_logprobs, sequence, "the teacher's log-probabilities") if role.needs_teacher else None
    if teacher_T is not None and not is_finite(teacher_T, sequence):
        gathered.findings.append(_non_finite(sequence, "log-probabilities of the teacher", "it counts as not scored"))
        teacher_T = None
    values_T = aligned(evidence.values, sequence, "the critic's values") if role.estimator.needs_values else None
    if values_T is not None and not is_finite(values_T, sequence):
        gathered.findings.append(_non_finite(sequence, "values of the critic"))
        usable = False

    reference_T = aligned(evidence.reference_logprobs, sequence, "the reference's log-probabilities")
    if not role.needs_reference:
        reference_T = None
    elif reference_T is not None and not is_finite(reference_T, sequence):
        gathered.findings.append(_non_finite(sequence, "log-probabilities of the reference", "it counts as not scored"))
        reference_T = None

    divergence, reference_divergence, penalty_T = None, None, None
    if usable and teacher_T is not None and role.rewards.teacher_kl > 0:
        divergence = divergence_from(sequence, teacher_T)
    if usable and reference_T is not None:
        reference_divergence = divergence_from(sequence, reference_T)
        penalty_T = reference_penalty(sequence, reference_T, role.rewards.reference_kl)
    reward = worth.of(sequence.key.candidate, divergence, reference_divergence)
    gathered.rewards[sequence.role].append(reward)
    if usable:
        gathered.samples.append(Sample(sequence, reward, teacher_T, values_T, penalty_T))


@dataclass(slots=True)
class _Worth:
    """What one agent's part in an episode was worth."""

    episode: Episode
    transcript: Transcript
    judged: Sequence[JudgedCandidate]
    plan: CreditPlan
    role: RoleCredit
    evidence: Evidence

    def of(self, candidate: int, divergence: float | None, reference_divergence: float | None) -> Reward:
        """The reward of one candidate of the agent's last turn."""
        return self.role.rewards.mix(
            partial(self._part, candidate),
            well_formed=is_well_formed(self.episode, self.transcript, self.judged, candidate),
            divergence=divergence,
            reference_divergence=reference_divergence,
        )

    def _part(self, candidate: int, part: str) -> float:
        match part:
            case "exact_match":
                answers = self.transcript.agent == self.episode.answering_agent
                return exact_match(self.judged, candidate) if answers else 0.0
            case "team_result":
                return team_result(self.judged)
            case "behaviour":
                return behaviour(self.episode, self.transcript)
            case "assignment":
                return assignment(self.episode, self.plan.searching_role)
            case "f1":
                answers = self.transcript.agent == self.episode.answering_agent
                return answer_f1(self.judged, candidate if answers else 0)
            case "planner_cost":
                return planner_cost(self.episode, self.transcript.agent, self.plan.planner_costs)
            case "invalid_workflow":
                return invalid_workflow(self.episode, self.transcript.agent)
            case _:
                key = SequenceKey(self.episode.question_key, self.episode.sample, self.transcript.agent, candidate)
                return self.evidence.score(part, key, self.transcript)


def _planned(plan: CreditPlan, episode: Episode, transcript: Transcript) -> RoleCredit:
    """The plan for an agent's role. Raises UserError if the plan does not name the role."""
    role = plan.roles.get(transcript.role)
    if role is None:
        near = get_close_matches(transcript.role, plan.roles, n=1)
        hint = f"did you mean {transcript.role} where it says {near[0]}? " if near else ""
        raise UserError(
            f"credit.roles: the team {episode.team} has a role {transcript.role}, which the plan does not name; {hint}"
            f"add it, with estimator none if it is not to learn"
        )
    return role


def _non_finite(sequence: TokenSequence, what: str, consequence: str = "it is left out") -> Finding:
    return Finding(FindingKind.NON_FINITE, sequence.role, f"{what} are not all finite; {consequence}", sequence.key)
