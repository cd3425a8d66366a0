"""Tiny random models and random signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import transformers

from searchparty.credit.types import SequenceKey, Signal
from searchparty.learning.settings import LearnerSettings

VOCABULARY = 97
KINDS = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
}


def tiny_model(kind: str = "llama", *, seed: int = 0, **changes: Any) -> Any:
    """A two-layer causal model with random float32 weights."""
    torch.manual_seed(seed)
    config_class, model_class = KINDS[kind]
    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128, "initializer_range": 0.2,
        "tie_word_embeddings": True,
    }  # fmt: skip
    return model_class(config_class(**{**settings, **changes})).eval()


def signal(length: int = 12, *, number: int = 0, role: str = "searcher", seed: int = 0, returns: bool = False) -> Signal:
    """Random ids, two trained stretches, random advantages; the weights of a sequence sum to 1."""
    random = np.random.default_rng([seed, number, length])
    trainable = np.zeros(length, np.bool_)
    trainable[length // 4 : length // 2] = True
    trainable[-max(2, length // 4) :] = True
    trainable[0] = False

    def at_trainable(values: Any) -> Any:
        return np.where(trainable, values, 0).astype(np.float32)

    return Signal(
        key=SequenceKey(f"nq/{number}", 0, f"{role}.1", 0),
        role=role,
        ids_T=random.integers(0, VOCABULARY, length).astype(np.int32),
        trainable_T=trainable,
        old_logprobs_T=at_trainable(random.uniform(-6, -2, length)),
        advantages_T=at_trainable(random.normal(size=length)),
        weights_T=at_trainable(1 / trainable.sum()),
        returns_T=at_trainable(random.normal(size=length)) if returns else None,
    )


def signals(count: int = 6, **changes: Any) -> list[Signal]:
    """Signals of different lengths and two roles, whose weights sum to 1."""
    made = [signal(9 + 3 * n, number=n, role=("leader", "searcher")[n % 2], **changes) for n in range(count)]
    for one in made:
        one.weights_T /= count
    return made


def settings(**changes: Any) -> LearnerSettings:
    """Large steps, so that a test sees them."""
    return LearnerSettings(**{"learning_rate": 1e-3, "tokens_per_pass": 40, "checkpointed_share": 0.0, **changes})


def plain_logprobs(model: Any, ids: Any, temperature: float = 1.0) -> torch.Tensor:
    """Log-probability of every token but the first by an ordinary forward pass over one sequence [T - 1]."""
    tensor = torch.from_numpy(np.asarray(ids)).long()
    logits = model(input_ids=tensor[None]).logits[0, :-1].float() / temperature
    return logits.log_softmax(-1).gather(1, tensor[1:, None])[:, 0]


def weights_of(model: Any) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
