from __future__ import annotations

import numpy as np
import pytest
import torch
from learning_factories import settings, signals, tiny_model, weights_of

from searchparty.learning.critic import Critic
from searchparty.learning.learner import Learner


def learner(separate: bool, **changes) -> Learner:
    policy = tiny_model()
    critic = Critic.separate(tiny_model(seed=1)) if separate else Critic.on_trunk(policy)
    return Learner(policy, settings(critic_learning_rate=1e-2, value_clip=100.0, **changes), critic=critic)


@pytest.mark.parametrize("separate", [False, True])
def test_the_critic_learns_the_returns_of_action_tokens(separate):
    made = signals(returns=True)
    trained = learner(separate)
    losses = [sum(role.value_loss for role in trained.update(made).roles.values()) for _ in range(30)]
    assert losses[-1] < losses[0] / 3
    values = trained.values(made)
    for one, value in zip(made, values, strict=True):
        assert not value[~one.trainable_T].any()
    found = np.concatenate([value[one.trainable_T] for one, value in zip(made, values, strict=True)])
    wanted = np.concatenate([one.returns_T[one.trainable_T] for one in made])
    assert np.corrcoef(found, wanted)[0, 1] > 0.7


def test_a_value_is_seen_before_its_token_is_sampled():
    made = signals(returns=True)
    trained = learner(separate=True)
    trained.update(made)
    before = trained.values(made)
    for one in made:
        one.ids_T[-1] = (one.ids_T[-1] + 1) % 97
    after = trained.values(made)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_separate_critic_leaves_the_policy_alone():
    trained = learner(separate=True)
    made = signals(returns=True)
    for one in made:
        one.advantages_T[:] = 0
    before = weights_of(trained.model)
    trained.update(made)
    after = weights_of(trained.model)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_signals_without_returns_teach_the_critic_nothing():
    trained = learner(separate=False)
    metrics = trained.update(signals())
    assert all(role.value_loss is None for role in metrics.roles.values())
    assert not any(value.any() for value in trained.values(signals()))


def test_values_without_a_critic_are_refused():
    with pytest.raises(ValueError, match="no critic"):
        Learner(tiny_model(), settings()).values(signals())


def test_metrics_compare_what_the_critic_said_with_what_came():
    made = signals(returns=True)
    for one in made:
        one.values_T = np.where(one.trainable_T, 0.5 * one.returns_T + 1, 0).astype(np.float32)
    metrics = learner(separate=False, critic_warmup=1).update(made)
    for role, found in metrics.roles.items():
        kept = [one.trainable_T for one in made if one.role == role]
        returns = np.concatenate([one.returns_T[at] for one, at in zip([m for m in made if m.role == role], kept, strict=True)])
        values = 0.5 * returns + 1
        assert found.returns == pytest.approx(returns.mean(), abs=1e-5)
        assert found.value == pytest.approx(values.mean(), abs=1e-5)
        assert found.explained_variance == pytest.approx(1 - np.var(returns - values) / np.var(returns), abs=1e-5)


def test_a_critic_that_cannot_be_judged_because_all_returns_are_equal_has_no_explained_variance():
    made = signals(returns=True)
    for one in made:
        one.returns_T[:] = np.where(one.trainable_T, 0.75, 0)
    assert all(role.explained_variance is None for role in learner(separate=False).update(made).roles.values())


@pytest.mark.parametrize("separate", [False, True])
def test_in_its_warm_up_the_critic_alone_learns_and_then_the_policy_too(separate):
    trained = learner(separate, critic_warmup=1)
    made = signals(returns=True)
    start, values = weights_of(trained.model), trained.values(made)
    trained.update(made)
    warmed = weights_of(trained.model)
    assert all(torch.equal(start[name], warmed[name]) for name in start)
    assert any(not np.array_equal(a, b) for a, b in zip(values, trained.values(made), strict=True))
    trained.update(made)
    assert any(not torch.equal(warmed[name], after) for name, after in weights_of(trained.model).items())


def test_the_clip_holds_a_value_near_the_one_that_the_signal_carries():
    made = signals(returns=True)
    for one in made:
        one.returns_T[:] = np.where(one.trainable_T, 10.0, 0)
        one.values_T = np.where(one.trainable_T, -5.0, 0).astype(np.float32)
    policy = tiny_model()
    trained = Learner(policy, settings(critic_learning_rate=1e-2, value_clip=0.2), critic=Critic.on_trunk(policy))
    metrics = trained.update(made)
    # Values start at 0: V_clip is -4.8, so the larger loss is (-4.8 - 10)^2 / 2 and has no gradient.
    assert all(role.value_loss == pytest.approx(14.8**2 / 2) for role in metrics.roles.values())
    assert all(role.value_clip_fraction == 1 for role in metrics.roles.values())
    assert not any(value.any() for value in trained.values(made))
