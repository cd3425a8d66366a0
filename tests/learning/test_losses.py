from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from searchparty.learning.losses import (
    CrossEntropy,
    PPOClip,
    TokenTargets,
    clipped_value_loss,
    kl_k1,
    kl_k2,
    kl_k3,
    truncated_importance,
)
from searchparty.learning.settings import Schedule

SMALL = st.floats(-4, 4, allow_nan=False)


def ppo(ratio: float, advantage: float, objective: PPOClip | None = None, importance: float = 1.0, entropy: float = 0.0):
    logprob = torch.tensor([math.log(ratio)], requires_grad=True)
    targets = TokenTargets(torch.zeros(1), torch.tensor([advantage]), torch.tensor([importance]))
    costs = (objective or PPOClip())(logprob, torch.tensor([entropy]), targets)
    (gradient,) = torch.autograd.grad(costs.loss_N.sum(), logprob)
    return float(costs.loss_N.detach()), float(gradient), bool(costs.clipped_N)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "clipped"),
    [
        (1.0, 2.0, -2.0, -2.0, False),
        (1.1, 2.0, -2.2, -2.2, False),
        (1.5, 2.0, -2.4, 0.0, True),
        (0.5, 2.0, -1.0, -1.0, False),
        (0.5, -2.0, 1.6, 0.0, True),
        (1.5, -2.0, 3.0, 3.0, False),
    ],
)
def test_the_clip_binds_only_where_the_token_has_already_moved_the_wanted_way(ratio, advantage, loss, gradient, clipped):
    assert ppo(ratio, advantage) == (pytest.approx(loss), pytest.approx(gradient), clipped)


def test_both_bounds_of_the_clip_can_be_set():
    wide = PPOClip(clip_low=0.1, clip_high=0.6)
    assert ppo(1.5, 1.0, wide)[2] is False
    assert ppo(0.85, -1.0, wide)[0] == pytest.approx(0.9)


def test_entropy_lowers_the_loss_and_importance_scales_the_policy_part_alone():
    loss, _, _ = ppo(1.0, 2.0, PPOClip(entropy_coefficient=0.5), importance=3.0, entropy=1.0)
    assert loss == pytest.approx(3.0 * -2.0 - 0.5)


def test_imitation_costs_the_negative_log_probability_whatever_the_advantage():
    logprobs = torch.tensor([-1.0, -3.0])
    targets = TokenTargets(torch.zeros(2), torch.tensor([5.0, -5.0]), torch.ones(2))
    assert CrossEntropy()(logprobs, torch.zeros(2), targets).loss_N.tolist() == [1.0, 3.0]


def test_importance_is_cut_at_the_cap_and_carries_no_gradient():
    learner = torch.tensor([0.0, math.log(9.0)], requires_grad=True)
    importance = truncated_importance(learner, torch.tensor([math.log(2.0), 0.0]), cap=2.0)
    assert importance.tolist() == pytest.approx([0.5, 2.0])
    assert not importance.requires_grad


@given(SMALL, SMALL)
def test_estimators_of_kl_vanish_together_and_two_are_never_negative(p, q):
    p, q = torch.tensor([p], dtype=torch.float64), torch.tensor([q], dtype=torch.float64)
    assert float(kl_k1(p, p)) == float(kl_k2(p, p)) == float(kl_k3(p, p)) == 0
    assert float(kl_k2(p, q)) >= 0
    assert float(kl_k3(p, q)) >= -1e-12


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6), st.lists(st.floats(0.01, 1), min_size=6, max_size=6))
def test_k1_and_k3_have_the_divergence_as_their_mean(first, second):
    p = torch.tensor(first, dtype=torch.float64)
    q = torch.tensor(second[: len(first)], dtype=torch.float64)
    p, q = (p / p.sum()).log(), (q / q.sum()).log()
    divergence = float((p.exp() * (p - q)).sum())
    assert float((p.exp() * kl_k1(p, q)).sum()) == pytest.approx(divergence, abs=1e-9)
    assert float((p.exp() * kl_k3(p, q)).sum()) == pytest.approx(divergence, abs=1e-9)


def test_a_value_that_left_its_range_in_the_right_direction_is_not_pushed_on():
    value = torch.tensor([1.0], requires_grad=True)
    loss = clipped_value_loss(value, torch.zeros(1), torch.tensor([2.0]), clip=0.2)
    (gradient,) = torch.autograd.grad(loss.sum(), value)
    assert float(loss.detach()) == pytest.approx(1.8**2 / 2)
    assert float(gradient) == 0
    assert float(clipped_value_loss(torch.tensor([-1.0]), torch.zeros(1), torch.tensor([2.0]), clip=0.2)) == pytest.approx(4.5)


def test_a_schedule_warms_up_and_falls_to_its_end():
    linear = Schedule("linear", warmup_steps=2, total_steps=6, final_share=0.2)
    assert [linear.share(step) for step in range(8)] == pytest.approx([0.5, 1, 1, 0.8, 0.6, 0.4, 0.2, 0.2])
    cosine = Schedule("cosine", total_steps=4)
    assert [cosine.share(step) for step in (0, 2, 4)] == pytest.approx([1, 0.5, 0])
    assert [Schedule(warmup_steps=4).share(step) for step in (0, 3, 99)] == [0.25, 1, 1]


def test_a_falling_schedule_without_an_end_is_refused():
    with pytest.raises(ValueError, match="total_steps"):
        Schedule("cosine")
