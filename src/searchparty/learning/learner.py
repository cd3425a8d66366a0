"""Changes a policy by signals: token arrays in, metrics out.

Knows packed rows, an objective and an optimizer; must not know which algorithm made the signals, what a role is for, or where
episodes come from. On a CPU equal signals, settings and weights give equal results to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from searchparty.credit.types import BoolArray, FloatArray, Signal
from searchparty.learning.batches import Item, Packable, PackedRow, pack, split_minibatches
from searchparty.learning.critic import Critic
from searchparty.learning.examples import Example, example_of, role_indices, row_loss
from searchparty.learning.faults import NonFinite, NothingToLearn, memory_advice
from searchparty.learning.logprobs import token_logprobs
from searchparty.learning.losses import Objective, PPOClip
from searchparty.learning.metrics import RoleSums, UpdateMetrics
from searchparty.learning.packed_model import PackedModel
from searchparty.learning.settings import LearnerSettings
from searchparty.learning.weights import MasterWeights


@dataclass
class _Work:
    """What one update counts on its way."""

    sums: RoleSums
    norms: list[float] = field(default_factory=list)
    tokens: int = 0
    passes: int = 0


class Learner:
    """Trains those parameters of `model` that require a gradient.

    Args:
        model: a causal language model of transformers, on its device, in the precision to compute with. It may be shared with
            a sampler that is idle while a method of the learner runs.
        objective: the cost of a token; PPO-clip if None.
        critic: trained beside the policy on the signals' `returns_T`.
    """

    def __init__(
        self, model: Any, settings: LearnerSettings, objective: Objective | None = None, critic: Critic | None = None
    ) -> None:
        self.model = model
        self.settings = settings
        self.objective = objective or PPOClip()
        self.critic = critic
        self.updates = 0
        """Finished updates."""
        self.optimizer_steps = 0
        self._packed = PackedModel(model, checkpointed_share=settings.checkpointed_share, compiled=settings.compiled)
        self._checked = False
        self.trained = {"policy": MasterWeights(model.named_parameters())}
        if critic is not None:
            self.trained["critic"] = MasterWeights(critic.named_parameters())
        rates = {"policy": settings.learning_rate, "critic": settings.critic_learning_rate}
        self.optimizer = torch.optim.AdamW(
            [{"params": list(part.masters.values()), "name": name, "peak": rates[name]} for name, part in self.trained.items()],
            betas=settings.betas,
            weight_decay=settings.weight_decay,
            fused=self._packed.device.type == "cuda",
        )

    def update(self, signals: Sequence[Signal]) -> UpdateMetrics:
        """One pass over the signals, in `minibatches` optimizer steps.

        Each minibatch's loss is the sum of weights times costs of its tokens, times the number of minibatches: on average a
        minibatch's gradient is then that of the whole update. Weights are not normalised anew in a minibatch.

        Sequences that cannot change anything are not computed: without critic and entropy bonus, those whose advantages are
        all 0, unless that is true of every one. What the metrics say of tokens is then said of the others.

        Raises:
            NothingToLearn: if no token has weight.
            NonFinite: naming the sequence; neither weights nor optimizer have seen its minibatch.
            UserError: if memory runs out, or if the model cannot be trained on packed sequences.
        """
        signals = [signal for signal in signals if np.any(signal.weights_T)]
        if not signals:
            raise NothingToLearn("no sequence of this update has a token with weight")
        if self.critic is None and self.objective.moved_by_advantages_alone:
            signals = [signal for signal in signals if np.any(signal.advantages_T)] or signals
        work = _Work(RoleSums([signal.role for signal in signals], self._packed.device))
        examples = self._examples(signals)
        parts = split_minibatches(len(examples), self.settings.minibatches, seed=self.settings.seed, step=self.updates)
        try:
            with self._running(examples, _with_weight):
                for number, part in enumerate(parts):
                    self._minibatch([examples[place] for place in part], len(parts), number == 0, work)
        finally:
            self._clear_gradients()
        self.updates += 1
        return UpdateMetrics(
            roles=work.sums.metrics(),
            optimizer_steps=len(parts),
            learning_rate=float(self.optimizer.param_groups[0]["lr"]),
            gradient_norm=float(np.mean(work.norms)),
            sequences=len(signals),
            tokens=work.tokens,
            passes=work.passes,
            fill=work.tokens / (work.passes * self.settings.tokens_per_pass),
        )

    def logprobs(self, sequences: Sequence[Packable]) -> list[FloatArray]:
        """Log-probabilities of the trainable tokens under the current weights, 0 elsewhere: one array per sequence."""
        return self._measure(sequences, _trainable)[0]

    def values(self, sequences: Sequence[Packable]) -> list[FloatArray]:
        """The critic's values before the trainable tokens, 0 elsewhere. Raises ValueError without a critic."""
        if self.critic is None:
            raise ValueError("this learner has no critic")
        return self._measure(sequences, _trainable)[1]

    def _running(self, sequences: Sequence[Item], select: Callable[[Item], BoolArray]) -> ExitStack:
        """The state in which the models read packed rows. The first time, two short sequences show whether they can."""
        advice = memory_advice(self.settings.tokens_per_pass, self.settings.checkpointed_share)
        if not self._checked:
            short = sorted((sequence for sequence in sequences if np.any(select(sequence))), key=lambda item: len(item.ids_T))[
                :2
            ]
            with advice:
                for row in pack(short, select, sum(len(sequence.ids_T) for sequence in short), self._packed.device):
                    self._packed.check(row)
            self._checked = bool(short)
        stack = ExitStack()
        stack.enter_context(memory_advice(self.settings.tokens_per_pass, self.settings.checkpointed_share))
        stack.enter_context(self._packed.active())
        if self.critic is not None and self.critic.model is not None:
            stack.enter_context(self.critic.model.active())
        return stack

    def _measure(
        self, sequences: Sequence[Item], select: Callable[[Item], BoolArray]
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        """Log-probabilities and values (0 without a critic) at the selected tokens, without gradient."""
        logprobs = [np.zeros(len(sequence.ids_T), np.float32) for sequence in sequences]
        values = [array.copy() for array in logprobs]
        rows = pack(sequences, select, self.settings.tokens_per_pass, self._packed.device)
        with self._running(sequences, select), torch.no_grad():
            for row in rows:
                hidden = self._packed.hidden(row)
                for place, array in zip(row.places, row.scatter(self._logprobs(row, hidden)[0]), strict=True):
                    logprobs[place] = array
                if self.critic is not None:
                    for place, array in zip(row.places, row.scatter(self.critic.values(row, hidden)), strict=True):
                        values[place] = array
        return logprobs, values

    def _examples(self, signals: list[Signal]) -> list[Example]:
        """The signals with the learner's own log-probabilities and values, if anything needs them."""
        recomputed = self.objective.compares and self.settings.old_logprobs == "recomputed"
        valued = self.critic is None or all(signal.values_T is not None or signal.returns_T is None for signal in signals)
        if not recomputed and valued:
            return [example_of(signal, None, None, self.settings) for signal in signals]
        measured = zip(signals, *self._measure(signals, _with_weight), strict=True)
        return [example_of(signal, logprobs, values, self.settings) for signal, logprobs, values in measured]

    def _minibatch(self, examples: list[Example], parts: int, is_first: bool, work: _Work) -> None:
        """The gradients of all rows, then one optimizer step."""
        for row in pack(examples, _with_weight, self.settings.tokens_per_pass, self._packed.device):
            hidden = self._packed.hidden(row)
            logprobs, entropies = self._logprobs(row, hidden)
            values = None if self.critic is None else self.critic.values(row, hidden)
            loss = row_loss(row, logprobs, entropies, values, self.objective, self.settings, work.sums)
            self._compare_with_sampler(row, logprobs.detach(), is_first, work.sums)
            (loss * parts).backward()  # type: ignore[no-untyped-call]
            work.tokens += len(row.ids_T)
            work.passes += 1
        limit = torch.inf if self.settings.gradient_clip is None else self.settings.gradient_clip
        norms = {
            name: float(torch.nn.utils.clip_grad_norm_(part.masters.values(), limit)) for name, part in self.trained.items()
        }
        if not all(np.isfinite(norm) for norm in norms.values()):
            raise NonFinite("gradient", [example.key for example in examples])
        work.norms.append(norms["policy"])
        if self.critic is not None and self.updates < self.settings.critic_warmup:
            self.trained["policy"].clear_gradients()  # the optimizer passes over what has no gradient
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * self.settings.schedule.share(self.optimizer_steps)
        self.optimizer.step()
        self.optimizer_steps += 1
        for part in self.trained.values():
            part.publish()
        self._clear_gradients()

    def _compare_with_sampler(self, row: PackedRow[Example], logprobs_N: torch.Tensor, is_first: bool, sums: RoleSums) -> None:
        """Measure the mismatch where the learner's log-probabilities are those of the weights that sampled."""
        if not self.objective.compares:
            return
        own = [example.learner_logprobs_T for example in row.sequences]
        if all(array is not None for array in own):
            logprobs_N = row.gather(lambda example: np.asarray(example.learner_logprobs_T))
        elif not is_first:
            return
        sums.add_mismatch(role_indices(row, sums), row.gather(lambda example: example.sampler_logprobs_T), logprobs_N)

    def _logprobs(self, row: PackedRow[Any], hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        temperatures = [self.settings.temperature(sequence.role) for sequence in row.sequences]
        temperature_N = None
        if any(temperature != 1 for temperature in temperatures):
            temperature_N = torch.tensor(temperatures, device=hidden.device)[row.sequence_N]
        return token_logprobs(hidden, self._packed.head.weight, row.target_N, temperature_N, compiled=self.settings.compiled)

    def _clear_gradients(self) -> None:
        for part in self.trained.values():
            part.clear_gradients()


def _trainable(sequence: Packable) -> BoolArray:
    return sequence.trainable_T


def _with_weight(sequence: Signal | Example) -> BoolArray:
    return np.asarray(sequence.weights_T != 0)
