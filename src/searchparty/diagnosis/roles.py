"""How each role fared: means per episode in which it acted, with their intervals, and how its turns ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from searchparty.diagnosis.facts import EpisodeFacts, RoleFacts
from searchparty.diagnosis.share_intervals import interval_of_mean

MEANS: Mapping[str, Callable[[RoleFacts], float | None]] = {
    "agents": lambda role: role.use.agents,
    "calls": lambda role: role.use.calls,
    "searches": lambda role: role.searches,
    "input_tokens": lambda role: role.use.input_tokens,
    "unique_input_tokens": lambda role: role.use.unique_input_tokens,
    "output_tokens": lambda role: role.use.output_tokens,
    "characters": lambda role: role.characters,
    "cut": lambda role: role.cut,
}
"""By the names that `RoleDiagnosis` has for them; None where a model does not say."""


@dataclass(frozen=True, slots=True)
class RoleDiagnosis:
    """One role. Means are per episode in which it acted."""

    episodes: int
    agents: float
    calls: float
    searches: float
    input_tokens: float | None
    """Repeated history counted again; None where a model does not say, like the two below."""
    unique_input_tokens: float | None
    output_tokens: float | None
    characters: float
    """Sampled text."""
    cut: float
    """Completions that the token limit cut."""
    ended: dict[str, int]
    """Its agents' endings; totals."""
    format_failures: dict[str, int]
    """By kind; totals."""
    intervals: dict[str, tuple[float, float]]
    """95 %, of every mean above that is known, by drawing questions again."""


def diagnose_roles(facts: Sequence[EpisodeFacts], resamples: int) -> dict[str, RoleDiagnosis]:
    """Every role in the order of its first appearance. Without `resamples` there are no intervals."""
    return {role: _role(role, facts, resamples) for role in dict.fromkeys(role for one in facts for role in one.roles)}


def _role(role: str, facts: Sequence[EpisodeFacts], resamples: int) -> RoleDiagnosis:
    own = [one for one in facts if role in one.roles]
    ended, failures = Counter[str](), Counter[str]()
    for one in own:
        ended.update(one.roles[role].ended)
        failures.update(one.roles[role].use.format_failures)
    means: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name, amount in MEANS.items():
        values = [amount(one.roles[role]) for one in own]
        known = [value for value in values if value is not None]
        means[name] = sum(known) / len(own) if len(known) == len(own) else None
        if means[name] is not None and resamples:
            interval = interval_of_mean(own, lambda one, amount=amount: amount(one.roles[role]), resamples)  # type: ignore[misc]
            assert interval is not None  # an episode is a trial
            intervals[name] = interval.low, interval.high
    return RoleDiagnosis(
        episodes=len(own),
        **means,  # type: ignore[arg-type]  # only those of tokens may be None
        ended=dict(ended.most_common()),
        format_failures=dict(failures.most_common()),
        intervals=intervals,
    )
