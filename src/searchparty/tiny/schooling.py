"""The tiny policy's course: first it reads whole episodes, easy ones before hard ones, then it imitates their actions alone.

Reading (every token of an episode is predicted) teaches the language from seven times as many tokens as there are actions;
after it, imitation (`learning.sft` on action tokens only) is a short way. Knows signals and a learner; nothing of worlds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from searchparty.credit.types import Signal
from searchparty.learning.learner import Learner
from searchparty.learning.losses import CrossEntropy
from searchparty.learning.settings import LearnerSettings, Schedule
from searchparty.learning.sft import fit

SEQUENCES_PER_STEP = 32
STEPS_PER_REPORT = 50
LEARNING_RATE = 3e-3
WARMUP_STEPS = 40

OnReport = Callable[[int, int, float], None]
"""Told the steps done, all steps, and the mean loss of the last ones in nats a token."""


def with_all_tokens(signal: Signal) -> Signal:
    """The same sequence, to be read: every token but the first is trained."""
    return dataclasses.replace(signal, trainable_T=np.arange(len(signal.ids_T)) > 0)


def teach(model: Any, course: Sequence[Sequence[Signal]], seed: int, on_report: OnReport | None = None) -> list[float]:
    """Train on the parts of the course in their order, each sequence once; the learning rate falls to nothing at the end.

    Returns:
        The mean loss before each step, over stretches of `STEPS_PER_REPORT` steps: on reading and imitation as the course has
        them, in nats a token.
    """
    stretches = [stretch for number, part in enumerate(course) for stretch in _stretches(part, (seed, number))]
    steps = sum(-(-len(stretch) // SEQUENCES_PER_STEP) for stretch in stretches)
    settings = LearnerSettings(
        learning_rate=LEARNING_RATE,
        schedule=Schedule("linear", min(WARMUP_STEPS, steps // 4), steps, final_share=0.02),
        weight_decay=0.01,
        betas=(0.9, 0.98),
        minibatches=1,
        tokens_per_pass=4096,
        checkpointed_share=0.0,
    )
    learner = Learner(model.train(), settings, CrossEntropy())
    losses = []
    for number, stretch in enumerate(stretches):
        (report,) = fit(learner, stretch, epochs=1, sequences_per_step=SEQUENCES_PER_STEP, seed=seed + number)
        losses.append(report.train_loss)
        if on_report is not None:
            on_report(learner.optimizer_steps, steps, report.train_loss)
    model.eval()
    return losses


def _stretches(part: Sequence[Signal], seed: Sequence[int]) -> list[list[Signal]]:
    """The sequences in random order, cut into stretches between two reports."""
    order = np.random.default_rng(seed).permutation(len(part))
    size = SEQUENCES_PER_STEP * STEPS_PER_REPORT
    return [[part[place] for place in order[start : start + size]] for start in range(0, len(order), size)]
