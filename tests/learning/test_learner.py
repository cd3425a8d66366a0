from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from learning_factories import plain_logprobs, settings, signals, tiny_model, weights_of

from searchparty.errors import UserError
from searchparty.learning.faults import NonFinite, NothingToLearn, memory_advice
from searchparty.learning.learner import Learner
from searchparty.learning.losses import PPOClip
from searchparty.learning.weights import MasterWeights


def gradients_of(learner, examples_parts=1):
    """The gradients that the next optimizer step would see, caught in its place."""
    caught = {}

    def catch(*_args):
        caught.update({name: master.grad.clone() for name, master in learner.trained["policy"].masters.items()})

    learner.optimizer.register_step_pre_hook(catch)
    return caught


def test_the_gradient_of_an_update_is_that_of_the_objective_written_out():
    made = signals(returns=False)
    model = tiny_model()
    learner = Learner(
        model, settings(minibatches=1, gradient_clip=None, old_logprobs="sampler"), PPOClip(entropy_coefficient=0.1)
    )
    caught = gradients_of(learner)
    reference = copy.deepcopy(model)
    learner.update(made)
    total = torch.zeros(())
    for one in made:
        ids = torch.from_numpy(one.ids_T).long()
        scores = reference(input_ids=ids[None]).logits[0, :-1].log_softmax(-1)
        logprobs, entropies = scores.gather(1, ids[1:, None])[:, 0], -(scores.exp() * scores).sum(-1)
        old, advantages, weights = (
            torch.from_numpy(array[1:]) for array in (one.old_logprobs_T, one.advantages_T, one.weights_T)
        )
        ratio = (logprobs - old).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        total = total - (weights * (gain + 0.1 * entropies)).sum()
    total.backward()
    for name, parameter in reference.named_parameters():
        torch.testing.assert_close(caught[name], parameter.grad, rtol=1e-3, atol=1e-5)


def test_many_small_passes_give_the_gradient_of_one_large_one():
    results = []
    for budget in (1, 40, 100_000):
        learner = Learner(tiny_model(), settings(minibatches=1, gradient_clip=None, tokens_per_pass=budget))
        caught = gradients_of(learner)
        metrics = learner.update(signals())
        results.append((metrics.passes, caught))
    assert [passes for passes, _ in results] == [6, 3, 1]
    for name in results[0][1]:
        for _, caught in results[:2]:
            torch.testing.assert_close(caught[name], results[2][1][name], rtol=1e-4, atol=2e-6)


def test_minibatch_gradients_average_to_the_gradient_of_the_update():
    still = settings(learning_rate=0.0, gradient_clip=None)
    whole = Learner(tiny_model(), replace(still, minibatches=1))
    expected = gradients_of(whole)
    whole.update(signals())
    parts = Learner(tiny_model(), replace(still, minibatches=3))
    seen = []
    parts.optimizer.register_step_pre_hook(
        lambda *_: seen.append({name: master.grad.clone() for name, master in parts.trained["policy"].masters.items()})
    )
    parts.update(signals())
    assert len(seen) == 3
    for name, gradient in expected.items():
        torch.testing.assert_close(sum(part[name] for part in seen) / 3, gradient, rtol=1e-4, atol=2e-6)


def test_an_update_makes_tokens_with_positive_advantage_likelier():
    made = signals()
    for one in made:
        one.advantages_T = np.where(one.trainable_T, 1, 0).astype(np.float32)
    learner = Learner(tiny_model(), settings())
    before = learner.logprobs(made)
    learner.update(made)
    after = learner.logprobs(made)
    assert sum(a.sum() - b.sum() for a, b in zip(after, before, strict=True)) > 1


def test_equal_updates_give_equal_weights_to_the_last_bit():
    results = []
    for _ in range(2):
        model = tiny_model()
        learner = Learner(model, settings())
        results.append(([learner.update(signals()) for _ in range(2)], weights_of(model)))
    assert results[0][0] == results[1][0]
    assert all(torch.equal(results[0][1][name], results[1][1][name]) for name in results[0][1])


def test_only_tokens_with_weight_are_learned_from():
    made = signals()
    changed = copy.deepcopy(made)
    for one in made + changed:
        one.weights_T[-1] = 0
    for one in changed:
        one.advantages_T[-1] = 99
        one.old_logprobs_T[-1] = -9
    models = [tiny_model(), tiny_model()]
    for model, batch in zip(models, (made, changed), strict=True):
        Learner(model, settings()).update(batch)
    first, second = map(weights_of, models)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_first_minibatch_has_ratio_one_when_old_log_probabilities_are_recomputed():
    (role,) = Learner(tiny_model(), settings(minibatches=1)).update(signals()[:1]).roles.values()
    assert role.ratio == pytest.approx(1, abs=1e-5)
    assert role.approx_kl == pytest.approx(0, abs=1e-6)
    assert role.clip_fraction == 0


