"""Encoders of sentence-transformers, used as a profile says. Runs no code that comes with a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchparty.errors import UserError, missing_package
from searchparty.retrieval.dense.devices import find_device
from searchparty.retrieval.dense.model_files import load_error, model_digest, model_folder
from searchparty.retrieval.dense.profiles import EncoderProfile
from searchparty.retrieval.encodable import encodable

try:
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling
except ImportError as error:
    raise missing_package(error.name or "sentence-transformers", "dense", "a dense index") from None


class SentenceEncoder:
    """An `Encoder` of sentence-transformers. Prefixes are part of what is pooled, as these models are trained."""

    def __init__(
        self,
        model: str,
        profile: EncoderProfile,
        *,
        device: str | None = None,
        precision: str | None = None,
        batch: int = 64,
    ) -> None:
        """Load a model.

        Args:
            model: a Hugging Face name or a folder.
            profile: how texts are put to it.
            device: `cpu`, `cuda`, `cuda:1`; None takes a CUDA card if there is one.
            precision: `float32`, `float16` or `bfloat16`; None takes float16 on a card and float32 elsewhere.
            batch: texts encoded at a time.

        Raises:
            UserError: the model is not to be had, or the profile does not fit it.
        """
        self.name = model
        place = find_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        precision = precision or ("float16" if place.type == "cuda" else "float32")
        self._batch = batch
        self._model = _load(model, profile, str(place)).to(getattr(torch, precision)).eval()
        prompts = self._model.prompts
        self._profile = replace(
            profile,
            query_prefix=_first(profile.query_prefix, prompts.get("query")),
            passage_prefix=_first(profile.passage_prefix, prompts.get("document"), prompts.get("passage")),
        )

    @property
    def settings(self) -> Mapping[str, str]:
        """The profile, with the prefixes that are in use."""
        return self._profile.settings

    @property
    def digest(self) -> str:
        """A fingerprint of the model's files."""
        return model_digest(model_folder(self.name))

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self._model.get_embedding_dimension())

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, float32 [queries, dimension]."""
        return self._encode(self._profile.query_prefix or "", queries)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of the contents of passages, float32 [texts, dimension]."""
        return self._encode(self._profile.passage_prefix or "", texts)

    def _encode(self, prefix: str, texts: Sequence[str]) -> NDArray[np.float32]:
        encoded = self._model.encode(
            [encodable(prefix + text) for text in texts],
            prompt="",
            batch_size=self._batch,
            show_progress_bar=False,
            convert_to_tensor=True,
            normalize_embeddings=False,
        )
        vectors: NDArray[np.float32] = encoded.float().cpu().numpy()
        if self._profile.similarity == "cosine":
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(lengths > 0, lengths, np.float32(1))
        return vectors


def _load(name: str, profile: EncoderProfile, device: str) -> Any:
    folder = model_folder(name)
    transformers.utils.logging.disable_progress_bar()
    try:
        model = SentenceTransformer(
            str(folder), device=device, local_files_only=True, trust_remote_code=False, model_kwargs={"use_safetensors": True}
        )
    except Exception as error:
        raise load_error(name, error) from error
    if profile.pooling != "model":
        if not hasattr(model[0], "get_embedding_dimension") or not hasattr(model[0], "auto_model"):
            raise UserError(
                f"{name}: has no vectors per token, which the profile {profile.name} pools; use --profile sentence-transformers"
            )
        pooling = Pooling(model[0].get_embedding_dimension(), profile.pooling)
        model = SentenceTransformer(modules=[model[0], pooling], device=device, prompts=model.prompts)
    if profile.max_tokens is not None:
        model.max_seq_length = min(profile.max_tokens, model.max_seq_length or profile.max_tokens)
    return model


def _first(*prefixes: str | None) -> str:
    return next((prefix for prefix in prefixes if prefix is not None), "")
