"""From episodes to token sequences."""

from __future__ import annotations

import numpy as np
import pytest
from credit_factories import RIGHT, WRONG, chained, hierarchical

from playing import good_lines, play_lines
from searchparty.credit.sequences import agent_sequences, sequences_of, token_sequences
from searchparty.episodes.types import Call, Episode, Span, SpanKind
from searchparty.errors import UserError
from searchparty.teams.chained import Chained


def test_there_is_one_sequence_per_agent_and_candidate_in_their_order() -> None:
    keys = [(one.key.agent, one.key.candidate) for one in token_sequences(chained())]
    assert keys == [("searcher.1", 0), ("answerer.1", 0), ("answerer.1", 1)]


def test_a_sequence_is_the_history_exactly_as_it_was_recorded() -> None:
    episode = chained()
    spans = episode.transcript("searcher.1").spans
    found = token_sequences(episode)[0]
    assert found.ids_T.tolist() == [token for span in spans for token in span.ids or ()]
    assert found.trainable_T.tolist() == [span.kind is SpanKind.ACTION for span in spans for _ in span.ids or ()]
    recorded = [value for span in spans for value in span.logprobs or [0.0] * len(span.ids or ())]
    assert found.old_logprobs_T.tolist() == recorded


def test_each_candidate_follows_the_same_history_and_none_of_the_others() -> None:
    episode = chained()
    *history, first, second = episode.transcript("answerer.1").spans
    shared = [token for span in history for token in span.ids or ()]
    sequences = agent_sequences(episode, episode.transcript("answerer.1"))
    assert [one.ids_T.tolist() for one in sequences] == [[*shared, *(first.ids or ())], [*shared, *(second.ids or ())]]
    assert [one.trainable_T.sum() for one in sequences] == [len(first.ids or ()), len(second.ids or ())]


def test_earlier_turns_shared_by_several_candidates_are_trained_once() -> None:
    episode = _searcher_with_two_last_turns()
    sequences = agent_sequences(episode, episode.transcript("searcher.1"))
    actions = [span for span in episode.transcript("searcher.1").spans if span.kind is SpanKind.ACTION]
    sampled = sum(len(span.ids or ()) for span in actions)
    assert sum(one.trainable_T.sum() for one in sequences) == sampled
    assert sequences[1].trainable_T.sum() == len(actions[-1].ids or ())
    assert not np.any(sequences[1].old_logprobs_T[~sequences[1].trainable_T])


def test_agents_cut_from_one_batch_have_what_each_has_alone_and_share_no_token() -> None:
    parts = [(one, transcript) for one in (hierarchical(), _searcher_with_two_last_turns()) for transcript in one.agents]
    together = sequences_of(parts)
    alone = [sequence for part in parts for sequence in agent_sequences(*part)]
    assert [(one.key, one.role, one.call) for one in together] == [(one.key, one.role, one.call) for one in alone]
    for name in ("ids_T", "trainable_T", "old_logprobs_T"):
        for one, other in zip(together, alone, strict=True):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()
            getattr(one, name)[:] = 0
    assert sequences_of([]) == []


def test_what_was_observed_after_the_last_turn_is_left_out() -> None:
    episode = chained(searcher=["<search>again</search>"])
    transcript = episode.transcript("searcher.1")
    before = agent_sequences(episode, transcript)[0]
    transcript.spans.append(Span(SpanKind.OBSERVATION, "too late", [1, 2, 3]))
    transcript.calls.append(Call(9, 0, 1, 1.0, 1.0, 0, 5, 0.0))
    assert agent_sequences(episode, transcript)[0].ids_T.tolist() == before.ids_T.tolist()
    assert before.trainable_T[-1]


def test_an_agent_that_never_acted_has_no_sequence() -> None:
    episode = chained()
    transcript = episode.transcript("answerer.1")
    transcript.spans = [span for span in transcript.spans if span.kind is not SpanKind.ACTION]
    assert agent_sequences(episode, transcript) == []


def test_an_episode_that_is_not_token_exact_is_refused_by_name() -> None:
    episode = play_lines(Chained(), good_lines(), exchanges_ids=False)
    with pytest.raises(UserError, match=r"nq/q1, sample 0, searcher\.1: is not token-exact"):
        token_sequences(episode)


def test_a_turn_without_log_probabilities_is_refused_unless_they_are_computed_anew() -> None:
    episode = chained()
    episode.transcript("searcher.1").last_turn()[0].logprobs = None
    with pytest.raises(UserError, match=r"searcher\.1: call 1 was recorded without log-probabilities"):
        token_sequences(episode)
    anew = token_sequences(episode, logprobs_required=False)
    assert not any(one.old_logprobs_T.any() for one in anew)
    assert anew[0].trainable_T.any()


def test_records_that_contradict_themselves_are_refused() -> None:
    short = chained()
    short.transcript("searcher.1").last_turn()[0].logprobs = [0.0]
    with pytest.raises(ValueError, match="1 log-probabilities for"):
        token_sequences(short)
    gap = hierarchical(answers=[RIGHT, WRONG, RIGHT])
    gap.transcript("answerer.1").spans[-1].candidate = 1
    with pytest.raises(ValueError, match="do not stand side by side"):
        token_sequences(gap)
    early = _searcher_with_two_last_turns()
    early.transcript("searcher.1").spans.append(Span(SpanKind.ACTION, "x", [5], [-1.0], 7, 0))
    with pytest.raises(ValueError, match="not the last has several candidates"):
        token_sequences(early)


def _searcher_with_two_last_turns() -> Episode:
    episode = chained()
    last = episode.transcript("searcher.1").last_turn()[0]
    episode.transcript("searcher.1").spans.append(Span(SpanKind.ACTION, "other", [7, 8], [-0.5, -0.5], last.call, 1, "end"))
    return episode
