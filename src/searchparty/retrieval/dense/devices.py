"""From the name of a device to the device, if this machine has it."""

from __future__ import annotations

import torch

from searchparty.errors import UserError


def find_device(name: str) -> torch.device:
    """`cpu`, `cuda` (the first card) or `cuda:N`. Raises UserError if this machine has no such device."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"device {name}: no such device; use cpu, cuda, or cuda:0,cuda:1") from None
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise UserError(f"device {name}: this machine has {count} CUDA cards that torch can use; use cpu, or fewer cards")
        return torch.device("cuda", device.index or 0)
    if device.type != "cpu":
        raise UserError(f"device {name}: dense retrieval runs on cpu and cuda")
    return device
