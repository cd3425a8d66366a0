from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learning_factories import KINDS, plain_logprobs, settings, signal, signals, tiny_model

from searchparty.errors import UserError
from searchparty.learning.batches import fill_rows, pack, split_minibatches
from searchparty.learning.learner import Learner
from searchparty.learning.packed_model import PackedModel

CPU = torch.device("cpu")


@given(st.lists(st.integers(1, 60), max_size=60), st.integers(1, 50))
def test_rows_hold_every_sequence_once_and_exceed_the_budget_only_for_one_that_is_too_long(lengths, budget):
    rows = fill_rows(lengths, budget)
    assert sorted(index for row in rows for index in row) == list(range(len(lengths)))
    assert all(len(row) == 1 or sum(lengths[index] for index in row) <= budget for row in rows)


def test_rows_are_nearly_full_when_sequences_are_short():
    lengths = np.random.default_rng(0).integers(50, 400, 500).tolist()
    rows = fill_rows(lengths, 4096)
    assert len(rows) == -(-sum(lengths) // 4096)


@given(st.integers(1, 200), st.integers(1, 9), st.integers(0, 5))
def test_every_sequence_is_in_one_minibatch_and_their_sizes_differ_by_at_most_one(count, parts, step):
    split = split_minibatches(count, parts, seed=3, step=step)
    assert sorted(np.concatenate(split).tolist()) == list(range(count))
    assert len(split) == min(parts, count)
    assert max(map(len, split)) - min(map(len, split)) <= 1


def test_the_split_depends_on_seed_and_step_alone():
    first, again = (split_minibatches(50, 5, seed=1, step=2) for _ in range(2))
    other = split_minibatches(50, 5, seed=1, step=3)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_sequence_whose_first_token_is_to_be_trained_is_refused_by_name():
    bad = signal()
    bad.trainable_T[0] = True
    with pytest.raises(ValueError, match="nothing precedes it"):
        pack([bad], lambda item: item.trainable_T, 100, CPU)


def test_what_is_gathered_is_scattered_back_to_its_place():
    made = signals()
    for row in pack(made, lambda item: item.trainable_T, 40, CPU):
        for sequence, array in zip(row.sequences, row.scatter(row.gather(lambda item: item.advantages_T)), strict=True):
            assert np.array_equal(array, sequence.advantages_T)


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_in_a_packed_row_are_those_of_each_sequence_alone(kind):
    model = tiny_model(kind)
    made = signals(8)
    found = Learner(model, settings(tokens_per_pass=10_000)).logprobs(made)
    for one, own in zip(made, found, strict=True):
        with torch.no_grad():
            expected = np.concatenate([[0], plain_logprobs(model, one.ids_T).numpy()])
        assert np.abs(np.where(one.trainable_T, expected, 0) - own).max() < 1e-5


def test_a_sliding_window_holds_within_each_sequence():
    model = tiny_model("mistral", sliding_window=5)
    made = [signal(30, number=n) for n in range(3)]
    for one, own in zip(made, Learner(model, settings(tokens_per_pass=1000)).logprobs(made), strict=True):
        with torch.no_grad():
            expected = np.concatenate([[0], plain_logprobs(model, one.ids_T).numpy()])
        assert np.abs(np.where(one.trainable_T, expected, 0) - own).max() < 1e-5


def test_no_token_of_one_sequence_changes_another_in_the_same_row():
    model = tiny_model()
    made = signals(4)
    learner = Learner(model, settings(tokens_per_pass=1000))
    before = learner.logprobs(made)
    made[0].ids_T = (made[0].ids_T + 1) % 97
    after = learner.logprobs(made)
    assert not np.array_equal(before[0], after[0])
    assert all(np.array_equal(a, b) for a, b in zip(before[1:], after[1:], strict=True))


def test_a_sequence_that_is_given_twice_is_measured_twice():
    one, other = signals(2)
    first, _, again = Learner(tiny_model(), settings()).logprobs([one, other, one])
    assert first.any()
    assert np.array_equal(first, again)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_checkpointing_changes_no_gradient(share):
    gradients = []
    for checkpointed in (0.0, share):
        model = tiny_model()
        packed = PackedModel(model, checkpointed_share=checkpointed)
        (row,) = pack(signals(3), lambda item: item.trainable_T, 1000, CPU)
        with packed.active():
            packed.hidden(row).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.base_model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_after_an_update_the_model_is_as_a_sampler_left_it():
    model = tiny_model()
    implementation, layer_names = model.config._attn_implementation, set(vars(model.model.layers[0]))
    Learner(model, settings(checkpointed_share=1.0)).update(signals())
    assert model.config._attn_implementation == implementation
    assert set(vars(model.model.layers[0])) == layer_names
    assert not model.training


def test_a_model_that_computes_its_scores_in_another_way_is_refused():
    torch.manual_seed(0)
    import transformers

    config = transformers.Gemma2Config(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8,
    )  # fmt: skip
    with pytest.raises(UserError, match="Gemma2ForCausalLM"):
        Learner(transformers.Gemma2ForCausalLM(config).eval(), settings()).logprobs(signals())
