"""What can go wrong in an update, and what to tell whom.

A fault of the numbers is a `LearningFault` that names the sequence: the caller decides whether the run stops. Too little memory
is for a person to solve: a `UserError` that names the setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from searchparty.credit.types import SequenceKey
from searchparty.errors import UserError


class LearningFault(Exception):
    """An update that was given up. Weights and optimizer are as the last finished minibatch left them."""


class NonFinite(LearningFault):
    """A log-probability, a loss or a gradient is infinite or not a number.

    Attributes:
        what: `log-probability`, `old log-probability`, `loss`, `value` or `gradient`.
        keys: the sequences in which it was found first; for a gradient, all sequences of the minibatch.
    """

    def __init__(self, what: str, keys: list[SequenceKey], detail: str = "") -> None:
        first = keys[0]
        place = f"{first.question_key} sample {first.sample}, {first.agent}, candidate {first.candidate}"
        more = f" and {len(keys) - 1} more sequences" if len(keys) > 1 else ""
        super().__init__(f"non-finite {what} in {place}{more}{detail}")
        self.what = what
        self.keys = keys


class NothingToLearn(LearningFault):
    """There is no sequence with a token that has weight."""


@contextmanager
def memory_advice(token_budget: int, checkpointed_share: float) -> Iterator[None]:
    """Turn running out of memory into a UserError that says which setting to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        allocator = any(words in str(error) for words in ("allocate memory", "not enough memory"))
        if not isinstance(error, torch.OutOfMemoryError | MemoryError) and not allocator:
            raise
        advice = [f"lower tokens_per_pass (now {token_budget})"]
        if checkpointed_share < 1:
            advice.append(f"raise checkpointed_share (now {checkpointed_share:g}) to 1")
        advice.append("train with LoRA or take a smaller model")
        raise UserError(f"the learner ran out of memory; {', or '.join(advice)}") from None
