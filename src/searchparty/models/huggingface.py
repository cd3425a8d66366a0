"""Loads a model folder with transformers: tokenizer, chat format, weights. Runs no code that comes with a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from searchparty.errors import UserError, missing_package
from searchparty.models.chat import ChatFormat
from searchparty.models.chatml import CHATML, ChatMLChat
from searchparty.models.model_folders import check_model_folder
from searchparty.models.types import Message

try:
    import transformers

    from searchparty.models.chat_template import template_chat
    from searchparty.models.huggingface_tokenizer import HuggingFaceTokenizer
except ImportError as error:
    raise missing_package(error.name or "transformers", "tokens", "a model's tokenizer") from None


def load_chat(folder: Path, name: str) -> ChatFormat:
    """Tokenizer and chat format of the model in `folder`.

    Raises:
        UserError: for a tokenizer that is not a fast one, or a model without a chat template that is no ChatML model either.
    """
    if not (folder / "tokenizer.json").is_file():
        raise UserError(f"{folder}: no tokenizer.json; save the tokenizer (a fast one) into the folder with save_pretrained")
    wrapped = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    backend = getattr(wrapped, "backend_tokenizer", None)
    if backend is None:
        raise UserError(f"{folder}: the tokenizer is not a fast one; save it as tokenizer.json")
    tokenizer = HuggingFaceTokenizer(backend)
    if not wrapped.chat_template:
        if {CHATML.end_of_turn, "<|im_start|>"} <= tokenizer.control_tokens.keys():
            return ChatMLChat(tokenizer)
        raise UserError(f"{folder}: the tokenizer has no chat template; choose an instruct model or add chat_template.jinja")

    def render(messages: Sequence[Message], generation: bool) -> str:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        return str(wrapped.apply_chat_template(turns, tokenize=False, add_generation_prompt=generation))

    return template_chat(name, tokenizer, render, _end_ids(folder, wrapped))


def _end_ids(folder: Path, wrapped: Any) -> list[int]:
    """Ids that end a text by the model's own settings."""
    ends = [wrapped.eos_token_id]
    if (folder / "generation_config.json").is_file():
        given = transformers.GenerationConfig.from_pretrained(folder).eos_token_id
        ends += given if isinstance(given, list) else [given]
    return sorted({end for end in ends if end is not None})


def load_weights(folder: Path, device: str | None = None, dtype: str | None = None) -> Any:
    """The causal language model in `folder`, ready to run.

    Args:
        device: such as `cpu` or `cuda:1`; the first CUDA device if there is one unless given.
        dtype: `float32` or `bfloat16`. Unless given: bfloat16 on CUDA and float32 on CPUs, most of which have no bfloat16
            arithmetic and are several times slower with it.
    """
    try:
        import torch
    except ImportError:
        raise missing_package("torch", "train", "running a model in-process") from None
    check_model_folder(folder)
    transformers.utils.logging.disable_progress_bar()
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = dtype or ("bfloat16" if device.startswith("cuda") else "float32")
    from safetensors import SafetensorError

    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=getattr(torch, dtype), trust_remote_code=False, use_safetensors=True, attn_implementation="sdpa"
        )
        return model.to(device).eval()
    except (
        ValueError,
        OSError,
        KeyError,
        RuntimeError,
        AssertionError,
        SafetensorError,
    ) as error:  # torch without CUDA asserts that it has it
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{folder}: the model cannot be loaded ({type(error).__name__}: {reason}); check its files") from None
