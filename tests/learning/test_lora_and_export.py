from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from learning_factories import settings, signals, tiny_model, weights_of
from safetensors.torch import load_file

from searchparty.errors import UserError
from searchparty.learning.export import export_model
from searchparty.learning.learner import Learner
from searchparty.learning.learner_state import MASTERS, load_learner, save_learner
from searchparty.learning.lora import LoRA, add_lora, merged_weights


def with_lora(seed: int = 0):
    pytest.importorskip("peft")
    model = tiny_model()
    add_lora(model, LoRA(rank=4, scale=8.0), seed)
    return model


def logprobs_of(model):
    return np.concatenate(Learner(model, settings()).logprobs(signals()))


def test_additions_start_at_zero_and_are_all_that_is_trained():
    model = with_lora()
    assert np.allclose(logprobs_of(model), logprobs_of(tiny_model()), atol=1e-6)
    before = weights_of(model)
    Learner(model, settings(checkpointed_share=1.0)).update(signals())
    changed = {name for name, tensor in weights_of(model).items() if not torch.equal(before[name], tensor)}
    assert changed
    assert all(".lora_" in name for name in changed)


def test_a_checkpoint_holds_the_additions_alone_and_resumes(tmp_path):
    first, second = Learner(with_lora(), settings()), Learner(with_lora(seed=5), settings())
    first.update(signals())
    save_learner(first, tmp_path)
    assert all(".lora_" in name for name in load_file(tmp_path / MASTERS))
    load_learner(second, tmp_path)
    assert first.update(signals()) == second.update(signals())


@pytest.mark.parametrize("lora", [False, True])
def test_an_exported_model_loads_with_transformers_and_gives_the_same_log_probabilities(tmp_path, lora):
    model = with_lora() if lora else tiny_model()
    Learner(model, settings(learning_rate=1e-2)).update(signals())
    export_model(model, tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert np.allclose(logprobs_of(loaded), logprobs_of(model), atol=1e-5)


def test_merged_weights_have_the_names_of_the_plain_model():
    assert {name for name, _ in merged_weights(with_lora())} == set(weights_of(tiny_model()))


def test_a_module_that_the_model_does_not_have_is_named():
    pytest.importorskip("peft")
    with pytest.raises(UserError, match="c_attn"):
        add_lora(tiny_model(), LoRA(modules=("c_attn",)))
