from __future__ import annotations

import pytest
import torch

from searchparty.learning import logprobs as module
from searchparty.learning.logprobs import token_logprobs

TOKENS, VOCABULARY, HIDDEN = 23, 41, 7


def inputs(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(TOKENS, HIDDEN, generator=generator, dtype=dtype).requires_grad_()
    weight = torch.randn(VOCABULARY, HIDDEN, generator=generator, dtype=dtype).requires_grad_()
    ids = torch.randint(0, VOCABULARY, (TOKENS,), generator=generator)
    temperature = 0.5 + torch.rand(TOKENS, generator=generator)
    return hidden, weight, ids, temperature


def plain(hidden, weight, ids, temperature):
    scores = ((hidden @ weight.T).float() / temperature[:, None]).log_softmax(-1)
    return scores.gather(1, ids[:, None])[:, 0], -(scores.exp() * scores).sum(-1)


@pytest.mark.parametrize("logits_at_once", [1, 100, 10_000])
@pytest.mark.parametrize("part", ["logprob", "entropy", "both"])
def test_chunks_give_the_values_and_gradients_of_the_plain_computation(monkeypatch, logits_at_once, part):
    monkeypatch.setattr(module, "CPU_LOGITS", logits_at_once)
    generator = torch.Generator().manual_seed(1)
    factors = torch.randn(2, TOKENS, generator=generator)
    factors[0] *= part != "entropy"
    results = []
    for compute in (token_logprobs, plain):
        hidden, weight, ids, temperature = inputs()
        logprobs, entropies = compute(hidden, weight, ids, temperature)
        total = (factors[0] * logprobs).sum()
        if part != "logprob":
            total = total + (factors[1] * entropies).sum()
        total.backward()
        results.append((logprobs.detach(), entropies.detach(), hidden.grad, weight.grad))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)


def test_without_a_temperature_it_is_one():
    hidden, weight, ids, _ = inputs()
    for found, expected in zip(
        token_logprobs(hidden, weight, ids), plain(hidden, weight, ids, torch.ones(TOKENS)), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)


def test_scores_far_apart_neither_overflow_nor_vanish():
    hidden, weight, ids, _ = inputs()
    for found, expected in zip(
        token_logprobs(hidden * 1e3, weight, ids), plain(hidden * 1e3, weight, ids, torch.ones(TOKENS)), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-2)


def test_a_frozen_output_layer_gets_no_gradient():
    hidden, weight, ids, temperature = inputs()
    weight.requires_grad_(False)
    token_logprobs(hidden, weight, ids, temperature)[0].sum().backward()
    assert weight.grad is None
    assert hidden.grad is not None


def test_no_more_logits_than_one_chunk_are_ever_held(monkeypatch):
    monkeypatch.setattr(module, "CPU_LOGITS", 5 * VOCABULARY)
    largest = 0
    whole = module._statistics

    def watched(logits, *rest):
        nonlocal largest
        largest = max(largest, logits.numel())
        return whole(logits, *rest)

    monkeypatch.setattr(module, "_statistics", watched)
    token_logprobs(*inputs())
    assert largest == 5 * VOCABULARY
