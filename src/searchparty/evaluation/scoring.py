"""From an episode to its scores and counts: what the answer earned, and what it took to get there.

Only the sampled text of the answering agent's last turn is scored (contract 4). Every episode is scored, whatever its ending
(contract 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from searchparty.episodes.types import Episode, Span, SpanKind, StopReason, Transcript
from searchparty.evaluation.lenient import lenient_answer
from searchparty.evaluation.scorers import Scorer
from searchparty.questions.types import Question
from searchparty.teams.actions import Action
from searchparty.teams.answering import read_answers

FORMAT_FAILURES = (StopReason.INVALID_ANSWER, StopReason.INVALID_ACTION, StopReason.NO_REPORT, StopReason.NO_SELECTION)
"""Endings that mean: an agent could have gone on, had it written what it was to write."""


NOT_PLAYED = "not_played"
"""Stands for a stop reason where an unfinished run lacks an episode."""


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """One candidate of the answer call."""

    answer: str | None
    """Strictly extracted; None if there is no well-formed answer."""
    problem: str | None
    """Why there is none."""
    exact_match: float
    f1: float


@dataclass(frozen=True, slots=True)
class RoleUse:
    """What one role used in one episode. Token counts are None where the model exchanges text only and does not say."""

    agents: int
    calls: int
    input_tokens: int | None
    """Prompt tokens of all calls: a history of several turns counts again with each turn."""
    unique_input_tokens: int | None
    """Tokens that were observed, each once: without repeated history."""
    output_tokens: int | None
    format_failures: dict[str, int]
    """Turns without a well-formed action that ended an agent, by kind."""


@dataclass(frozen=True, slots=True)
class ScoredEpisode:
    """Scores and counts of one episode. The first candidate is the episode's answer."""

    question_key: str
    dataset: str
    sample: int
    stop_reason: str
    answer: str | None
    problem: str | None
    exact_match: float
    f1: float
    f1_joined: float
    cover_exact_match: float
    loose_exact_match: float
    """Exact match where spelling counts less, see `loose`; never the score, like the two below."""
    lenient_answer: str | None
    """The answer; where none was well-formed, what the rules of `lenient` read out of the answering agent's last turn."""
    lenient_exact_match: float
    """Exact match of that."""
    repaired_exact_match: float
    """Exact match if every format failure were a right answer: no repair of formats can give more."""
    scorable: bool
    """False if no golden answer survives normalisation; such a question scores 0 and is counted."""
    candidates: list[CandidateScore]
    steps: int
    searches: int
    failed_searches: int
    empty_searches: int
    roles: dict[str, RoleUse]
    seconds: float

    @property
    def key(self) -> tuple[str, int]:
        """Question and sample."""
        return self.question_key, self.sample


def extract_answers(episode: Episode) -> list[tuple[str | None, str | None]]:
    """Per candidate of the answering turn the answer and None, or None and the problem. Empty if nobody answered."""
    if episode.answering_agent is None:
        return []
    answers = read_answers(episode.transcript(episode.answering_agent))
    return [(answer.content, None) if isinstance(answer, Action) else (None, str(answer)) for answer in answers]


def score_episode(episode: Episode, golden_answers: Sequence[str], scorer: Scorer) -> ScoredEpisode:
    """Score one episode against the golden answers of its question."""
    turns = extract_answers(episode)
    candidates = [
        CandidateScore(answer, problem, scorer.exact_match(answer, golden_answers), scorer.f1(answer, golden_answers))
        for answer, problem in turns
    ]
    first = candidates[0] if candidates else CandidateScore(None, None, 0.0, 0.0)
    answer, scorable = first.answer, scorer.is_scorable(golden_answers)
    lenient = answer if answer is not None else _read_leniently(episode)
    lenient_exact_match = first.exact_match if answer is not None else scorer.exact_match(lenient, golden_answers)
    roles = dict.fromkeys(transcript.role for transcript in episode.agents)
    return ScoredEpisode(
        question_key=episode.question_key,
        dataset=episode.dataset,
        sample=episode.sample,
        stop_reason=episode.stop_reason.value,
        answer=answer,
        problem=first.problem,
        exact_match=first.exact_match,
        f1=first.f1,
        f1_joined=scorer.f1_joined(answer, golden_answers),
        cover_exact_match=scorer.cover_exact_match(answer, golden_answers),
        loose_exact_match=scorer.loose_exact_match(answer, golden_answers),
        lenient_answer=lenient,
        lenient_exact_match=lenient_exact_match,
        repaired_exact_match=1.0 if scorable and is_format_failure(episode, answer) else first.exact_match,
        scorable=scorable,
        candidates=candidates,
        steps=episode.steps,
        searches=len(episode.retrievals),
        failed_searches=sum(retrieval.failure is not None for retrieval in episode.retrievals),
        empty_searches=sum(retrieval.failure is None and not retrieval.hits for retrieval in episode.retrievals),
        roles={role: role_use([one for one in episode.agents if one.role == role]) for role in roles},
        seconds=episode.seconds,
    )


def missing_episode(question: Question, sample: int, scorer: Scorer) -> ScoredEpisode:
    """What stands for an episode that an unfinished run lacks: it counts as wrong, and as nothing done."""
    return ScoredEpisode(
        question_key=question.key, dataset=question.dataset, sample=sample, stop_reason=NOT_PLAYED, answer=None, problem=None,
        exact_match=0.0, f1=0.0, f1_joined=0.0, cover_exact_match=0.0, loose_exact_match=0.0, lenient_answer=None,
        lenient_exact_match=0.0, repaired_exact_match=0.0, scorable=scorer.is_scorable(question.golden_answers), candidates=[],
        steps=0, searches=0, failed_searches=0, empty_searches=0, roles={}, seconds=0.0,
    )  # fmt: skip


def is_format_failure(episode: Episode, answer: str | None) -> bool:
    """Whether there is no answer because some agent did not keep to its form, rather than to a budget, or for a service."""
    return answer is None and (episode.stop_reason in FORMAT_FAILURES or episode.stop_reason is StopReason.ANSWERED)


def _read_leniently(episode: Episode) -> str | None:
    if episode.answering_agent is None:
        return None
    turn = episode.transcript(episode.answering_agent).last_turn()
    return lenient_answer(turn[0].text) if turn else None


def role_use(transcripts: Sequence[Transcript]) -> RoleUse:
    """Count what the agents of one role used."""
    calls = [call for transcript in transcripts for call in transcript.calls]
    spans = [span for transcript in transcripts for span in transcript.spans]
    problems = [transcript.problem for transcript in transcripts if transcript.problem is not None]
    return RoleUse(
        agents=len(transcripts),
        calls=len(calls),
        input_tokens=_sum([call.prompt_tokens for call in calls if call.failure is None]),
        unique_input_tokens=_sum([_length(span) for span in spans if span.kind is not SpanKind.ACTION]),
        output_tokens=_sum([call.output_tokens for call in calls if call.failure is None]),
        format_failures={problem: problems.count(problem) for problem in sorted(set(problems))},
    )


def _length(span: Span) -> int | None:
    return None if span.ids is None else len(span.ids)


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum, or None if a part of it is unknown."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
