"""The words of models: what is asked of an engine and what comes back.

Token ids go in and token ids come out; no engine ever turns a sampled span into text and back (contract 1). An engine that can
only exchange text (a foreign chat endpoint) leaves the ids None, and the episode says that it is not token-exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from searchparty.errors import Failure


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation as text. `content` is already escaped where it holds untrusted text."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. The defaults draw from the model's own distribution, which is what on-policy training needs.

    Log-probabilities that an engine returns are those of the distribution the token was drawn from: after temperature, top-k
    and top-p, in this order.
    """

    temperature: float = 1.0
    """0 takes the most probable token each time; the log-probability recorded is then that of temperature 1."""
    top_p: float = 1.0
    top_k: int = 0
    """0 means no limit."""
    max_tokens: int = 512
    """Most tokens one completion may have."""


class FinishReason(StrEnum):
    """Why a completion ended."""

    END = "end"
    """The model sampled an end-of-turn token; that token is the last of the ids."""
    STOP = "stop"
    """A stop string was completed; the ids go up to and with the token that completed it."""
    LENGTH = "length"
    """`max_tokens` was reached, or the context window was full."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One call to a model. Requests of many running episodes are in flight at once and an engine may batch them as it likes."""

    messages: Sequence[Message]
    """The history as text: what engines without token ids send, and what scripted engines read."""
    prompt_ids: Sequence[int] | None
    """The history as token ids, exactly what the model is to be given [prompt length]; None if its tokenizer is not known."""
    sampling: Sampling
    seed: int
    """Fixes the outcome: equal request and equal weights give equal tokens, whatever else is in the batch. Candidate j of n
    uses its own stream derived from (seed, j)."""
    n: int = 1
    """Candidates wanted; they share the prompt's prefill."""
    stop: Sequence[str] = ()
    """The completion ends when its text holds one of these."""
    role: str = ""
    """The role that asks (`searcher`); for scripts and for error messages, never sent to a model."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled candidate."""

    text: str
    """The decoded completion, without the end-of-turn token; a stop string is included. For reading and parsing only."""
    ids: Sequence[int] | None
    """The sampled ids, end-of-turn token included [completion length]; None if the engine exchanges text only."""
    logprobs: Sequence[float] | None
    """Log-probability of each sampled id under the sampling distribution, aligned with `ids`; None if not offered."""
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class Generated:
    """The reply to one request: exactly `n` candidates."""

    candidates: Sequence[Completion]
    prompt_tokens: int | None = None
    """Prompt length as the engine counted it; None if it does not say. With prompt ids it equals their number."""
    output_tokens: int | None = None
    """Sampled tokens of all candidates as the engine counted them; None if it does not say. With ids it equals their number."""
    cached_tokens: int | None = None
    """How many of the prompt tokens came from a prefix cache; None if unknown."""


class Engine(Protocol):
    """Something that samples from one model. One instance serves all running episodes of a process.

    `generate` and `score` never raise for a request that failed: its entry is a `Failure` and the others are unharmed.
    """

    @property
    def exchanges_ids(self) -> bool:
        """Whether prompts go in and completions come out as token ids."""

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failure]:
        """Sample; the replies are in the order of the requests."""

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float] | Failure]:
        """Log-probability of every token of each sequence given those before it, at temperature 1.

        Returns per sequence a list of the same length; its first entry is 0.0, for nothing precedes the first token.

        Raises:
            UserError: if the engine cannot score.
        """

    async def close(self) -> None:
        """Finish or cancel what is running and free the model or the connections. May be called twice."""


class Tokenizer(Protocol):
    """Text to ids and back, for one model. Safe to call from several threads at once."""

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Text and id of every token that is not ordinary text: special tokens and all others added to the vocabulary."""

    def encode(self, text: str) -> list[int]:
        """Encode text that may come from anywhere: no character sequence in it ever becomes a special token (contract 3)."""

    def encode_markup(self, text: str) -> list[int]:
        """Encode a piece of the model's own chat template, special tokens recognised. Never given foreign text."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; special tokens are printed by name."""

    def vocabulary(self) -> Mapping[str, int]:
        """Every token, control tokens included, and its id."""
