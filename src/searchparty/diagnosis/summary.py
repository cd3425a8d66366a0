"""From the facts of many episodes to a diagnosis: behaviour, the way of the evidence, and how each role fared.

Means and shares are over all episodes of the set, whatever their ending (contract 8), unless a field says otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.facts import EpisodeFacts
from searchparty.diagnosis.roles import RoleDiagnosis, diagnose_roles
from searchparty.diagnosis.share_intervals import OfEpisode, interval_of_losses, interval_of_mean, interval_of_share
from searchparty.evaluation.intervals import RESAMPLES, Interval, wilson_interval

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
    """95 %, of every share and mean above and of the shares of `evidence`, by their names, by drawing questions again; none
    where there is nothing of which to have a share."""


def diagnose(facts: Sequence[EpisodeFacts], *, resamples: int = RESAMPLES, roles: bool = True) -> Diagnosis:
    """Sum up, the means of roles with their intervals if asked. Raises ValueError without episodes."""
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
        roles=diagnose_roles(facts, resamples if roles else 0),
        workflows=dict(Counter(workflow for one in facts for workflow in one.workflows).most_common()),
        executor_problems=_executor_problems(facts),
        intervals=_intervals(facts, evidence, resamples),
    )


def loss_at(interface: Interface, diagnosis: Diagnosis) -> tuple[float, float, float]:
    """Share of all episodes lost there with the ends of its interval: Wilson's over questions where nothing was lost."""
    for loss in diagnosis.losses:
        if loss.interface is interface:
            return loss.share, loss.low, loss.high
    none = wilson_interval(0, diagnosis.questions)
    return 0.0, none.low, none.high


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
    found |= {name: interval_of_mean(some, amount, resamples) for name, (some, amount) in _means(facts).items()}
    found["distinct_answers"] = _interval_of_distinct(facts, resamples)
    return {name: (one.low, one.high) for name, one in found.items() if one is not None}


def _means(facts: Sequence[EpisodeFacts]) -> dict[str, tuple[Sequence[EpisodeFacts], OfEpisode]]:
    """Each mean per episode with the episodes that it is over."""
    means: dict[str, tuple[Sequence[EpisodeFacts], OfEpisode]] = {
        "searches": (facts, lambda one: one.searches),
        "steps": (facts, lambda one: one.steps),
        "rounds": ([one for one in facts if one.rounds is not None], lambda one: one.rounds),
        "reports": ([one for one in facts if one.reports is not None], lambda one: one.reports),
    }
    return {name: of for name, of in means.items() if of[0]}


def _interval_of_distinct(facts: Sequence[EpisodeFacts], resamples: int) -> Interval | None:
    answers: dict[str, set[str | None]] = {}
    for one in facts:
        answers.setdefault(one.question_key, set()).update(one.answers)
    firsts = list({one.question_key: one for one in facts}.values())
    return interval_of_mean(firsts, lambda one: len(answers[one.question_key]), resamples)


def _groups(groups: Iterable[Sequence[bool]]) -> Groups:
    kinds = Counter[str]()
    for group in groups:
        if len(group) == 1:
            kinds["single"] += 1
        elif group:
            kinds["all_right" if all(group) else "mixed" if any(group) else "all_wrong"] += 1
    return Groups(kinds["all_right"], kinds["all_wrong"], kinds["mixed"], kinds["single"])


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
