"""Late interaction (Khattab and Zaharia, SIGIR 2020): query and passage are encoded apart and then compared token by token.

score(q, p) = Σ_i max_j q_i · p_j, over the token vectors q_i of the query and p_j of the passage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from searchparty.errors import missing_package
from searchparty.retrieval.types import Passage

try:
    import torch
except ImportError:
    raise missing_package("torch", "dense", "late interaction") from None


class TokenEncoder(Protocol):
    """Turns texts into one vector per token that counts."""

    @property
    def identity(self) -> str:
        """Model and settings in one line."""

    def encode_queries(self, queries: Sequence[str]) -> list[torch.Tensor]:
        """Token vectors of each query, float [tokens, dimension]."""

    def encode_passages(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Token vectors of each passage, float [tokens, dimension], on the same device."""


class LateInteractionRanker:
    """A `Ranker` by token vectors. A passage that several queries of a batch have in common is encoded once."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self._encoder = encoder

    @property
    def identity(self) -> str:
        """The encoder's."""
        return f"late-interaction({self._encoder.identity})"

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[Passage]]) -> list[list[float]]:
        """A score for each passage of each query."""
        different = list(dict.fromkeys(passage.contents for of_query in passages for passage in of_query))
        if not different:
            return [[] for _ in queries]
        encoded = dict(zip(different, self._encoder.encode_passages(different), strict=True))
        query_vectors = self._encoder.encode_queries(queries)
        return [
            max_sim(vectors, [encoded[passage.contents] for passage in of_query])
            for vectors, of_query in zip(query_vectors, passages, strict=True)
        ]


def max_sim(query: torch.Tensor, passages: Sequence[torch.Tensor]) -> list[float]:
    """The score of each passage, all multiplied at once.

    Args:
        query: token vectors [query tokens, dimension].
        passages: token vectors of each passage [its tokens, dimension]; one without tokens scores minus infinity.
    """
    if not passages:
        return []
    if not any(map(len, passages)):
        return [-math.inf] * len(passages)
    padded_PTD = torch.nn.utils.rnn.pad_sequence(list(passages), batch_first=True)
    lengths_P = torch.tensor([len(passage) for passage in passages], device=query.device)
    is_token_PT = torch.arange(padded_PTD.shape[1], device=query.device) < lengths_P[:, None]
    products_PQT = torch.einsum("qd,ptd->pqt", query.float(), padded_PTD.float())
    best_PQ = products_PQT.masked_fill(~is_token_PT[:, None, :], -torch.inf).amax(dim=2)
    return [float(score) for score in best_PQ.sum(dim=1)]
