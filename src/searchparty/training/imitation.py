"""An `sft` stage: an expert plays or has played, the policy imitates what it did, token by token, over the policy's own ids.

Knows experts, teams and imitation; nothing of rewards but whether an answer was right.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from searchparty.config.recipe import ModelSpec
from searchparty.credit.types import Signal
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import score_episode
from searchparty.evaluation.staging import set_stage
from searchparty.learning.batches import split_minibatches
from searchparty.learning.checkpoints import CheckpointFolder
from searchparty.learning.faults import LearningFault
from searchparty.learning.metrics import UpdateMetrics
from searchparty.learning.sft import imitation_signals, weigh
from searchparty.models.chat import ChatFormat
from searchparty.models.huggingface import load_chat
from searchparty.models.loading import Model, load_model, load_tokenizer, model_folder
from searchparty.models.scripted import ScriptedEngine
from searchparty.questions.types import Question
from searchparty.training.card_memory import begin_memory, memory_numbers
from searchparty.training.listening import TrainingStopped, TrainListener
from searchparty.training.order import derived_seed
from searchparty.training.playing import WithPolicy, load_stage_questions, team_recipe
from searchparty.training.policy import MODEL, Policy, open_policy
from searchparty.training.recipe import SFTStage
from searchparty.training.recorded_episodes import check_ids, recorded_episodes
from searchparty.training.rollout import roll_out
from searchparty.training.run_directory import MetricsLog, StageDirectory
from searchparty.training.teacher import check_same_tokenizer

STEPS_PER_LINE = 20
"""Optimizer steps summed up in one line of the metrics."""


async def imitate(
    name: str, spec: SFTStage, seed: int, place: StageDirectory, metrics: MetricsLog, listener: TrainListener
) -> dict[str, Any]:
    """Carry out the stage, from its latest checkpoint if there is one. Returns which checkpoint is the stage's model.

    The expert's episodes are played again by a resumed run: they are fixed by the seed.

    Raises:
        UserError: the expert has another tokenizer, or no episode is left to learn from.
        TrainingStopped: the numbers are no longer finite.
    """
    signals = await _expert_signals(name, spec, seed, listener)
    parts = _steps(len(signals), spec, seed)
    policy = open_policy(
        spec.policy,
        spec.learner,
        seed=derived_seed(seed, "learner") % 2**32,
        total_steps=len(parts),
        temperatures={},
        imitates=True,
        minibatches=1,
    )
    try:
        checkpoints = CheckpointFolder(place.checkpoints, keep_last=spec.checkpoint.keep)
        found = checkpoints.latest()
        done = 0
        if found.checkpoint is not None:
            done = found.checkpoint.step
            await policy.load(found.checkpoint.folder)
        metrics.keep(lambda line: line["stage"] != name or (done > 0 and line["step"] <= done))
        listener.on_stage(name, "sft", len(parts), done)
        losses: list[float] = []
        begin_memory(policy.weights.device)
        started = time.perf_counter()
        for step in range(done + 1, len(parts) + 1):
            update = _one_step(policy, [signals[index] for index in parts[step - 1]], f"stage {name}, step {step}", place)
            losses.append(sum(role.loss for role in update.roles.values()))
            listener.on_work("imitation", step, len(parts))
            is_due = step % spec.checkpoint.every == 0 or step == len(parts)
            if step % STEPS_PER_LINE == 0 or is_due:
                line = {
                    "stage": name,
                    "step": step,
                    "kind": "step",
                    "loss": float(np.mean(losses)),
                    "gradient_norm": update.gradient_norm,
                    "learning_rate": update.learning_rate,
                    "seconds": {"total": round(time.perf_counter() - started, 4)},
                    **memory_numbers(policy.weights.device),
                }
                metrics.append(line)
                listener.on_step(line)
                if is_due:
                    checkpoints.save(step, policy.save)
                started, losses = time.perf_counter(), []
        last = checkpoints.latest().checkpoint
        assert last is not None
        return {"model": f"stages/{name}/checkpoints/{last.folder.name}/{MODEL}", "step": last.step, "score": None}
    finally:
        await policy.close()


def _one_step(policy: Policy, signals: list[Signal], where: str, place: StageDirectory) -> UpdateMetrics:
    weigh(signals, "token-mean")
    try:
        return policy.learner.update(signals)
    except LearningFault as fault:
        raise TrainingStopped(f"{where}: {fault}; the last good state is in {place.checkpoints}") from None


def _steps(sequences: int, spec: SFTStage, seed: int) -> list[Any]:
    """Indices of the sequences of every optimizer step, epoch after epoch."""
    per_epoch = -(-sequences // spec.sequences_per_step)
    steps = []
    for epoch in range(spec.epochs):
        parts = split_minibatches(sequences, per_epoch, seed=seed % 2**32, step=epoch)
        order = np.random.default_rng([seed % 2**32, epoch]).permutation(len(parts))
        steps += [parts[place] for place in order]
    return steps


async def _expert_signals(name: str, spec: SFTStage, seed: int, listener: TrainListener) -> list[Signal]:
    """What is worth imitating of the episodes that the expert plays, or that were recorded."""
    questions = load_stage_questions(spec)
    golden = {question.key: question.golden_answers for question in questions}
    scorer = scorer_named(spec.scorer)
    chat = load_chat(model_folder(spec.policy.spec), spec.policy.spec)
    if spec.expert is not None:
        episodes = await _played(spec, spec.expert, chat, questions, seed, listener)
    else:
        assert spec.episodes is not None
        episodes = [one for one in recorded_episodes(spec.episodes) if one.question_key in golden]
        check_ids(episodes, spec.imitate_roles, chat.tokenizer, spec.episodes)
    signals: list[Signal] = []
    left_out = Counter[str]()
    for episode in episodes:
        scored = score_episode(episode, golden[episode.question_key], scorer)
        if episode.stop_reason.is_service_failure:
            left_out["failed services"] += 1
        elif spec.only_right and not scored.exact_match:
            left_out["wrong answers"] += 1
        else:
            signals += imitation_signals([episode], roles=spec.imitate_roles)
    if left_out:
        listener.on_message(f"stage {name}: left out: " + ", ".join(f"{why} {count}" for why, count in left_out.items()))
    if not signals:
        source = "of the expert" if spec.expert is not None else f"in {spec.episodes} over these questions"
        raise UserError(f"no episode {source} is left to imitate; look at only_right, imitate_roles and questions")
    return signals


async def _played(
    spec: SFTStage, named: ModelSpec, chat: ChatFormat, questions: list[Question], seed: int, listener: TrainListener
) -> list[Episode]:
    """Let the expert play every team."""
    expert = _expert(named, chat)
    models = WithPolicy(expert)
    episodes: list[Episode] = []
    try:
        for number, team in enumerate(spec.teams):
            stage = set_stage(team_recipe(spec, team, seed), models)
            try:
                played = await roll_out(
                    stage,
                    questions,
                    spec.samples,
                    seed=derived_seed(seed, "expert", number),
                    concurrency=spec.concurrency,
                    on_episode=lambda done, total: listener.on_work("expert plays", done, total),
                )
            finally:
                await stage.close()
            episodes += played.episodes
    finally:
        await models.close()
        await expert.engine.close()
    return episodes


def _expert(spec: ModelSpec, chat: ChatFormat) -> Model:
    """The expert, over the policy's tokens: a script speaks with them, a model must have them."""
    if not spec.spec.startswith("scripted:"):
        check_same_tokenizer(chat.tokenizer, load_tokenizer(spec.spec, spec.tokenizer), spec.spec, "expert")
        return load_model(**spec.model_dump())
    scripted = load_model(spec.spec)
    assert isinstance(scripted.engine, ScriptedEngine)
    end_token = next(text for text, token_id in chat.tokenizer.control_tokens.items() if token_id == chat.end_ids[0])
    engine = ScriptedEngine(scripted.engine.script, chat.tokenizer, end_token=end_token)
    return Model(scripted.name, scripted.identity, engine, chat, None)