@pytest.mark.parametrize("old", ["sampler", "recomputed"])
def test_the_difference_between_sampler_and_learner_is_always_measured(old):
    model = tiny_model()
    made = signals()
    exact = Learner(model, settings()).logprobs(made)
    for one, logprobs in zip(made, exact, strict=True):
        one.old_logprobs_T = np.where(one.trainable_T, logprobs - 0.25, 0).astype(np.float32)
    metrics = Learner(model, settings(old_logprobs=old, learning_rate=0.0)).update(made)
    for role in metrics.roles.values():
        assert 0 < role.mismatch_tokens <= role.tokens
        assert role.mismatch == pytest.approx(0.25, abs=1e-4)
        assert role.mismatch_max == pytest.approx(0.25, abs=1e-4)
        assert role.mismatch_kl == pytest.approx(np.expm1(0.25) - 0.25, abs=1e-4)
        assert (role.mismatch_tokens == role.tokens) == (old == "recomputed")


def test_log_probabilities_are_those_of_the_temperature_that_a_role_samples_with():
    model = tiny_model()
    made = signals(2)
    found = Learner(model, settings(temperatures={"leader": 0.7, "searcher": 0.0})).logprobs(made)
    for one, own, temperature in zip(made, found, (0.7, 1.0), strict=True):
        with torch.no_grad():
            expected = np.concatenate([[0], plain_logprobs(model, one.ids_T, temperature).numpy()])
        assert np.abs(np.where(one.trainable_T, expected, 0) - own).max() < 1e-5


def test_a_gradient_is_clipped_to_the_norm_and_reported_as_it_was():
    learner = Learner(tiny_model(), settings(minibatches=1, gradient_clip=0.01))
    caught = gradients_of(learner)
    metrics = learner.update(signals())
    assert metrics.gradient_norm > 0.01
    assert torch.stack([gradient.norm() for gradient in caught.values()]).norm() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda one: one.advantages_T.__setitem__(-1, np.nan), "loss"),
        (lambda one: one.weights_T.__setitem__(-1, np.nan), "loss"),
        (lambda one: one.old_logprobs_T.__setitem__(-1, -np.inf), "sampler's log-probability"),
    ],
)
def test_a_number_that_is_not_finite_stops_the_minibatch_names_the_sequence_and_changes_nothing(spoil, what):
    made = signals()
    spoil(made[3])
    model = tiny_model()
    learner = Learner(model, settings(minibatches=1))
    before = weights_of(model)
    with pytest.raises(NonFinite, match=r"nq/3 sample 0, leader\.1|nq/3 sample 0, searcher\.1") as caught:
        learner.update(made)
    assert caught.value.what == what
    assert caught.value.keys == [made[3].key]
    assert all(torch.equal(before[name], tensor) for name, tensor in weights_of(model).items())
    assert not learner.optimizer.state
    assert (learner.updates, learner.optimizer_steps) == (0, 0)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_weights_that_are_not_numbers_are_noticed_in_the_log_probabilities():
    model = tiny_model()
    learner = Learner(model, settings(old_logprobs="sampler"))
    learner.update(signals())
    model.model.norm.weight.data.fill_(torch.nan)
    with pytest.raises(NonFinite, match="log-probability"):
        learner.update(signals())


def test_an_update_without_any_weight_is_refused():
    made = signals()
    for one in made:
        one.weights_T[:] = 0
    with pytest.raises(NothingToLearn):
        Learner(tiny_model(), settings()).update(made)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory: 9 GB")])
def test_too_little_memory_is_told_with_the_setting_to_change(error):
    with (
        pytest.raises(UserError, match=r"tokens_per_pass \(now 4096\), or raise checkpointed_share \(now 0\.5\)"),
        memory_advice(4096, 0.5),
    ):
        raise error


def test_another_error_passes_through_unchanged():
    with pytest.raises(RuntimeError, match="shapes"), memory_advice(4096, 0.5):
        raise RuntimeError("shapes do not match")


def test_small_steps_and_small_gradients_are_not_lost_in_half_precision():
    model = tiny_model().to(torch.bfloat16)
    masters = MasterWeights(model.named_parameters())
    name, parameter = next(iter(model.named_parameters()))
    master = masters.masters[name]
    start = master.detach().clone()
    (parameter.sum() * 256).backward()
    parameter.sum().backward()
    assert master.grad is not None
    assert master.grad.unique().tolist() == [257.0]
    with torch.no_grad():
        for _ in range(1000):
            master.add_(1e-6)
    masters.publish()
    torch.testing.assert_close(master.detach(), start + 1e-3, rtol=0, atol=5e-5)
    assert torch.equal(parameter.detach(), master.detach().to(torch.bfloat16))


def test_a_model_in_half_precision_learns():
    made = signals()
    for one in made:
        one.advantages_T = np.where(one.trainable_T, 1, 0).astype(np.float32)
    learner = Learner(tiny_model().to(torch.bfloat16), settings())
    before = learner.logprobs(made)
    learner.update(made)
    assert sum(a.sum() - b.sum() for a, b in zip(learner.logprobs(made), before, strict=True)) > 1
