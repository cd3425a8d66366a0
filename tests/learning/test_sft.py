from __future__ import annotations

import numpy as np
import pytest
from learning_factories import settings, tiny_model

from playing import Lines, good_lines, play_lines
from searchparty.episodes.types import SpanKind
from searchparty.learning.faults import NothingToLearn
from searchparty.learning.learner import Learner
from searchparty.learning.losses import CrossEntropy
from searchparty.learning.sft import cross_entropy, fit, imitation_signals, weigh
from searchparty.teams.chained import Chained

CANDIDATES = ["<answer>Paris</answer>", "<answer>Rome</answer>", "<answer>Paris.</answer>"]


def episode(lines: Lines | None = None, candidates: int = 1):
    return play_lines(Chained(candidates=candidates), lines or good_lines())


def action_ids(played):
    return sorted(tuple(span.ids) for agent in played.agents for span in agent.spans if span.kind is SpanKind.ACTION)


def trained_runs(signals):
    """The trained stretches of all signals."""
    runs = []
    for one in signals:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], one.trainable_T.astype(int), [0]])))
        runs += [tuple(one.ids_T[begin:end].tolist()) for begin, end in edges.reshape(-1, 2)]
    return sorted(runs)


def test_every_action_token_is_imitated_exactly_once_and_nothing_else():
    played = episode(good_lines(answerer=[CANDIDATES]), candidates=3)
    assert trained_runs(imitation_signals([played])) == action_ids(played)


def test_what_the_predicate_drops_stays_as_context():
    played = episode(good_lines(answerer=[CANDIDATES]), candidates=3)
    kept = imitation_signals([played], lambda episode, transcript, span: "Paris</answer>" in span.text)
    (one,) = kept
    assert one.key.candidate == 0
    assert trained_runs(kept) == [ids for ids in action_ids(played) if ids in trained_runs(kept)]


def test_an_earlier_action_is_imitated_even_if_the_last_is_not():
    (one,) = imitation_signals([episode()], lambda episode, transcript, span: "<search>" in span.text)
    assert one.role == "searcher"
    assert 0 < one.trainable_T.sum() < len(one.ids_T)


@pytest.mark.parametrize("reduction", ["token-mean", "sequence-mean", "episode-mean"])
def test_weights_sum_to_one(reduction):
    signals = imitation_signals([episode()])
    weigh(signals, reduction)
    assert sum(one.weights_T.sum() for one in signals) == pytest.approx(1)
    if reduction == "sequence-mean":
        assert [one.weights_T.sum() for one in signals] == pytest.approx([1 / len(signals)] * len(signals))


def test_training_on_episodes_lowers_the_cross_entropy_on_others():
    vocabulary = 300
    signals = imitation_signals([episode()])
    other = imitation_signals([episode(good_lines(answerer=["<answer>Rome</answer>"]))])
    model = tiny_model(vocab_size=vocabulary, max_position_embeddings=4096)
    learner = Learner(model, settings(minibatches=1, learning_rate=1e-2, tokens_per_pass=4096), CrossEntropy())
    start = cross_entropy(learner, other)
    reports = fit(learner, signals, other, epochs=6, sequences_per_step=1)
    assert [report.epoch for report in reports] == [1, 2, 3, 4, 5, 6]
    assert reports[-1].dev_loss < start / 2
    assert reports[-1].train_loss < reports[0].train_loss
    assert reports[0].optimizer_steps == len(signals)


def test_nothing_to_imitate_is_said_so():
    with pytest.raises(NothingToLearn, match="no sequence to imitate"):
        fit(Learner(tiny_model(), settings(minibatches=1), CrossEntropy()), [], epochs=1, sequences_per_step=4)
