import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from stub_vllm import Params, StubLLM
from tiny_models import DATA, backend, random_model

from searchparty.errors import UserError
from searchparty.models.loading import load_model
from searchparty.models.types import Generated, GenerateRequest, Sampling
from searchparty.models.vllm_loading import cache_bytes, load_vllm


class StubVllm(StubLLM):
    """With what loading asks for besides."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__()
        if arguments["max_model_len"] == 1000:
            raise ValueError("no room for\nthe cache")
        self.arguments = arguments
        self.model_config = SimpleNamespace(
            max_model_len=arguments["max_model_len"] or 512, quantization=None, get_vocab_size=lambda: 50000
        )
        self.engine_core = SimpleNamespace(shutdown=lambda: self.calls.append("shutdown"))
        self.calls: list[str] = []

    def collective_rpc(self, method: str, kwargs: dict[str, Any]) -> None:
        self.calls.append(method)
        self.put_weights(kwargs["weights_iterator"])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[StubVllm]:
    """vLLM is installed; the engines that it makes."""
    engines: list[StubVllm] = []

    def make(arguments: dict[str, Any]) -> StubVllm:
        engines.append(StubVllm(arguments))
        return engines[-1]

    stub = SimpleNamespace(
        EngineArgs=dict, LLMEngine=SimpleNamespace(from_engine_args=make), SamplingParams=Params, __version__="0.0"
    )
    monkeypatch.setitem(sys.modules, "vllm", stub)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return engines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend("smollm"), eos_token="<|im_end|>")
    tokenizer.chat_template = (DATA / "smollm2.jinja").read_text("utf-8")
    tokenizer.save_pretrained(tmp_path / "tiny")
    random_model(vocabulary=backend("smollm").get_vocab_size()).save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def test_without_vllm_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(UserError, match=r"pip install 'searchparty\[vllm\]'"):
        load_vllm("smollm2")


async def test_a_folder_is_loaded_samples_takes_new_weights_and_is_freed(folder: Path, made: list[StubVllm]) -> None:
    model = load_vllm(str(folder), memory_share=0.3, context_tokens=100, enforce_eager=True)
    (llm,) = made
    assert model.identity.startswith(f"{folder} sha256:") and model.identity.endswith(" bfloat16 vllm 0.0")
    assert (llm.arguments["gpu_memory_utilization"], llm.arguments["enforce_eager"]) == (0.3, True)
    assert llm.arguments["logprobs_mode"] == "processed_logprobs"
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert model.context_tokens == 100 and llm.arguments["max_model_len"] == 101
    (reply,) = await model.engine.generate([GenerateRequest([], [1, 2], Sampling(max_tokens=5), seed=1)])
    assert isinstance(reply, Generated) and llm.asked[0].stop_token_ids
    await model.engine.refresh([("version", torch.tensor(1.0))])
    await model.engine.close()
    assert llm.calls == ["reload_weights", "shutdown"]


def test_without_a_limit_the_context_is_one_less_than_the_model_holds(folder: Path, made: list[StubVllm]) -> None:
    assert load_vllm(str(folder)).context_tokens == 511


def test_what_vllm_cannot_load_is_one_line(folder: Path, made: list[StubVllm]) -> None:
    with pytest.raises(UserError, match="no room for the cache") as caught:
        load_vllm(str(folder), context_tokens=999)
    assert "\n" not in str(caught.value)


async def test_any_model_of_this_process_can_be_played_by_vllm(folder: Path, made: list[StubVllm]) -> None:
    model = load_model(str(folder), engine="vllm")
    assert "vllm" in model.identity and len(made) == 1
    await model.engine.close()


def test_what_a_share_of_the_card_leaves_for_keys_and_values_is_told_to_vllm(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(bytes(1000))
    assert cache_bytes(tmp_path, 0.25, 16 << 30) == (1 << 30) - 1000
    assert cache_bytes(tmp_path, 0.1, 16 << 30) is None
