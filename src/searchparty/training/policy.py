"""The policy while it is trained: one set of weights that a sampler plays with and a learner changes, by turns.

Knows how both are opened and kept in step; nothing of teams or credit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchparty.config.recipe import ModelSpec
from searchparty.errors import UserError
from searchparty.learning.critic import Critic
from searchparty.learning.export import export_model
from searchparty.learning.learner import Learner
from searchparty.learning.learner_state import load_learner, save_learner
from searchparty.learning.losses import CrossEntropy, PPOClip
from searchparty.learning.settings import LearnerSettings, Schedule
from searchparty.models.batch import BatchLimits
from searchparty.models.chat import ChatFormat
from searchparty.models.huggingface import load_chat, load_weights
from searchparty.models.loading import Model, model_folder
from searchparty.models.model_folders import check_model_folder, model_identity
from searchparty.models.transformers_engine import TransformersEngine
from searchparty.models.types import Engine
from searchparty.training.recipe import CriticSpec, LearnerSpec, SamplerSpec

MODEL = "model"
"""The model's folder in a checkpoint."""


@dataclass
class Policy:
    """Open until `close`."""

    model: Model
    """What plays: its engine samples from the current weights once `publish` was called after a change."""
    learner: Learner
    folder: Path
    """The model that training started from."""
    weights: Any
    """The transformers module that the learner changes."""

    async def publish(self) -> None:
        """Let the sampler play with the weights as they are now. No request may be under way."""
        if isinstance(self.model.engine, TransformersEngine):
            await self.model.engine.weights_changed()
        else:
            refresh: Any = getattr(self.model.engine, "refresh")  # noqa: B009
            from searchparty.learning.lora import merged_weights

            await refresh(merged_weights(self.weights))

    def save(self, folder: Path) -> None:
        """Write the learner's state and, in a folder of its own, the model as any program can load it.

        Apart, because some programs (vLLM) load every safetensors file that they find in a model's folder.
        """
        save_learner(self.learner, folder)
        (folder / MODEL).mkdir()
        export_model(self.weights, folder / MODEL, self.folder)

    async def load(self, folder: Path) -> None:
        """Go back to a state that `save` wrote. Raises UserError if it is of another model."""
        load_learner(self.learner, folder)
        await self.publish()

    async def close(self) -> None:
        """Stop the sampler."""
        await self.model.engine.close()


def open_policy(
    spec: ModelSpec,
    learning: LearnerSpec,
    *,
    seed: int,
    total_steps: int,
    temperatures: Mapping[str, float],
    sampler: SamplerSpec | None = None,
    imitates: bool = False,
    minibatches: int | None = None,
    critic: CriticSpec | None = None,
) -> Policy:
    """Load the model that `spec` names, to be trained.

    Args:
        seed: of the order of minibatches and of LoRA's first weights.
        total_steps: optimizer steps of the stage, for the learning rate's course.
        temperatures: role to sampling temperature.
        sampler: None for a policy that does not play.
        imitates: whether the objective is imitation instead of PPO-clip.
        minibatches: in place of the recipe's.
        critic: what values the policy's tokens, trained beside it; None for objectives that need no values.

    Raises:
        UserError: it is no model of this process, or cannot be loaded.
    """
    if spec.spec.startswith(("scripted:", "http://", "https://")):
        raise UserError(f"policy {spec.spec}: cannot be trained, only a model that runs in this process; give a model folder")
    folder = check_model_folder(model_folder(spec.spec))
    chat = load_chat(folder, spec.spec)
    weights = load_weights(folder, spec.device, spec.dtype)
    if learning.lora is not None:
        from searchparty.learning.lora import LoRA, add_lora

        add_lora(weights, LoRA(**learning.lora.model_dump()), seed)
    objective = CrossEntropy() if imitates else PPOClip(learning.clip_low, learning.clip_high, learning.entropy)
    settings = _settings(learning, seed, total_steps, temperatures, minibatches, critic)
    learner = Learner(weights, settings, objective, None if critic is None else _critic(critic, learning, weights, spec))
    engine, context_tokens = _sampler(sampler, weights, chat, spec)
    identity = f"{spec.spec} {model_identity(folder)} {str(weights.dtype).removeprefix('torch.')}, in training"
    return Policy(Model(spec.spec, identity, engine, chat, context_tokens), learner, folder, weights)


def _critic(critic: CriticSpec, learning: LearnerSpec, policy: Any, policy_spec: ModelSpec) -> Critic:
    """A head on the policy's trunk, or a model of its own on the policy's device and in its precision."""
    if critic.model is None:
        return Critic.on_trunk(policy)
    folder = check_model_folder(model_folder(critic.model.spec))
    weights = load_weights(folder, critic.model.device or policy_spec.device, critic.model.dtype or policy_spec.dtype)
    return Critic.separate(weights, checkpointed_share=learning.checkpointed_share, compiled=learning.compiled)


def _settings(
    learning: LearnerSpec,
    seed: int,
    total_steps: int,
    temperatures: Mapping[str, float],
    minibatches: int | None,
    critic: CriticSpec | None,
) -> LearnerSettings:
    values = CriticSpec() if critic is None else critic
    course = learning.schedule
    if course.kind != "constant" and total_steps <= course.warmup_steps:
        raise UserError(
            f"learner.schedule.warmup_steps is {course.warmup_steps}, but the stage has {total_steps} optimizer steps; lower it"
        )
    schedule = Schedule(course.kind, course.warmup_steps, total_steps, course.final_share)
    return LearnerSettings(
        learning_rate=learning.learning_rate,
        schedule=schedule,
        weight_decay=learning.weight_decay,
        betas=learning.betas,
        gradient_clip=learning.gradient_clip,
        minibatches=minibatches or learning.minibatches,
        tokens_per_pass=learning.tokens_per_pass,
        temperatures=dict(temperatures),
        old_logprobs=learning.old_logprobs,
        importance_cap=learning.importance_cap,
        value_coefficient=values.coefficient,
        value_clip=values.clip,
        critic_learning_rate=values.learning_rate,
        critic_warmup=values.warmup_steps,
        checkpointed_share=learning.checkpointed_share,
        compiled=learning.compiled,
        seed=seed,
    )


def _sampler(sampler: SamplerSpec | None, weights: Any, chat: ChatFormat, spec: ModelSpec) -> tuple[Engine, int]:
    """What plays, and the most tokens that one of its histories may have."""
    name = "transformers" if sampler is None else sampler.name
    if name == "auto":
        name = "vllm" if weights.device.type == "cuda" and _has_vllm() else "transformers"
    if sampler is not None and name == "vllm":
        from searchparty.models.vllm_loading import load_vllm

        served = load_vllm(
            spec.spec,
            memory_share=sampler.memory_share,
            context_tokens=sampler.context_tokens,
            dtype=str(weights.dtype).removeprefix("torch."),
        )
        assert served.context_tokens is not None
        return served.engine, served.context_tokens
    context_tokens = int(weights.config.max_position_embeddings)
    if sampler is not None and sampler.context_tokens is not None:
        context_tokens = min(context_tokens, sampler.context_tokens)
    limits = BatchLimits(spec.max_batch_tokens)
    engine = TransformersEngine(weights, chat.tokenizer, chat.end_ids, context_tokens=context_tokens, limits=limits)
    return engine, context_tokens


def _has_vllm() -> bool:
    from importlib.util import find_spec

    return find_spec("vllm") is not None
