"""Whether an agent's transcript is in order by itself: spans in turn, every action of a call, every call as long as it says.

Reads one transcript; knows nothing of signals.
"""

from __future__ import annotations

from collections.abc import Iterator

from searchparty.episodes.types import Episode, Span, SpanKind, Transcript
from searchparty.training.audit_report import Rule, Violation, of_episode


def span_fault(episode: Episode, transcript: Transcript) -> Violation | None:
    """The first span out of turn: first comes a prompt, then observation and action by turns, the last with alternatives."""
    begun: set[int] = set()
    previous: Span | None = None
    position = 0
    for number, span in enumerate(transcript.spans):
        wanted = _wanted_instead(span, previous, begun, len(transcript.calls))
        if wanted is not None:
            place = f"span {number}, which begins at token {position}"
            return _fault(episode, transcript, Rule.HISTORIES, place, _described(span), wanted)
        if span.call is not None:
            begun.add(span.call)
        position += len(span.ids or ())
        previous = span
    return None


def _wanted_instead(span: Span, previous: Span | None, begun: set[int], calls: int) -> str | None:
    """What should stand in the place of a span; None if it may stand there itself."""
    if span.kind is not SpanKind.ACTION:
        if (span.kind is SpanKind.PROMPT) != (previous is None):
            return "a prompt first and nowhere else"
        only_actions_have = (span.call, span.candidate, span.logprobs, span.finish_reason)
        return None if all(value is None for value in only_actions_have) else "nothing that only an action has"
    if span.call is None or not 0 <= span.call < calls:
        return f"an action of one of the agent's {calls} calls"
    if previous is not None and previous.call == span.call and previous.candidate is not None:
        return None if span.candidate == previous.candidate + 1 else "candidates side by side from 0 on"
    if previous is None or previous.kind is not SpanKind.OBSERVATION:
        return "an observation before every action"
    in_order = span.candidate == 0 and all(call < span.call for call in begun)
    return None if in_order else "calls in order, each from candidate 0 on"


def call_faults(episode: Episode, transcript: Transcript) -> Iterator[Violation]:
    """Calls that do not say of themselves what the spans show. The spans are in turn."""
    exact = all(span.ids is not None for span in transcript.spans)
    spans_of: dict[int, list[Span]] = {}
    before: dict[int, int] = {}
    position = 0
    for span in transcript.spans:
        if span.call is not None:
            spans_of.setdefault(span.call, []).append(span)
            before.setdefault(span.call, position)
        position += len(span.ids or ())
    for number, call in enumerate(transcript.calls):
        spans = spans_of.get(number, [])
        wanted = 0 if call.failure is not None else call.n
        facts: list[tuple[str, int | None, int]] = [("candidates", len(spans), wanted)]
        if len(spans) > 1 and number != max(spans_of):
            facts.append(("candidates before another turn", len(spans), 1))
        if exact and spans:
            facts.append(("prompt_tokens", call.prompt_tokens, before[number]))
            facts.append(("output_tokens", call.output_tokens, sum(len(span.ids or ()) for span in spans)))
            facts += [
                (f"log-probabilities of candidate {span.candidate}", len(span.logprobs), len(span.ids or ()))
                for span in spans
                if span.logprobs is not None
            ]
        for what, found, expected in facts:
            if found is not None and found != expected:
                yield _fault(episode, transcript, Rule.PREFIXES, f"{what} of call {number}", found, expected)


def _fault(episode: Episode, transcript: Transcript, rule: Rule, what: str, found: object, expected: object) -> Violation:
    return of_episode((episode.question_key, episode.sample), rule, what, found, expected, transcript.agent)


def _described(span: Span) -> str:
    if span.call is None:
        return str(span.kind)
    return f"{span.kind} of call {span.call}, candidate {span.candidate}"
