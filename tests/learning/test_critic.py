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
