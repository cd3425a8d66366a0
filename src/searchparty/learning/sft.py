"""Imitation of recorded episodes: cross entropy on their action tokens.

Knows episodes and signals; what is worth imitating is decided by the caller's predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from searchparty.credit.types import SequenceKey, Signal
from searchparty.episodes.types import Episode, Span, SpanKind, Transcript
from searchparty.learning.batches import split_minibatches
from searchparty.learning.learner import Learner

Keep = Callable[[Episode, Transcript, Span], bool]
"""Whether an action span is imitated."""

Reduction = Literal["token", "sequence", "episode"]
"""What has one vote in a step: every token, every sequence (the mean of its tokens), or every episode (the mean of its tokens,
all its sequences together)."""


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


def imitation_signals(episodes: Iterable[Episode], keep: Keep | None = None) -> list[Signal]:
    """Sequences of the episodes' action tokens that pass `keep` (all, if None); each span is trained in exactly one sequence.

    Of a last call with several candidates each kept candidate gives a sequence of its own; earlier actions are trained in the
    first of them. Weights are 1 at trainable tokens and are to be set by `weigh`.

    Raises:
        ValueError: for an episode whose transcripts have no token ids.
    """
    signals = []
    for episode in episodes:
        for transcript in episode.agents:
            signals += _transcript_signals(episode, transcript, keep or _everything)
    return signals


def weigh(signals: Sequence[Signal], reduction: Reduction) -> None:
    """Set the signals' weights, in place, so that together they sum to 1 and each vote is equal."""
    votes: dict[object, int] = {}
    for place, signal in enumerate(signals):
        vote = _vote(signal, place, reduction)
        votes[vote] = votes.get(vote, 0) + int(signal.trainable_T.sum())
    total = sum(votes.values())
    for place, signal in enumerate(signals):
        tokens = votes[_vote(signal, place, reduction)]
        share = 1 / total if reduction == "token" else 1 / (len(votes) * tokens)
        signal.weights_T = np.where(signal.trainable_T, share, 0).astype(np.float32)


def fit(
    learner: Learner,
    train: Sequence[Signal],
    dev: Sequence[Signal] = (),
    *,
    epochs: int,
    sequences_per_step: int,
    reduction: Reduction = "token",
    seed: int = 0,
    on_epoch: Callable[[EpochReport], None] | None = None,
) -> list[EpochReport]:
    """Train `epochs` passes in steps of about `sequences_per_step` sequences, in an order given by (seed, epoch).

    Args:
        learner: with the objective `CrossEntropy` and the setting `minibatches=1`: each step here is one update.
        on_epoch: told after each epoch; an exception raised in it ends the training.
    """
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


def cross_entropy(learner: Learner, signals: Sequence[Signal], reduction: Reduction = "token") -> float:
    """Weighted mean of `-log π` over the signals' trainable tokens, in nats."""
    weigh(signals, reduction)
    logprobs = learner.logprobs(signals)
    return -sum(float(np.dot(signal.weights_T, own)) for signal, own in zip(signals, logprobs, strict=True))


def _everything(episode: Episode, transcript: Transcript, span: Span) -> bool:
    return True


def _vote(signal: Signal, place: int, reduction: Reduction) -> object:
    if reduction == "episode":
        return signal.key.question_key, signal.key.sample
    return place


def _transcript_signals(episode: Episode, transcript: Transcript, keep: Keep) -> list[Signal]:
    last = transcript.last_turn()
    history = [span for span in transcript.spans if not any(span is alternative for alternative in last)]
    signals: list[Signal] = []
    kept_history = [span for span in history if span.kind is SpanKind.ACTION and keep(episode, transcript, span)]
    kept_last = [span for span in last if keep(episode, transcript, span)]
    for candidate in kept_last or (last[:1] if kept_history else []):
        trained = [candidate] if kept_last else []
        if not signals:
            trained += kept_history
        signals.append(_signal(episode, transcript, [*history, candidate], trained))
    return signals


def _signal(episode: Episode, transcript: Transcript, spans: Sequence[Span], trained: Sequence[Span]) -> Signal:
    ids: list[int] = []
    trainable: list[bool] = []
    for span in spans:
        if span.ids is None:
            raise ValueError(
                f"episode {episode.question_key} sample {episode.sample}: {transcript.agent} has text without token ids"
            )
        ids += span.ids
        trainable += [any(span is chosen for chosen in trained)] * len(span.ids)
    zeros = np.zeros(len(ids), np.float32)
    mask = np.array(trainable, np.bool_)
    return Signal(
        key=SequenceKey(episode.question_key, episode.sample, transcript.agent, spans[-1].candidate or 0),
        role=transcript.role,
        ids_T=np.array(ids, np.int32),
        trainable_T=mask,
        old_logprobs_T=zeros,
        advantages_T=zeros.copy(),
        weights_T=mask.astype(np.float32),
    )
