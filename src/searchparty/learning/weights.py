"""Weights in two precisions: what the model computes with, and the float32 masters that the optimizer changes.

A step of 1e-6 is lost in bfloat16, and so is a small gradient added to a large one; masters and gradients are therefore kept in
float32. A parameter that is float32 already is its own master. Knows parameters by name, nothing of losses.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from searchparty.errors import UserError


class MasterWeights:
    """The masters of all parameters that are trained.

    `masters[name].grad` holds the sum of the gradients of all backward passes since `clear_gradients`, in float32.
    """

    def __init__(self, named_parameters: Iterable[tuple[str, torch.nn.Parameter]]) -> None:
        self.masters: dict[str, torch.nn.Parameter] = {}
        self._copies: list[tuple[torch.nn.Parameter, torch.nn.Parameter]] = []
        for name, parameter in named_parameters:
            if not parameter.requires_grad:
                continue
            if parameter.dtype == torch.float32:
                self.masters[name] = parameter
                continue
            master = torch.nn.Parameter(parameter.detach().float())
            self.masters[name] = master
            self._copies.append((parameter, master))
            hook = _GradientMove(master)
            parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def publish(self) -> None:
        """Round the masters into the model, after the optimizer has changed them."""
        for parameter, master in self._copies:
            parameter.copy_(master)

    def clear_gradients(self) -> None:
        """Forget all gradients, those of a backward pass that was broken off included."""
        for master in self.masters.values():
            master.grad = None
        for parameter, _ in self._copies:
            parameter.grad = None

    @torch.no_grad()
    def load(self, tensors: dict[str, torch.Tensor], place: str) -> None:
        """Set the masters and the model. Raises UserError, naming `place`, if names or shapes are not those of the masters."""
        check_tensors(tensors, self.masters, place)
        for name, master in self.masters.items():
            master.copy_(tensors[name])
        self.publish()


def check_tensors(found: dict[str, torch.Tensor], expected: dict[str, torch.nn.Parameter], place: str) -> None:
    """Raises UserError, naming `place`, if `found` has not exactly the names and shapes of `expected`."""
    if found.keys() != expected.keys():
        name = min(found.keys() ^ expected.keys())
        what = "is not in this checkpoint" if name in expected else "is not trained by this learner"
        raise UserError(f"{place}: {name} {what}; resume with the model and the LoRA settings that wrote the checkpoint")
    for name, parameter in expected.items():
        if found[name].shape != parameter.shape:
            raise UserError(
                f"{place}: {name} has shape {tuple(found[name].shape)}, the model's has {tuple(parameter.shape)};"
                " resume with the model that wrote the checkpoint"
            )


class _GradientMove:
    """Adds a parameter's gradient to its master's and frees it, as soon as the backward pass has it complete."""

    def __init__(self, master: torch.nn.Parameter) -> None:
        self.master = master

    def __call__(self, parameter: torch.Tensor) -> None:
        if parameter.grad is None:
            return
        if self.master.grad is None:
            self.master.grad = parameter.grad.float()
        else:
            self.master.grad.add_(parameter.grad)
        parameter.grad = None
