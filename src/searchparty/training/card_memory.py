"""How much of a CUDA card's memory a step took. Says nothing where training runs on a CPU."""

from __future__ import annotations

from typing import Any

import torch

GIB = 2**30


def begin_memory(device: torch.device) -> None:
    """Measure peaks from here on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def memory_numbers(device: torch.device) -> dict[str, Any]:
    """`memory` for a line of the metrics, in GiB since `begin_memory`; empty without a card.

    `peak` is what this process's tensors took at most, a sampler of this process with them; `card_used` what all processes hold
    of the card now, caches included.
    """
    if device.type != "cuda":
        return {}
    free, total = torch.cuda.mem_get_info(device)
    peak = torch.cuda.max_memory_allocated(device)
    return {"memory": {"peak": round(peak / GIB, 3), "card_used": round((total - free) / GIB, 3)}}
