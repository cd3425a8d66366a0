"""What of one episode a diagnosis needs: small, so that a large run is never in memory as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from searchparty.diagnosis.evidence import Interface, Journey, could_search, journey_of, lost_at
from searchparty.diagnosis.reports import reports_of
from searchparty.diagnosis.words import words_of
from searchparty.episodes.types import AgentEnd, Episode, SpanKind
from searchparty.evaluation.scorers import Scorer
from searchparty.evaluation.scoring import RoleUse, ScoredEpisode, score_episode
from searchparty.questions.types import Question


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """One role in one episode."""

    use: RoleUse
    searches: int
    ended: dict[str, int]
    """How its agents' parts ended, by kind."""
    cut: int
    """Completions that the token limit cut."""
    characters: int
    """Of all its sampled text."""


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """One episode. Where something cannot be said it is None, which is not 0."""

    question_key: str
    dataset: str
    sample: int
    stop_reason: str
    exact_match: float
    candidates_right: int
    candidates: int
    """Of the answer call."""
    answers: frozenset[str | None]
    """The different answers among its candidates, after normalisation; None stands for all that are not well-formed."""
    steps: int
    rounds: int | None
    """Assignments of the Leader; None for a team without one."""
    could_search: bool
    searches: int
    repeated_searches: int
    """Queries whose words an earlier query of the same episode had, in whatever order."""
    empty_searches: int
    reports: int | None
    """Reports that were written; None for a team without Searchers that report, like the one below."""
    reports_selected: int | None
    journey: Journey
    lost_at: Interface | None
    """None if the answer is right."""
    roles: dict[str, RoleFacts]
    workflows: tuple[str, ...] = ()
    """Of a planner, in order: the executors of each of its plans, or `broken: RULE`."""
    executor_problems: tuple[tuple[str, str], ...] = ()
    """Executors that gave nothing usable, each with the kind of the problem."""
    step: int | None = None
    """The training step; None for an evaluation."""

    @property
    def name(self) -> str:
        """As a person finds it again: question key and sample (from 0), behind the step of a training."""
        name = f"{self.question_key}#{self.sample}"
        return name if self.step is None else f"step {self.step}: {name}"


def facts_of(episode: Episode, question: Question, scorer: Scorer) -> EpisodeFacts:
    """Read one episode."""
    scored = score_episode(episode, question.golden_answers, scorer)
    reports = reports_of(episode)
    journey = journey_of(episode, question, reports)
    roles = dict.fromkeys(transcript.role for transcript in episode.agents)
    return EpisodeFacts(
        question_key=episode.question_key,
        dataset=episode.dataset,
        sample=episode.sample,
        stop_reason=episode.stop_reason.value,
        exact_match=scored.exact_match,
        candidates_right=sum(candidate.exact_match == 1 for candidate in scored.candidates),
        candidates=len(scored.candidates),
        answers=_different([candidate.answer for candidate in scored.candidates], scorer),
        steps=episode.steps,
        rounds=_rounds(episode),
        could_search=could_search(episode),
        searches=len(episode.retrievals),
        repeated_searches=_repeated([retrieval.query for retrieval in episode.retrievals]),
        empty_searches=scored.empty_searches,
        reports=None if reports is None else len(reports.written),
        reports_selected=None if reports is None else len(reports.selected),
        journey=journey,
        lost_at=None if scored.exact_match == 1 else lost_at(episode, journey),
        roles={role: _role_facts(role, episode, scored) for role in roles},
        workflows=tuple(
            ", ".join(turn.executors) if turn.broken_rule is None else f"broken: {turn.broken_rule}"
            for turn in episode.planner_turns
        ),
        executor_problems=tuple(
            (use.executor, use.problem) for turn in episode.planner_turns for use in turn.uses if use.problem is not None
        ),
    )


def _different(answers: Sequence[str | None], scorer: Scorer) -> frozenset[str | None]:
    return frozenset(None if answer is None else scorer.script.normalise(answer) for answer in answers)


def _role_facts(role: str, episode: Episode, scored: ScoredEpisode) -> RoleFacts:
    transcripts = [transcript for transcript in episode.agents if transcript.role == role]
    agents = {transcript.agent for transcript in transcripts}
    actions = [span for one in transcripts for span in one.spans if span.kind is SpanKind.ACTION]
    return RoleFacts(
        use=scored.roles[role],
        searches=sum(retrieval.agent in agents for retrieval in episode.retrievals),
        ended=dict(Counter(transcript.end.value for transcript in transcripts)),
        cut=sum(span.finish_reason == "length" for span in actions),
        characters=sum(len(span.text) for span in actions),
    )


def _rounds(episode: Episode) -> int | None:
    """The turns of the Leader that assigned tasks: all but the one that selected, or that was in the wrong form."""
    leaders = [transcript for transcript in episode.agents if "select" in transcript.tags]
    if not leaders:
        return None
    turns = sum(call.failure is None for call in leaders[0].calls)
    last_assigned_nothing = leaders[0].end in (AgentEnd.FINISHED, AgentEnd.INVALID_ACTION, AgentEnd.LIMIT)
    return max(0, turns - last_assigned_nothing)


def _repeated(queries: Sequence[str]) -> int:
    words = [tuple(sorted(words_of(query))) for query in queries]
    return len(words) - len(set(words))
