"""From episodes and evidence to samples: every sequence with its reward and with all that an estimator may read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import compress
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from searchparty.credit.estimators.base import Heard, Samples
from searchparty.credit.evidence import EpisodeKey, Evidence, heard, usable
from searchparty.credit.findings import Finding, FindingKind
from searchparty.credit.joining import JoinedSequences, join
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.reward_mix import Rewards
from searchparty.credit.rewards import divergences_from, reference_penalty
from searchparty.credit.sequences import TokenSequence, has_acted, last_turn_taken, sequences_of
from searchparty.credit.types import IndexArray
from searchparty.credit.worth import Worth, rewards_of
from searchparty.episodes.types import Episode, StopReason, Transcript
from searchparty.errors import UserError

SAMPLING_POLICY = "log-probabilities of the sampling policy"
TEACHER = "log-probabilities of the teacher"
REFERENCE = "log-probabilities of the reference"
CRITIC = "values of the critic"


@dataclass(slots=True)
class Gathered:
    """What came of the episodes."""

    samples: dict[str, Samples] = field(default_factory=dict)
    """Per role that learns."""
    places: dict[str, IndexArray] = field(default_factory=dict)
    """Per role that learns, the place of each of its samples' agents among all, in the order of episodes."""
    rewards: dict[str, Rewards] = field(default_factory=dict)
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

    `lambda role: role.needs_teacher`, and likewise for a reference and for a critic. Raises as `sequences_of` does.
    """
    parts = [
        (episode, transcript)
        for episode in episodes
        if says_something(episode)
        for transcript in episode.agents
        if needed(_planned(plan, episode, transcript))
    ]
    return sequences_of(parts, logprobs_required=logprobs_required)


def gather(episodes: Sequence[Episode], plan: CreditPlan, evidence: Evidence) -> Gathered:
    """Build the samples of a batch. See `assign_credit` for what is raised."""
    gathered = Gathered()
    members: dict[str, list[_Member]] = {name: [] for name in plan.roles}
    for place, worth in enumerate(_worths(gathered, episodes, plan, evidence)):
        members[worth.transcript.role].append(_Member(place, worth))
    findings = []
    for name, role in plan.roles.items():
        if role.learns:
            findings += _gather_role(gathered, name, role, members[name], evidence)
        else:
            turns = [
                (worth, candidate) for _, worth in members[name] for candidate in range(len(last_turn_taken(worth.transcript)))
            ]
            gathered.rewards[name] = rewards_of(turns, role.rewards)
    gathered.findings = [finding for _, finding in sorted(findings, key=itemgetter(0))]
    return gathered


class _Member(NamedTuple):
    """An agent."""

    place: int
    """Among all agents, in the order of episodes."""
    worth: Worth


def _worths(gathered: Gathered, episodes: Sequence[Episode], plan: CreditPlan, evidence: Evidence) -> Iterator[Worth]:
    """Every agent that says something, in order."""
    seen: set[EpisodeKey] = set()
    for episode in episodes:
        if (episode.question_key, episode.sample) in seen:
            raise ValueError(f"{episode.question_key}: sample {episode.sample} is there twice, so groups would count it twice")
        seen.add((episode.question_key, episode.sample))
        if not says_something(episode):
            gathered.set_aside[episode.stop_reason] += 1
            continue
        judged = evidence.judged(episode)
        for transcript in episode.agents:
            yield Worth(episode, transcript, judged, plan, _planned(plan, episode, transcript), evidence)
        gathered.episodes.update({transcript.role for transcript in episode.agents if has_acted(transcript)})


def _gather_role(
    gathered: Gathered, name: str, role: RoleCredit, members: Sequence[_Member], evidence: Evidence
) -> list[tuple[int, Finding]]:
    """Samples and rewards of one role. Gives what was found, each with the place of its agent.

    A sequence without finite numbers of its own makes no sample; without finite ones of teacher or reference, it counts as not
    scored by them.
    """
    parts = [(worth.episode, worth.transcript) for _, worth in members]
    sequences = join(parts, logprobs_required=evidence.old_logprobs is None)
    layout = sequences.layout
    old = _sampling_policy(sequences, evidence)
    teacher = heard(evidence.teacher_logprobs, sequences, TEACHER) if role.needs_teacher else None
    critic = heard(evidence.values, sequences, CRITIC) if role.needs_values else None
    reference = heard(evidence.reference_logprobs, sequences, REFERENCE) if role.needs_reference else None
    usable_S = ~old.broken_S if critic is None else ~old.broken_S & ~critic.broken_S

    divergence_S = reference_divergence_S = penalty_N = None
    if teacher is not None and role.rewards.teacher_kl > 0:
        divergence_S = divergences_from(old.said_N, teacher.said_N, layout)
        divergence_S[~(teacher.known_S & usable_S)] = np.nan
    if reference is not None:
        reference_divergence_S = divergences_from(old.said_N, reference.said_N, layout)
        reference_divergence_S[~(reference.known_S & usable_S)] = np.nan
        penalty_N = reference_penalty(old.said_N, reference.said_N, role.rewards.reference_kl)
        penalty_N[np.repeat(~reference.known_S, layout.tokens_S)] = 0
    turns = [
        (members[part].worth, head.key.candidate) for part, head in zip(sequences.part_S.tolist(), sequences.heads, strict=True)
    ]
    gathered.rewards[name] = rewards_of(turns, role.rewards, divergence_S, reference_divergence_S)
    place_S = np.array([place for place, _ in members], np.intp)[sequences.part_S]
    samples = Samples(sequences, gathered.rewards[name], old.said_N, teacher, critic, penalty_N)
    gathered.samples[name] = samples.only(usable_S)
    gathered.places[name] = place_S[usable_S]
    return [
        (place, Finding(FindingKind.NON_FINITE, name, f"{what} are not all finite; {consequence}", head.key))
        for said, what, consequence in (
            (old, SAMPLING_POLICY, "it is left out"),
            (teacher, TEACHER, "it counts as not scored"),
            (critic, CRITIC, "it is left out"),
            (reference, REFERENCE, "it counts as not scored"),
        )
        if said is not None
        for place, head in compress(zip(place_S.tolist(), sequences.heads, strict=True), said.broken_S)
    ]


def _sampling_policy(sequences: JoinedSequences, evidence: Evidence) -> Heard:
    """The sampling policy's log-probabilities; those that were computed anew take the place of those recorded."""
    if evidence.old_logprobs is None:
        return usable(sequences.logprobs_N, np.ones(len(sequences.heads), np.bool_), sequences.layout)
    old = heard(evidence.old_logprobs, sequences, SAMPLING_POLICY)
    unknown_S = ~(old.known_S | old.broken_S)
    if unknown_S.any():
        key = sequences.heads[int(unknown_S.argmax())].key
        raise ValueError(f"{key}: the sampling policy's log-probabilities were computed anew, but not for it")
    return old


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
