"""Drawing the next token of every row of a batch, each row from its own stream of random numbers.

A row's noise is a pure function of (seed, candidate, position, token id), computed on the logits' device, so it does not depend
on the other rows, and the Gumbel-max rule turns it into a draw: two batches whose logits differ in the last bit give different
tokens only if the two best perturbed scores are equal to within that bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch

from searchparty.models.types import Sampling

_STEP = -7046029254386353131  # 2**64 divided by the golden ratio, as a signed number: the step of the splitmix64 generator


def stream(seed: int, candidate: int) -> int:
    """The 64-bit name of candidate `candidate`'s random stream."""
    digest = hashlib.blake2b(f"{seed}/{candidate}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def draw(
    logits_RV: torch.Tensor, streams_R: Sequence[int], positions_R: Sequence[int], samplings_R: Sequence[Sampling]
) -> tuple[list[int], list[float]]:
    """One token per row.

    Args:
        logits_RV: next-token logits [rows, vocabulary].
        streams_R: `stream(...)` of each row.
        positions_R: how many tokens each row has drawn already.

    Returns:
        The ids and their log-probabilities under the distribution drawn from (for temperature 0, under that of temperature 1).
    """
    logits_RV = logits_RV.float()
    device = logits_RV.device
    greedy_R = torch.tensor([s.temperature == 0 for s in samplings_R], device=device)
    temperature_R = torch.tensor([s.temperature or 1.0 for s in samplings_R], device=device)
    scaled_RV = logits_RV / temperature_R[:, None]
    if any(s.temperature and (s.top_k or s.top_p < 1) for s in samplings_R):
        scaled_RV = _keep_likely(scaled_RV, samplings_R)
    logprobs_RV = torch.log_softmax(scaled_RV, dim=-1)
    ids_R = logits_RV.argmax(dim=-1)
    if not bool(greedy_R.all()):
        noise_RV = _exponential(streams_R, positions_R, logits_RV.shape[1], device)
        ids_R = torch.where(greedy_R, ids_R, (logprobs_RV - noise_RV.log()).argmax(dim=-1))
    chosen_R = logprobs_RV.gather(1, ids_R[:, None])[:, 0]
    return ids_R.tolist(), chosen_R.tolist()


def _keep_likely(scaled_RV: torch.Tensor, samplings_R: Sequence[Sampling]) -> torch.Tensor:
    """Minus infinity outside the `top_k` likeliest tokens, then outside the fewest of these that hold `top_p` of their mass."""
    vocabulary = scaled_RV.shape[1]
    limits = [s.top_k if s.top_k and s.temperature else vocabulary for s in samplings_R]
    masses = [s.top_p if s.temperature else 1.0 for s in samplings_R]
    limit_R = torch.tensor(limits, device=scaled_RV.device)
    mass_R = torch.tensor(masses, device=scaled_RV.device)
    sorted_RV, order_RV = scaled_RV.sort(dim=-1, descending=True, stable=True)
    rank_V = torch.arange(vocabulary, device=scaled_RV.device)
    sorted_RV = sorted_RV.masked_fill(rank_V >= limit_R[:, None], -torch.inf)
    probability_RV = sorted_RV.softmax(dim=-1)
    mass_before_RV = probability_RV.cumsum(dim=-1) - probability_RV
    outside_RV = (mass_before_RV >= mass_R[:, None]) & (rank_V > 0) & (mass_R[:, None] < 1)
    sorted_RV = sorted_RV.masked_fill(outside_RV, -torch.inf)
    return torch.empty_like(sorted_RV).scatter_(1, order_RV, sorted_RV)


def _exponential(streams_R: Sequence[int], positions_R: Sequence[int], vocabulary: int, device: torch.device) -> torch.Tensor:
    """Exponential noise [rows, vocabulary] in float64, by the splitmix64 generator counted by position and token."""
    start_R = torch.tensor(streams_R, dtype=torch.int64, device=device)
    start_R = _mix(start_R + torch.tensor(positions_R, dtype=torch.int64, device=device) * _STEP)
    token_V = torch.arange(1, vocabulary + 1, dtype=torch.int64, device=device)
    bits_RV = _mix(start_R[:, None] + token_V * _STEP)
    uniform_RV = (_shift(bits_RV, 11).double() + 0.5) * 2.0**-53
    return -uniform_RV.log()


def _mix(bits: torch.Tensor) -> torch.Tensor:
    bits = (bits ^ _shift(bits, 30)) * -4658895280553007687  # 0xBF58476D1CE4E5B9
    bits = (bits ^ _shift(bits, 27)) * -7723592293110705685  # 0x94D049BB133111EB
    return bits ^ _shift(bits, 31)


def _shift(bits: torch.Tensor, places: int) -> torch.Tensor:
    """Shift right without copying the sign."""
    return (bits >> places) & ((1 << (64 - places)) - 1)
