"""Imitation of recorded episodes: cross entropy on their action tokens.

Knows episodes and signals; what is worth imitating is decided by the caller's predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from searchparty.credit.reductions import ReductionName, token_weights
from searchparty.credit.sequences import agent_sequences, last_turn_taken
from searchparty.credit.types import Signal
from searchparty.episodes.types import Episode, Span, SpanKind, Transcript
from searchparty.learning.batches import split_minibatches
from searchparty.learning.faults import NothingToLearn
from searchparty.learning.learner import Learner

Keep = Callable[[Episode, Transcript, Span], bool]
"""Whether an action span is imitated."""


@dataclass(frozen=True)
class EpochReport:
    """One pass over the training sequences."""

    epoch: int
    """From 1."""
    train_loss: float
    """Mean over the epoch's steps of the loss before each step, in nats."""
    dev_loss: float | None
    """Cross entropy after the epoch, weighted as in training; None without development sequences."""
    optimizer_steps: int


def imitation_signals(
    episodes: Iterable[Episode], keep: Keep | None = None, roles: Collection[str] | None = None
) -> list[Signal]:
    """Sequences of the episodes' action tokens that pass `keep` (all, if None); each span is trained in exactly one sequence.

    Weights are 0 until `weigh` sets them. With `roles`, agents of other roles are passed over, token-exact or not.

    Raises:
        UserError: for an agent that is not token-exact.
    """
    return [
        signal
        for episode in episodes
        for transcript in episode.agents
        if roles is None or transcript.role in roles
        for signal in _imitated(episode, transcript, keep or _everything)
    ]


def weigh(signals: Sequence[Signal], reduction: ReductionName) -> None:
    """Set the signals' weights, in place, so that together they sum to 1."""
    weights = token_weights(
        reduction,
        "all",
        tokens=[int(signal.trainable_T.sum()) for signal in signals],
        episodes=[(signal.key.question_key, signal.key.sample) for signal in signals],
        roles=[signal.role for signal in signals],
    )
    for signal, weight in zip(signals, weights, strict=True):
        signal.weights_T = np.where(signal.trainable_T, weight, 0).astype(np.float32)


def fit(
    learner: Learner,
    train: Sequence[Signal],
    dev: Sequence[Signal] = (),
    *,
    epochs: int,
    sequences_per_step: int,
    reduction: ReductionName = "token-mean",
    seed: int = 0,
    on_epoch: Callable[[EpochReport], None] | None = None,
) -> list[EpochReport]:
    """Train `epochs` passes in steps of about `sequences_per_step` sequences, in an order given by (seed, epoch).

    Args:
        learner: with the objective `CrossEntropy` and the setting `minibatches=1`: each step here is one update.
        on_epoch: told after each epoch; an exception raised in it ends the training.

    Raises:
        NothingToLearn: if there is no training sequence. Otherwise as `Learner.update`.
    """
    if not train:
        raise NothingToLearn("there is no sequence to imitate")
    reports = []
    for epoch in range(1, epochs + 1):
        losses = []
        steps = -(-len(train) // sequences_per_step)
        parts = split_minibatches(len(train), steps, seed=seed, step=epoch)
        for place in np.random.default_rng([seed, epoch]).permutation(len(parts)):
            step = [train[index] for index in parts[place]]
            weigh(step, reduction)
            losses.append(sum(role.loss for role in learner.update(step).roles.values()))
        report = EpochReport(epoch, float(np.mean(losses)), cross_entropy(learner, dev, reduction) if dev else None, len(parts))
        reports.append(report)
        if on_epoch is not None:
            on_epoch(report)
    return reports


def cross_entropy(learner: Learner, signals: Sequence[Signal], reduction: ReductionName = "token-mean") -> float:
    """Weighted mean of `-log π` over the signals' trainable tokens, in nats."""
    weigh(signals, reduction)
    logprobs = learner.logprobs(signals)
    return -sum(float(np.dot(signal.weights_T, own)) for signal, own in zip(signals, logprobs, strict=True))


def _everything(episode: Episode, transcript: Transcript, span: Span) -> bool:
    return True


def _imitated(episode: Episode, transcript: Transcript, keep: Keep) -> Iterator[Signal]:
    candidates = last_turn_taken(transcript)
    history = transcript.spans[: _place(transcript.spans, candidates[0])] if candidates else []
    sequences = agent_sequences(episode, transcript, logprobs_required=False)
    for sequence, candidate in zip(sequences, candidates, strict=True):
        kept_T = np.concatenate(
            [
                np.full(len(span.ids or ()), span.kind is SpanKind.ACTION and keep(episode, transcript, span))
                for span in [*history, candidate]
            ]
        )
        if np.any(sequence.trainable_T & kept_T):
            nothing = np.zeros(len(sequence.ids_T), np.float32)
            yield Signal(
                key=sequence.key,
                role=sequence.role,
                ids_T=sequence.ids_T,
                trainable_T=sequence.trainable_T & kept_T,
                old_logprobs_T=nothing,
                advantages_T=nothing,
                weights_T=nothing,
            )


def _place(spans: Sequence[Span], span: Span) -> int:
    return next(place for place, other in enumerate(spans) if other is span)
