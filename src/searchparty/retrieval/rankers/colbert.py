"""ColBERT models in the layout of colbert-ir: a BERT, and beside its weights `linear.weight`, which shortens its token vectors.

A query is `[CLS] [unused0] words [SEP]`, filled up with `[MASK]` to 32 tokens which are not attended to but do count; a passage
is `[CLS] [unused1] words [SEP]`, of which punctuation does not count. Vectors have length 1.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from searchparty.errors import UserError, missing_package
from searchparty.retrieval.dense.model_files import load_error, model_folder
from searchparty.retrieval.encodable import encodable

try:
    import torch
    import transformers
    from safetensors import safe_open

    from searchparty.retrieval.dense.devices import find_device
except ImportError as error:
    raise missing_package(error.name or "torch", "dense", "a ColBERT model") from None

QUERY_TOKENS = 32
PASSAGE_TOKENS = 300
_PROJECTION = "linear.weight"


class ColBERTEncoder:
    """A `TokenEncoder`."""

    def __init__(self, model: str, *, device: str | None = None, passage_tokens: int = PASSAGE_TOKENS, batch: int = 32) -> None:
        """Load a model.

        Args:
            model: a Hugging Face name or a folder.
            device: `cpu`, `cuda`, `cuda:1`; None takes the CPU.
            passage_tokens: longest passage, markers included; the rest is cut off.
            batch: texts encoded at a time.

        Raises:
            UserError: the model is not to be had, or is not laid out as ColBERT's are.
        """
        folder, self._device = model_folder(model), find_device(device or "cpu")
        transformers.utils.logging.disable_progress_bar()
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            self._bert: Any = transformers.AutoModel.from_pretrained(folder, trust_remote_code=False, use_safetensors=True)
        except Exception as error:
            raise load_error(model, error) from error
        self._bert.to(self._device).eval()
        self._projection_HD = _projection(folder, model).to(self._device, torch.float32)
        self._query_marker, self._passage_marker = (self._token(model, name) for name in ("[unused0]", "[unused1]"))
        self._punctuation = torch.tensor(
            sorted({id_ for sign in string.punctuation for id_ in self._tokenizer.encode(sign, add_special_tokens=False)}),
            device=self._device,
        )
        self._passage_tokens = passage_tokens
        self._batch = batch
        self.identity = f"colbert(model={model},query_tokens={QUERY_TOKENS},passage_tokens={passage_tokens})"

    def encode_queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Token vectors of each query, float32 [32, dimension]."""
        encoded = []
        for start in range(0, len(queries), self._batch):
            rows = [self._marked(query, self._query_marker, QUERY_TOKENS) for query in queries[start : start + self._batch]]
            ids_BT, attended_BT = self._padded(rows, self._tokenizer.mask_token_id, QUERY_TOKENS)
            encoded += list(self._vectors(ids_BT, attended_BT))
        return encoded

    def encode_passages(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Token vectors of each passage without punctuation, float32 [tokens, dimension]."""
        encoded = []
        for start in range(0, len(texts), self._batch):
            rows = [
                self._marked(text, self._passage_marker, self._passage_tokens) for text in texts[start : start + self._batch]
            ]
            ids_BT, attended_BT = self._padded(rows, self._tokenizer.pad_token_id, max(map(len, rows)))
            counts_BT = attended_BT & ~torch.isin(ids_BT, self._punctuation)
            vectors_BTD = self._vectors(ids_BT, attended_BT)
            encoded += [vectors[counts] for vectors, counts in zip(vectors_BTD, counts_BT, strict=True)]
        return encoded

    def _marked(self, text: str, marker: int, limit: int) -> list[int]:
        """Token ids with the marker behind `[CLS]`, at most `limit`."""
        first, *rest = self._tokenizer.encode(encodable(text), truncation=True, max_length=limit - 1, split_special_tokens=True)
        return [first, marker, *rest]

    def _padded(self, rows: Sequence[Sequence[int]], filler: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids [batch, length] and whether each is attended to."""
        ids_BT = torch.full((len(rows), length), filler, device=self._device)
        attended_BT = torch.zeros_like(ids_BT, dtype=torch.bool)
        for number, row in enumerate(rows):
            ids_BT[number, : len(row)] = torch.tensor(row, device=self._device)
            attended_BT[number, : len(row)] = True
        return ids_BT, attended_BT

    @torch.no_grad()
    def _vectors(self, ids_BT: torch.Tensor, attended_BT: torch.Tensor) -> torch.Tensor:
        states_BTH = self._bert(input_ids=ids_BT, attention_mask=attended_BT.long()).last_hidden_state
        return torch.nn.functional.normalize(states_BTH.float() @ self._projection_HD, dim=2)

    def _token(self, model: str, name: str) -> int:
        id_ = self._tokenizer.convert_tokens_to_ids(name)
        if id_ is None or id_ == self._tokenizer.unk_token_id:
            raise UserError(f"{model}: its tokenizer has no {name}, by which ColBERT marks queries and passages")
        return int(id_)


def _projection(folder: Path, model: str) -> torch.Tensor:
    """The matrix that shortens token vectors, [hidden, dimension]."""
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as tensors:
            if _PROJECTION in tensors.keys():  # noqa: SIM118 (no container)
                projection: torch.Tensor = tensors.get_tensor(_PROJECTION).T
                return projection
    raise UserError(f"{model}: holds no {_PROJECTION}, which a ColBERT model has; choose one in the layout of colbert-ir")
