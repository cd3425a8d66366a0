"""A model folder into vLLM, in this process: which of vLLM's settings a training run needs, and why."""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from typing import Any

import torch

from searchparty.errors import UserError, missing_package
from searchparty.models.huggingface import load_chat
from searchparty.models.loading import Model, model_folder
from searchparty.models.model_folders import check_model_folder, model_identity
from searchparty.models.vllm_batch import NamedTensors
from searchparty.models.vllm_engine import VllmEngine
from searchparty.models.vllm_turns import engine_began, engine_ended, turn

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # weights are put into the model by this process
    "VLLM_USE_FLASHINFER_SAMPLER": "0",  # it draws without a request's seed, and compiles itself on first use
    "VLLM_NO_USAGE_STATS": "1",
}
"""Variables that vLLM must see."""
_WORKSPACE_BYTES = 3 << 30
"""Of a card's memory, for what vLLM computes meanwhile, its CUDA graphs with it."""


def load_vllm(
    spec: str,
    *,
    memory_share: float = 0.5,
    context_tokens: int | None = None,
    most_running: int = 1024,
    dtype: str = "bfloat16",
    **settings: Any,
) -> Model:
    """Load the model that `spec` names (see `loading.load_model`) into vLLM on this machine's first GPU.

    Args:
        memory_share: share of the card's memory for weights and keys and values together (vLLM's `gpu_memory_utilization`). It
            must be free already; a learner on the same card needs the rest.
        context_tokens: most tokens of prompt and completion together; unless given, one less than the model can hold.
        most_running: most candidates sampled at the same time; others wait.
        dtype: of weights and arithmetic.
        settings: further arguments of `vllm.EngineArgs`, such as `enforce_eager`.

    Raises:
        UserError: if vLLM is not installed, or cannot load the model.
    """
    os.environ.update(ENVIRONMENT)
    try:
        import vllm
    except ImportError as error:
        raise missing_package(error.name or "vllm", "vllm", "sampling with vLLM") from None
    folder = check_model_folder(model_folder(spec))
    chat = load_chat(folder, spec)
    arguments = vllm_arguments(folder, memory_share, context_tokens, most_running, dtype)
    if torch.cuda.is_available() and "kv_cache_memory_bytes" in vllm.EngineArgs.__dataclass_fields__:
        arguments["kv_cache_memory_bytes"] = cache_bytes(folder, memory_share, torch.cuda.get_device_properties(0).total_memory)
    arguments |= settings
    try:
        with turn():
            llm = vllm.LLMEngine.from_engine_args(vllm.EngineArgs(**arguments))
            engine_began()
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"{spec}: vLLM cannot load the model ({type(error).__name__}: {reason})") from None
    window = llm.model_config.max_model_len - 1
    engine = VllmEngine(
        llm,
        vllm.SamplingParams,
        partial(put_weights, llm),
        chat.tokenizer,
        chat.end_ids,
        context_tokens=window,
        vocabulary=llm.model_config.get_vocab_size(),
        free=lambda: _free(llm),
    )
    identity = f"{spec} {model_identity(folder)} {dtype} vllm {vllm.__version__}"
    return Model(spec, identity, engine, chat, window)


def vllm_arguments(
    folder: Path, memory_share: float, context_tokens: int | None, most_running: int, dtype: str
) -> dict[str, Any]:
    """Arguments of `vllm.EngineArgs` with which `VllmEngine` can use it."""
    return {
        "model": str(folder),
        "skip_tokenizer_init": True,
        "dtype": dtype,
        "max_model_len": None if context_tokens is None else context_tokens + 1,
        "max_num_seqs": most_running,
        "gpu_memory_utilization": memory_share,
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "disable_log_stats": True,
    }


def cache_bytes(folder: Path, memory_share: float, card_bytes: int) -> int | None:
    """What a share of a card leaves for keys and values; None if that is nothing, so that vLLM says what it lacks.

    Told so, vLLM does not find it out by measuring, where everything counts as its own that other processes take of the card at
    the same time.
    """
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    left = int(memory_share * card_bytes) - weights - _WORKSPACE_BYTES
    return left if left > 0 else None


def put_weights(llm: Any, named_tensors: NamedTensors) -> None:
    """Write tensors, named as in the model's checkpoint, into the model that a `vllm.LLMEngine` runs.

    Unquantized parameters on a GPU are still as they were read and are written in place; others vLLM rearranged after reading,
    and does so again.
    """
    if torch.cuda.is_available() and llm.model_config.quantization is None:
        llm.apply_model(lambda model: model.load_weights(named_tensors))
    else:
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": named_tensors})


def _free(llm: Any) -> None:
    """Give the card's memory back: vLLM holds it until its engine core is shut down."""
    with turn():
        llm.engine_core.shutdown()
        engine_ended()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
