"""What credit hands to the learner cannot say anything about a token that was not sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credit_factories import floats, sequence

from searchparty.credit.types import Signal


def signal() -> Signal:
    """Three tokens, of which the last two were sampled."""
    one = sequence([0, 1, 1], [0, -1.0, -2.0])
    return Signal(one.key, one.role, one.ids_T, one.trainable_T, one.old_logprobs_T, floats([0, 1, -1]), floats([0, 0.5, 0.5]))


@pytest.mark.parametrize("name", ["old_logprobs_T", "advantages_T", "weights_T", "returns_T"])
def test_a_number_at_a_token_that_is_not_trainable_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} is not 0 at a token that is not trainable"):
        replace(signal(), **{name: floats([0.5, 0, 0])})
    with pytest.raises(ValueError, match=rf"{name} is not 0"):
        replace(signal(), **{name: floats([np.nan, 1, 1])})


@pytest.mark.parametrize("name", ["old_logprobs_T", "advantages_T", "weights_T", "returns_T", "trainable_T"])
def test_an_array_of_another_length_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} has shape \(2,\), ids_T has 3 tokens"):
        replace(signal(), **{name: np.zeros(2, dtype=np.bool_ if name == "trainable_T" else np.float32)})
