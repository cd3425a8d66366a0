"""Rankers that read query and passage together, from sentence-transformers. Runs no code that comes with a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchparty.errors import UserError, missing_package
from searchparty.retrieval.dense.model_files import load_error, model_folder
from searchparty.retrieval.encodable import encodable
from searchparty.retrieval.types import Passage

try:
    import torch
    import transformers
    from sentence_transformers import CrossEncoder

    from searchparty.retrieval.dense.devices import find_device
except ImportError as error:
    raise missing_package(error.name or "sentence-transformers", "dense", "a cross-encoder") from None


class CrossEncoderRanker:
    """A `Ranker` over a model with one output. Scores are that output itself, since squeezed ones end in ties at 0 and 1."""

    def __init__(self, model: str, *, device: str | None = None, max_tokens: int | None = None, batch: int = 32) -> None:
        """Load a model.

        Args:
            model: a Hugging Face name or a folder.
            device: `cpu`, `cuda`, `cuda:1`; None takes the CPU.
            max_tokens: longest query and passage together; None takes the model's own limit.
            batch: pairs scored at a time.

        Raises:
            UserError: the model is not to be had, or has more than one output.
        """
        folder, place = model_folder(model), find_device(device or "cpu")
        transformers.utils.logging.disable_progress_bar()
        try:
            self._model: Any = CrossEncoder(
                str(folder),
                device=str(place),
                max_length=max_tokens,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:
            raise load_error(model, error) from error
        if self._model.num_labels != 1:
            raise UserError(
                f"{model}: gives {self._model.num_labels} numbers for a pair, a ranker gives one; choose a re-ranking model"
            )
        self._batch = batch
        self.identity = f"cross-encoder(model={model},max_tokens={max_tokens or 'model'})"

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[Passage]]) -> list[list[float]]:
        """A score for each passage of each query; all pairs go through the model in common batches."""
        pairs = [
            (encodable(query), encodable(passage.contents))
            for query, of_query in zip(queries, passages, strict=True)
            for passage in of_query
        ]
        scored = self._model.predict(
            pairs, batch_size=self._batch, show_progress_bar=False, activation_fn=torch.nn.Identity(), convert_to_numpy=True
        )
        scores = iter([float(score) for score in scored])
        return [[next(scores) for _ in of_query] for of_query in passages]
