"""From the facts of many episodes to a diagnosis: behaviour, the way of the evidence, and how each role fared.

Means and shares are over all episodes of the set, whatever their ending (contract 8), unless a field says otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.facts import EpisodeFacts, RoleFacts
from searchparty.diagnosis.share_intervals import OfEpisode, interval_of_losses, interval_of_share
from searchparty.evaluation.intervals import RESAMPLES

EXAMPLES = 5
"""Episodes named for each interface."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The episodes that lost the evidence at one interface."""

    interface: Interface
    episodes: int
    share: float
    """Of all episodes."""
    low: float
    high: float
    """95 %: by drawing questions again where they have several episodes, else Wilson's."""
    examples: list[str]
    """The first few, of different questions, as `EpisodeFacts.name` has them."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The way of the evidence over all episodes whose questions name their passages. Shares of golden passages."""

    episodes: int
    passages: int
    found: float
    reported: float | None
    """By the reports; None for a team without them, like the one below."""
    selected: float | None
    answered: float
    """Share of these episodes whose answer is right."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Attempts at one question: where all earn the same, an outcome reward teaches nothing by comparison."""

    all_right: int
    all_wrong: int
    mixed: int
    single: int
    """With one member."""


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


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One set of episodes: an evaluation, one dataset of it, or one training step."""

    episodes: int
    questions: int
    right: float
    """Share whose answer is right (exact match)."""
    searches: float
    no_search: float
    """Share of episodes without any search."""
    repeated_searches: float
    """Share of searches whose words the episode had searched for before."""
    empty_searches: float
    """Share of searches that found nothing."""
    steps: float
    rounds: float | None
    """Assignments of the Leader; None for a team without one."""
    reports: float | None
    reports_used: float | None
    """Share of the written reports that reached the Answerer; None where none was written."""
    distinct_answers: float
    """Different answers of a question, over its attempts and candidates."""
    stop_reasons: dict[str, int]
    losses: list[Loss]
    """The interfaces at which episodes lost the evidence, the most frequent first."""
    evidence: Evidence | None
    """None if no question names its passages."""
    episode_groups: Groups
    """Attempts at one question, by their first answers."""
    candidate_groups: Groups
    """Candidates of one answer call."""
    roles: dict[str, RoleDiagnosis]
    workflows: dict[str, int]
    """Plans of a planner, and `broken: RULE` for those that could not be carried out; empty for other teams, as the next."""
    executor_problems: dict[str, dict[str, int]]
    """Executor to the kinds of problems for which it gave nothing usable."""
    intervals: dict[str, tuple[float, float]]
    """95 %, of every share above and of those of `evidence`, by their names, by drawing questions again; none where there is
    nothing of which to have a share."""


def diagnose(facts: Sequence[EpisodeFacts], *, resamples: int = RESAMPLES) -> Diagnosis:
    """Sum up. Raises ValueError without episodes."""
    if not facts:
        raise ValueError("no episode")
    by_question: dict[str, list[EpisodeFacts]] = {}
    for one in facts:
        by_question.setdefault(one.question_key, []).append(one)
    searches = sum(one.searches for one in facts)
    evidence = _evidence([one for one in facts if one.journey.golden])
    written = sum(one.reports or 0 for one in facts)
    return Diagnosis(
        episodes=len(facts),
        questions=len(by_question),
        right=_mean(one.exact_match == 1 for one in facts),
        searches=searches / len(facts),
        no_search=_mean(one.searches == 0 for one in facts),
        repeated_searches=sum(one.repeated_searches for one in facts) / max(searches, 1),
        empty_searches=sum(one.empty_searches for one in facts) / max(searches, 1),
        steps=_mean(one.steps for one in facts),
        rounds=_mean_known(one.rounds for one in facts),
        reports=_mean_known(one.reports for one in facts),
        reports_used=sum(one.reports_selected or 0 for one in facts) / written if written else None,
        distinct_answers=_distinct(by_question.values()),
        stop_reasons=dict(Counter(one.stop_reason for one in facts).most_common()),
        losses=_losses(facts, resamples),
        evidence=evidence,
        episode_groups=_groups([[one.exact_match == 1 for one in group] for group in by_question.values()]),
        candidate_groups=_groups([[place < one.candidates_right for place in range(one.candidates)] for one in facts]),
        roles={role: _role(role, facts) for role in dict.fromkeys(role for one in facts for role in one.roles)},
        workflows=dict(Counter(workflow for one in facts for workflow in one.workflows).most_common()),
        executor_problems=_executor_problems(facts),
        intervals=_intervals(facts, evidence, resamples),
    )


def _losses(facts: Sequence[EpisodeFacts], resamples: int) -> list[Loss]:
    where: dict[Interface, list[EpisodeFacts]] = {}
    for one in facts:
        if one.lost_at is not None:
            where.setdefault(one.lost_at, []).append(one)
    losses = []
    for interface, lost in sorted(where.items(), key=lambda item: (-len(item[1]), list(Interface).index(item[0]))):
        interval = interval_of_losses(facts, interface, resamples)
        one_each = {one.question_key: one for one in reversed(lost)}
        names = [one.name for one in list(one_each.values())[::-1][:EXAMPLES]]
        losses.append(Loss(interface, len(lost), len(lost) / len(facts), interval.low, interval.high, names))
    return losses


def _evidence(facts: Sequence[EpisodeFacts]) -> Evidence | None:
    if not facts:
        return None
    passages = sum(one.journey.golden for one in facts)
    has_reports = any(one.journey.golden_reported is not None for one in facts)

    def share(of: OfEpisode) -> float:
        return sum(of(one) or 0 for one in facts) / passages

    return Evidence(
        episodes=len(facts),
        passages=passages,
        found=share(lambda one: one.journey.golden_found),
        reported=share(lambda one: one.journey.golden_reported) if has_reports else None,
        selected=share(lambda one: one.journey.golden_selected) if has_reports else None,
        answered=_mean(one.exact_match == 1 for one in facts),
    )


def _intervals(facts: Sequence[EpisodeFacts], evidence: Evidence | None, resamples: int) -> dict[str, tuple[float, float]]:
    shares: dict[str, tuple[Sequence[EpisodeFacts], OfEpisode, OfEpisode]] = {
        "right": (facts, lambda one: one.exact_match == 1, lambda _: 1),
        "no_search": (facts, lambda one: one.searches == 0, lambda _: 1),
        "repeated_searches": (facts, lambda one: one.repeated_searches, lambda one: one.searches),
        "empty_searches": (facts, lambda one: one.empty_searches, lambda one: one.searches),
        "reports_used": (facts, lambda one: one.reports_selected, lambda one: one.reports),
    }
    if evidence is not None:
        known = [one for one in facts if one.journey.golden]
        golden: OfEpisode = lambda one: one.journey.golden  # noqa: E731
        shares["found"] = known, lambda one: one.journey.golden_found, golden
        if evidence.reported is not None:
            shares["reported"] = known, lambda one: one.journey.golden_reported, golden
            shares["selected"] = known, lambda one: one.journey.golden_selected, golden
        shares["answered"] = known, lambda one: one.exact_match == 1, lambda _: 1
    found = {name: interval_of_share(some, hits, resamples, trials) for name, (some, hits, trials) in shares.items()}
    return {name: (one.low, one.high) for name, one in found.items() if one is not None}


def _groups(groups: Iterable[Sequence[bool]]) -> Groups:
    kinds = Counter[str]()
    for group in groups:
        if len(group) == 1:
            kinds["single"] += 1
        elif group:
            kinds["all_right" if all(group) else "mixed" if any(group) else "all_wrong"] += 1
    return Groups(kinds["all_right"], kinds["all_wrong"], kinds["mixed"], kinds["single"])


def _role(role: str, facts: Sequence[EpisodeFacts]) -> RoleDiagnosis:
    own: list[RoleFacts] = [one.roles[role] for one in facts if role in one.roles]
    ended, failures = Counter[str](), Counter[str]()
    for one in own:
        ended.update(one.ended)
        failures.update(one.use.format_failures)
    return RoleDiagnosis(
        episodes=len(own),
        agents=_mean(one.use.agents for one in own),
        calls=_mean(one.use.calls for one in own),
        searches=_mean(one.searches for one in own),
        input_tokens=_mean_of_all([one.use.input_tokens for one in own]),
        unique_input_tokens=_mean_of_all([one.use.unique_input_tokens for one in own]),
        output_tokens=_mean_of_all([one.use.output_tokens for one in own]),
        characters=_mean(one.characters for one in own),
        cut=_mean(one.cut for one in own),
        ended=dict(ended.most_common()),
        format_failures=dict(failures.most_common()),
    )


def _executor_problems(facts: Iterable[EpisodeFacts]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for one in facts:
        for executor, problem in one.executor_problems:
            found.setdefault(executor, Counter())[problem] += 1
    return {executor: dict(problems.most_common()) for executor, problems in sorted(found.items())}


def _distinct(groups: Iterable[Sequence[EpisodeFacts]]) -> float:
    """Different answers per question. Over attempts and candidates."""
    return _mean(len(frozenset().union(*(one.answers for one in group))) for group in groups)


def _mean(values: Iterable[float]) -> float:
    there = [float(value) for value in values]
    return sum(there) / len(there) if there else 0.0


def _mean_known(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _mean_of_all(values: Sequence[int | None]) -> float | None:
    """The mean, or None if a part of it is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
