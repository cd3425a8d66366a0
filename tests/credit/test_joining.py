"""Many agents' histories side by side, held against a plain walk through their spans."""

from __future__ import annotations

from itertools import compress

import numpy as np
import pytest
from credit_factories import RIGHT, chained, hierarchical
from hypothesis import given, settings
from hypothesis import strategies as st

from searchparty.credit.joining import join
from searchparty.credit.sequences import sequences_of
from searchparty.episodes.types import Call, Episode, Span, SpanKind, Transcript
from searchparty.errors import UserError

EPISODE = chained(answers=[RIGHT])
tokens = st.integers(0, 5)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """A history of a few turns, the last with several candidates perhaps, and perhaps with something observed after it."""
    numbers = iter(range(1000))

    def span(kind: SpanKind, call: int | None = None, candidate: int | None = None) -> Span:
        ids = [next(numbers) for _ in range(draw(tokens))]
        is_action = kind is SpanKind.ACTION
        return Span(kind, "", ids, [-1.0 - one for one in ids] if is_action else None, call, candidate)

    spans = [span(SpanKind.PROMPT) for _ in range(draw(st.integers(0, 1)))]
    turns = draw(st.integers(0, 3))
    for turn in range(turns):
        spans += [span(SpanKind.OBSERVATION) for _ in range(draw(st.integers(0, 2)))]
        candidates = draw(st.integers(1, 3)) if turn == turns - 1 else 1
        spans += [span(SpanKind.ACTION, turn, candidate) for candidate in range(candidates)]
    spans += [span(SpanKind.OBSERVATION) for _ in range(draw(st.integers(0, 1)))]
    return Transcript("searcher.1", "searcher", "script", spans=spans, calls=[Call(1, 0, 1, 1.0, 1.0, 0, 9, 0.0)] * turns)


def walked(transcript: Transcript) -> list[tuple[list[int], list[bool], list[float]]]:
    """Ids, mask and log-probabilities of each sequence, token by token."""
    found = []
    turn = transcript.last_turn()
    for candidate in turn:
        before = transcript.spans[: next(place for place, span in enumerate(transcript.spans) if span is turn[0])]
        ids, mask, logprobs = [], [], []
        for span in (*before, candidate):
            trained = span is candidate or (span.kind is SpanKind.ACTION and candidate.candidate == 0)
            for place, token in enumerate(span.ids or ()):
                ids.append(token)
                mask.append(trained)
                logprobs.append(span.logprobs[place] if trained and span.logprobs else 0.0)
        found.append((ids, mask, logprobs))
    return found


@settings(deadline=None)
@given(st.lists(transcripts(), max_size=5), st.booleans())
def test_sequences_are_those_of_a_plain_walk_through_the_spans(histories: list[Transcript], logprobs_required: bool) -> None:
    found = sequences_of([(EPISODE, one) for one in histories], logprobs_required=logprobs_required)
    expected = [walk for one in histories for walk in walked(one)]
    assert len(found) == len(expected)
    for one, (ids, mask, logprobs) in zip(found, expected, strict=True):
        assert one.ids_T.tolist() == ids
        assert one.trainable_T.tolist() == mask
        assert one.old_logprobs_T.tolist() == (logprobs if logprobs_required else [0.0] * len(ids))


@given(st.lists(transcripts(), max_size=5), st.data())
def test_some_of_the_sequences_are_what_joining_them_alone_gives(histories: list[Transcript], data: st.DataObject) -> None:
    joined = join([(EPISODE, one) for one in histories])
    kept_S = np.array(data.draw(st.lists(st.booleans(), min_size=len(joined.heads), max_size=len(joined.heads))), np.bool_)
    some = joined.only(kept_S)

    cuts = (
        (some.layout.cut(some.ids_M), joined.layout.cut(joined.ids_M)),
        (some.layout.cut(some.layout.trainable_M), joined.layout.cut(joined.layout.trainable_M)),
        (some.layout.split(some.logprobs_N), joined.layout.split(joined.logprobs_N)),
    )
    for found, every in cuts:
        assert [one.tolist() for one in found] == [one.tolist() for one in compress(every, kept_S)]
    assert some.part_S.tolist() == joined.part_S[kept_S].tolist()
    assert some.heads == list(compress(joined.heads, kept_S))


def test_each_sequence_knows_the_agent_that_it_is_of() -> None:
    silent = Transcript("leader.1", "leader", "script", spans=[Span(SpanKind.PROMPT, "", [1, 2])])
    parts = [(EPISODE, silent), *((EPISODE, one) for one in EPISODE.agents)]
    joined = join(parts)
    assert [parts[part][1].agent for part in joined.part_S.tolist()] == [head.key.agent for head in joined.heads]
    assert [head.key.agent for head in joined.heads] == ["searcher.1", "answerer.1"]


@pytest.mark.parametrize(
    ("changes", "error", "line"),
    [
        ({"ids": None}, UserError, "is not token-exact"),
        ({"logprobs": None}, UserError, "call 0 was recorded without log-probabilities"),
        ({"logprobs": [-1.0]}, ValueError, "call 0 has 1 log-probabilities for"),
        ({"candidate": 1}, ValueError, "a call that is not the last has several candidates"),
    ],
)
def test_among_many_the_agent_in_question_is_named(changes: dict, error: type[Exception], line: str) -> None:  # type: ignore[type-arg]
    episodes: list[Episode] = [hierarchical(), chained(3, [RIGHT]), hierarchical(1)]
    span = next(span for span in episodes[1].transcript("searcher.1").spans if span.kind is SpanKind.ACTION)
    for name, value in changes.items():
        setattr(span, name, value)
    with pytest.raises(error, match=rf"^nq/q1, sample 3, searcher\.1: {line}"):
        sequences_of([(episode, transcript) for episode in episodes for transcript in episode.agents])


def test_a_sampled_span_without_a_call_is_refused() -> None:
    transcript = chained(answers=[RIGHT]).transcript("searcher.1")
    transcript.spans[-1].call = None
    with pytest.raises(ValueError, match="names no call"):
        join([(EPISODE, transcript)])
