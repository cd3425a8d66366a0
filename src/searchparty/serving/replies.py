"""What `POST /ask` answers: of every attempt its answer, its evidence, its cost and its ending, read from the episode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from searchparty.costs.prices import Prices
from searchparty.costs.spending import spending_of
from searchparty.episodes.types import Episode, StopReason
from searchparty.errors import Failure, FailureKind
from searchparty.evaluation.scoring import extract_answers
from searchparty.serving.service import Attempt


def ask_reply(attempts: Sequence[Attempt], prices: Prices | None) -> dict[str, Any]:
    """The whole reply. `answer` is that of the first attempt."""
    first = attempts[0].episode
    return {
        "team": first.team,
        "question": first.question,
        "seed": first.seed,
        "answer": answer_of(first),
        "attempts": [_attempt(attempt, prices) for attempt in attempts],
    }


def answer_of(episode: Episode) -> str | None:
    """The first well-formed answer among the candidates of the answering turn; None if there is none."""
    return next((answer for answer, _ in extract_answers(episode) if answer is not None), None)


def failures_of(episode: Episode) -> Iterator[Failure]:
    """Every failure of a model or the retriever that the episode recorded."""
    for transcript in episode.agents:
        yield from (call.failure for call in transcript.calls if call.failure is not None)
    yield from (retrieval.failure for retrieval in episode.retrievals if retrieval.failure is not None)


def status_of(episodes: Sequence[Episode]) -> int:
    """The HTTP status: 200 if at least one attempt went its way, whatever it came to.

    Else 504 if a service was too slow, 502 if one failed otherwise, 500 if the team's own code raised.
    """
    if not all(episode.stop_reason.is_service_failure or episode.stop_reason is StopReason.TEAM_ERROR for episode in episodes):
        return 200
    failure = next(failures_of(episodes[0]), None)
    if failure is None:
        return 500
    return 504 if failure.kind is FailureKind.TIMEOUT else 502


def ending_of(episode: Episode) -> str:
    """Stop reason and detail as one line."""
    return f"{episode.stop_reason}" + (f" ({' '.join(episode.detail.split())})" if episode.detail else "")


def _attempt(attempt: Attempt, prices: Prices | None) -> dict[str, Any]:
    episode, spent = attempt.episode, spending_of(attempt.episode)
    return {
        "sample": episode.sample,
        "answer": answer_of(episode),
        "stop_reason": episode.stop_reason,
        "detail": episode.detail,
        "failure": next(failures_of(episode), None),
        "evidence": _evidence(attempt),
        "workflow": episode.planner_turns,
        "steps": episode.steps,
        "turns": spent.turns,
        "searches": spent.searches,
        "tokens": [
            {"role": role, "model": model, "uncached_input": used.uncached_input, "cached_input": used.cached_input,
             "output": used.output}
            for (role, model), used in spent.by_role.items()
        ],
        "usd": None if prices is None else spent.usd(prices),
        "seconds": episode.seconds,
    }  # fmt: skip


def _evidence(attempt: Attempt) -> list[dict[str, Any]]:
    """Every passage that was found, once, in the order of the searches that found it first."""
    found: dict[str, dict[str, Any]] = {}
    for retrieval in attempt.episode.retrievals:
        for hit in retrieval.hits:
            if hit.id not in found:
                text = attempt.passages[hit.id].text
                found[hit.id] = {
                    "id": hit.id, "title": hit.title, "text": text, "score": hit.score, "agent": retrieval.agent,
                    "query": retrieval.query,
                }  # fmt: skip
    return list(found.values())
