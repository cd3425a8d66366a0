"""A learner's state in files: safetensors for tensors, JSON for the rest, no pickle.

    masters.safetensors     float32 weights, those that are trained
    optimizer.safetensors   the optimizer's moments, by `part/quantity/name`
    learner.json            counters, random states

With the folder's checksums (`checkpoints`) and the model that training started from, this is all that is needed to go on as if
nothing had happened.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file

from searchparty.errors import UserError
from searchparty.files import read_json, write_json
from searchparty.learning.tensor_files import write_tensors
from searchparty.learning.weights import MasterWeights, check_tensors

MASTERS, OPTIMIZER, COUNTERS = "masters.safetensors", "optimizer.safetensors", "learner.json"
MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Trained(Protocol):
    """What is saved of a learner."""

    trained: dict[str, MasterWeights]
    optimizer: torch.optim.AdamW
    updates: int
    optimizer_steps: int


def save_learner(learner: Trained, folder: Path) -> None:
    """Write the state into `folder`, which exists. Raises OSError or UserError if the disk is full."""
    masters, moments = {}, {}
    for part, weights in learner.trained.items():
        for name, master in weights.masters.items():
            masters[f"{part}/{name}"] = master.detach().contiguous()
            for moment, tensor in learner.optimizer.state.get(master, {}).items():
                moments[f"{part}/{moment}/{name}"] = tensor.contiguous()
    write_tensors(masters, folder / MASTERS)
    write_tensors(moments, folder / OPTIMIZER)
    write_json(
        folder / COUNTERS,
        {"updates": learner.updates, "optimizer_steps": learner.optimizer_steps, "random_states": _random_states()},
    )


def load_learner(learner: Trained, folder: Path) -> None:
    """Bring a learner of the same model and settings into the state that `folder` holds, random states of torch included.

    Raises:
        UserError: if the weights are not those that this learner trains; the learner is then unchanged.
    """
    masters = load_file(folder / MASTERS)
    moments = load_file(folder / OPTIMIZER)
    counters = read_json(folder / COUNTERS, _check_counters)
    by_part = {part: _under(masters, part) for part in learner.trained}
    for part, weights in learner.trained.items():
        check_tensors(by_part[part], weights.masters, str(folder / MASTERS))
    if unknown := {name.split("/")[0] for name in masters} - learner.trained.keys():
        raise UserError(f"{folder}: it also holds a {min(unknown)}, which this learner does not have; resume with one")
    for part, weights in learner.trained.items():
        weights.load(by_part[part], str(folder / MASTERS))
        for name, master in weights.masters.items():
            state = {moment: moments.get(f"{part}/{moment}/{name}") for moment in MOMENTS}
            learner.optimizer.state[master] = {
                # A fused optimizer counts steps on the device, the others on the CPU.
                moment: tensor if moment == "step" and not learner.optimizer.defaults["fused"] else tensor.to(master.device)
                for moment, tensor in state.items()
                if tensor is not None
            }
    learner.updates, learner.optimizer_steps = counters["updates"], counters["optimizer_steps"]
    _set_random_states(counters["random_states"])


def _under(tensors: Mapping[str, torch.Tensor], part: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(f"{part}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{part}/")}


def _check_counters(value: Any) -> dict[str, Any]:
    return {
        "updates": int(value["updates"]),
        "optimizer_steps": int(value["optimizer_steps"]),
        "random_states": {str(device): base64.b64decode(state) for device, state in value["random_states"].items()},
    }


def _random_states() -> dict[str, str]:
    """The states of torch's generators by device, base64."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda:{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
    return {device: base64.b64encode(state.numpy().tobytes()).decode() for device, state in states.items()}


def _set_random_states(states: Mapping[str, bytes]) -> None:
    for device, state in states.items():
        tensor = torch.frombuffer(bytearray(state), dtype=torch.uint8)
        if device == "cpu":
            torch.set_rng_state(tensor)
        elif torch.cuda.is_available() and int(device.removeprefix("cuda:")) < torch.cuda.device_count():
            torch.cuda.set_rng_state(tensor, device)
