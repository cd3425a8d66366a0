"""Looking for silence: what in a batch of credit means that a role learns less than its plan says (contract 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from searchparty.credit.evidence import Evidence
from searchparty.credit.findings import Finding, FindingKind
from searchparty.credit.gathering import says_something
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.result import RoleCounts
from searchparty.episodes.types import Call, Episode, StopReason


def suspicions(
    episodes: Sequence[Episode],
    plan: CreditPlan,
    evidence: Evidence,
    counts: Mapping[str, RoleCounts],
    set_aside: Mapping[StopReason, int],
) -> Iterator[Finding]:
    """Everything suspicious that concerns a whole batch or a whole role."""
    for reason, number in set_aside.items():
        said = next((episode.detail for episode in episodes if episode.stop_reason is reason and episode.detail), None)
        cause = "" if said is None else f" (the first one: {' '.join(said.split())[:200]})"
        detail = f"{number} of {len(episodes)} episodes ended with {reason} and teach nothing{cause}"
        yield Finding(FindingKind.EPISODES_SET_ASIDE, None, detail)
    for name, role in plan.roles.items():
        if role.learns:
            yield from _in_role(name, role, counts[name])
        if (role.needs_teacher or role.needs_reference) and evidence.old_logprobs is None:
            yield from _in_sampling(name, episodes, evidence.teacher_temperature)


def _in_role(name: str, role: RoleCredit, counts: RoleCounts) -> Iterator[Finding]:
    if counts.tokens == 0:
        detail = f"it acted in {counts.episodes} episodes and none of its tokens can be trained"
        yield Finding(FindingKind.NO_TRAINABLE_TOKENS, name, detail)
        return
    if role.needs_teacher and counts.scored_tokens == 0:
        yield Finding(FindingKind.NOTHING_SCORED, name, f"the teacher scored none of its {counts.tokens} tokens")
    elif role.needs_teacher and counts.scored_tokens < counts.tokens:
        detail = f"the teacher scored {counts.scored_tokens} of its {counts.tokens} tokens"
        yield Finding(FindingKind.PARTLY_SCORED, name, detail)
    groups = counts.groups
    if groups is not None and groups.singletons == groups.groups:
        detail = f"all {groups.groups} groups have one member; compare something else or sample more"
        yield Finding(FindingKind.ONLY_SINGLETONS, name, detail)
    elif counts.moving_tokens == 0:
        yield Finding(FindingKind.NO_ADVANTAGE, name, f"the advantage of all its {counts.tokens} tokens is 0")


def _in_sampling(name: str, episodes: Sequence[Episode], teacher_temperature: float) -> Iterator[Finding]:
    calls = [
        call
        for episode in episodes
        if says_something(episode)
        for transcript in episode.agents
        if transcript.role == name
        for call in transcript.calls
    ]
    altered = [call for call in calls if not _compares(call, teacher_temperature)]
    if altered:
        first = altered[0]
        detail = (
            f"{len(altered)} of {len(calls)} calls were sampled at another setting than the teacher's temperature "
            f"{teacher_temperature:g}, such as temperature {first.temperature:g}, top_p {first.top_p:g}, top_k {first.top_k}"
        )
        yield Finding(FindingKind.ALTERED_SAMPLING, name, detail)


def _compares(call: Call, teacher_temperature: float) -> bool:
    """Whether a call's recorded log-probabilities are of the distribution that the teacher was asked about."""
    if call.temperature == 0:
        return teacher_temperature == 1.0
    return call.temperature == teacher_temperature and call.top_p == 1.0 and call.top_k == 0
