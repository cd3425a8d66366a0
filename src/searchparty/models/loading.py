"""From the words after `--model` to an engine that is ready. Knows the forms of a model's name; the engines know the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from searchparty.errors import UserError
from searchparty.models.bytes import ByteTokenizer
from searchparty.models.chat import ChatFormat
from searchparty.models.chatml import ChatMLChat
from searchparty.models.scripted import Script, ScriptedEngine
from searchparty.models.types import Engine, Tokenizer

FORMS = (
    "tiny, smollm2, a Hugging Face name (owner/model), a model folder, a .gguf file, run:DIR for what a training run "
    "made, http://host:port/v1 or scripted:default"
)


@dataclass(frozen=True)
class Model:
    """One loaded model, with everything an agent needs to talk to it."""

    name: str
    """What the user called it."""
    identity: str
    """Name and content: for a model of this process equal identities mean equal weights, for a script the same script, for an
    endpoint the same address and model name. Recorded with every run."""
    engine: Engine
    chat: ChatFormat | None
    """None if the model exchanges text only; its server then renders the messages."""
    context_tokens: int | None
    """Most tokens of prompt and completion together; None if unknown or without limit."""
    identity_known: bool = True
    """False for an endpoint that did not answer when it was loaded: its identity is then a guess."""


def load_model(
    spec: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    max_batch_tokens: int = 32768,
    engine: Literal["transformers", "vllm"] = "transformers",
    memory_share: float | None = None,
    tokenizer: str | None = None,
    route: Literal["auto", "tokens", "chat"] = "auto",
    model_name: str | None = None,
    timeout: float = 120.0,
) -> Model:
    """Load the model that `spec` names.

    Args:
        spec: `tiny`, `smollm2`, a Hugging Face name, a folder, a `.gguf` file, `http(s)://host:port/v1` (with `#model` if the
            server has several), or `scripted:NAME`.
        device, dtype: for models that run in this process, see `huggingface.load_weights`.
        max_batch_tokens: for the same, see `batch.BatchLimits.batch_tokens`.
        engine, memory_share: for the same: what runs it. vLLM chooses batch and device by itself, and takes this share of the
            card's memory (half of it unless given).
        tokenizer: for an endpoint: folder, name, `.gguf` file or `smollm2` whose tokenizer and template the served model has.
            The token route needs it.
        route: for an endpoint: exchange token ids, chat text, or find out which it offers.
        model_name: for an endpoint, the same as `#model`.
        timeout: for an endpoint: seconds a request may take, all attempts included.

    Raises:
        UserError: for a spec of no known form, or a model that cannot be loaded.
    """
    if spec.startswith("scripted:"):
        return _scripted(spec)
    if re.match(r"https?://", spec):
        return _endpoint(spec, tokenizer, route, model_name, timeout)
    if engine == "vllm":
        from searchparty.models.vllm_loading import load_vllm

        return load_vllm(spec, dtype=dtype or "bfloat16", memory_share=memory_share or 0.5)
    return _in_process(spec, device, dtype, max_batch_tokens)


def load_tokenizer(spec: str, tokenizer: str | None = None) -> Tokenizer | None:
    """The tokenizer that `load_model` would use, without loading the model; None for endpoints that exchange chat text.

    Raises:
        UserError: if it cannot be loaded.
    """
    if spec.startswith("scripted:"):
        return ByteTokenizer()
    if re.match(r"https?://", spec):
        if tokenizer is None:
            return None
        spec = tokenizer
    from searchparty.models.huggingface import load_chat

    return load_chat(model_folder(spec), spec).tokenizer


def _scripted(spec: str) -> Model:
    """A script by name; `NAME@FOLDER` is one that knows the generated world in that folder."""
    from searchparty.models.scripted_roles import SCRIPTS

    name, _, folder = spec.removeprefix("scripted:").partition("@")
    scripts: Mapping[str, Script] = SCRIPTS
    identity = spec
    if folder:
        from searchparty.world import load_world, world_scripts
        from searchparty.world.storing import world_digest

        world = load_world(Path(folder))
        scripts, identity = world_scripts(world), f"scripted:{name} {world_digest(world)}"
    if name not in scripts:
        there = ", ".join(f"scripted:{name}{'@' + folder if folder else ''}" for name in sorted(scripts))
        raise UserError(f"--model {spec}: no such script; there are: {there}")
    return Model(spec, identity, ScriptedEngine(scripts[name]), ChatMLChat(), None)


def model_folder(spec: str) -> Path:
    """The folder with the files of the model that `spec` names; fetched or converted if need be.

    Raises:
        UserError: if it names none.
    """
    from searchparty.models.model_folders import convert_gguf, fetch_model, trained_model
    from searchparty.models.smollm2 import find_smollm2

    path = Path(spec).expanduser()
    if spec == "tiny":
        from searchparty.tiny import shipped_model

        return shipped_model()
    if spec.startswith("run:"):
        return trained_model(spec)
    if spec == "smollm2":
        return convert_gguf(find_smollm2())
    if path.suffix == ".gguf":
        return convert_gguf(path)
    if path.is_dir():
        return path
    if re.fullmatch(r"[\w.-]+/[\w.-]+", spec):
        return fetch_model(spec)
    raise UserError(f"{spec}: not a model; use {FORMS}")


def _in_process(spec: str, device: str | None, dtype: str | None, max_batch_tokens: int) -> Model:
    from searchparty.models.model_folders import check_model_folder, model_identity

    folder = check_model_folder(model_folder(spec))
    from searchparty.models.huggingface import load_chat, load_weights

    chat = load_chat(folder, spec)
    weights = load_weights(folder, device, dtype)
    from searchparty.models.batch import BatchLimits
    from searchparty.models.transformers_engine import TransformersEngine

    context_tokens = int(weights.config.max_position_embeddings)
    engine = TransformersEngine(
        weights, chat.tokenizer, chat.end_ids, context_tokens=context_tokens, limits=BatchLimits(max_batch_tokens)
    )
    identity = f"{spec} {model_identity(folder)} {str(weights.dtype).removeprefix('torch.')}"
    return Model(spec, identity, engine, chat, context_tokens)


def _endpoint(spec: str, tokenizer: str | None, route: str, model_name: str | None, timeout: float) -> Model:
    from searchparty.models.endpoint import Endpoint
    from searchparty.models.openai_engine import OpenAIEngine, find_offer

    url, _, named = spec.partition("#")
    endpoint = Endpoint(url, timeout=timeout)
    chat = None
    if route != "chat" and tokenizer is not None:
        from searchparty.models.huggingface import load_chat

        chat = load_chat(model_folder(tokenizer), tokenizer)
    if route == "tokens" and chat is None:
        raise UserError(
            f"--model {spec}: exchanging token ids needs the model's tokenizer; give its folder or name as tokenizer"
        )
    offer = find_offer(endpoint, model_name or named or None, chat)
    if route == "tokens" and not offer.token_ids:
        raise UserError(f"--model {spec}: the server does not exchange token ids (vLLM does); use route chat")
    if not offer.token_ids:
        chat = None
    kind = "chat text" if chat is None else "token ids"
    identity = f"{endpoint.url}#{offer.model} ({kind})"
    engine = OpenAIEngine(endpoint, offer, chat, model_name or named or None)
    return Model(spec, identity, engine, chat, offer.context_tokens, offer.known)
