"""A frozen model, teacher or reference, that says how likely it would have been to sample the student's own tokens.

It reads the ids that the student's engine was given and returned, nothing else (contract 1). Knows sequences and models;
nothing of what its numbers are used for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from searchparty.config.recipe import ModelSpec
from searchparty.credit.sequences import TokenSequence
from searchparty.credit.types import SequenceKey
from searchparty.errors import Failure, UserError
from searchparty.learning.scoring import PackedScorer
from searchparty.models.loading import load_model, load_tokenizer, model_folder
from searchparty.models.types import Engine, Tokenizer
from searchparty.training.records import Scored

PROBES = (
    "The quick brown fox; 3.14 and 2026! <search>who?</search>\n\n  Ünïcödé 漢字 🙂",
    "<answer>Marie Curie</answer> {x: [1, 22, 333]}\t\r\n",
)
"""Texts that two tokenizers with one id map must also cut alike."""


class Teacher:
    """Scores sequences; `close` frees it."""

    def __init__(self, scorer: PackedScorer | None, engine: Engine | None, identity: str) -> None:
        self._scorer = scorer
        self._engine = engine
        self.identity = identity

    async def score(self, sequences: Sequence[TokenSequence]) -> tuple[dict[SequenceKey, Scored], list[str]]:
        """Log-probabilities at temperature 1 of every sequence's trainable tokens, and a line for each that could not be had.

        Raises:
            ValueError: the teacher answered with another number of tokens than it was given.
        """
        if self._scorer is not None:
            arrays = self._scorer.logprobs(sequences)
            scored = zip(sequences, arrays, strict=True)
            return {one.key: Scored(one.ids_T.copy(), logprobs_T) for one, logprobs_T in scored}, []
        assert self._engine is not None
        given = [one.ids_T.tolist() for one in sequences]
        replies = await self._engine.score(given)
        found, failures = {}, []
        for one, ids, reply in zip(sequences, given, replies, strict=True):
            if isinstance(reply, Failure):
                failures.append(f"{one.key.question_key}, sample {one.key.sample}, {one.key.agent}: {reply.detail}")
                continue
            if len(reply) != len(ids):
                raise ValueError(f"{one.key}: the teacher scored {len(reply)} tokens and was given {len(ids)}")
            logprobs_T = np.where(one.trainable_T, np.asarray(reply, np.float32), np.float32(0))
            found[one.key] = Scored(np.asarray(ids, np.int32), logprobs_T)
        return found, failures

    async def close(self) -> None:
        """Free the model."""
        self._scorer = None
        if self._engine is not None:
            await self._engine.close()


def open_teacher(spec: ModelSpec, student: Tokenizer, tokens_per_pass: int, part: str = "teacher") -> Teacher:
    """Load a teacher for a student.

    Args:
        student: the student's tokenizer; the teacher must have the same id for the same token.
        tokens_per_pass: most tokens of one forward pass.
        part: the model's key in the recipe, for messages.

    Raises:
        UserError: its tokenizer is another, or it cannot score.
    """
    if spec.spec.startswith(("http://", "https://")):
        check_same_tokenizer(student, load_tokenizer(spec.spec, spec.tokenizer), spec.spec, part)
        model = load_model(**spec.model_dump())
        if not model.engine.exchanges_ids:
            raise UserError(f"{part} {spec.spec}: exchanges text, so it cannot score token ids; serve it with vLLM")
        return Teacher(None, model.engine, model.identity)
    check_same_tokenizer(student, load_tokenizer(spec.spec), spec.spec, part)
    from searchparty.models.huggingface import load_weights
    from searchparty.models.model_folders import model_identity

    folder = model_folder(spec.spec)
    weights = load_weights(folder, spec.device, spec.dtype)
    return Teacher(PackedScorer(weights, tokens_per_pass), None, f"{spec.spec} {model_identity(folder)}")


def check_same_tokenizer(student: Tokenizer, teacher: Tokenizer | None, name: str, part: str = "teacher") -> None:
    """Raises UserError, naming the first difference, unless both map the same tokens to the same ids and cut text alike.

    Args:
        name: of the teacher's model.
        part: its key in the recipe, for the message.
    """
    if teacher is None:
        raise UserError(f"{part} {name}: its tokenizer is not known; give the folder or name under {part}.tokenizer")
    ours, theirs = student.vocabulary(), teacher.vocabulary()
    if ours != theirs:
        differing = sorted(token for token in ours.keys() | theirs.keys() if ours.get(token) != theirs.get(token))
        token = differing[0]
        raise UserError(
            f"{part} {name}: has another tokenizer than the policy: {len(differing)} tokens differ, the first is {token!r} "
            f"(policy: {ours.get(token)}, teacher: {theirs.get(token)}); choose a model of the policy's family"
        )
    for probe in PROBES:
        if student.encode(probe) != teacher.encode(probe):
            raise UserError(
                f"{part} {name}: has the policy's ids, but cuts text otherwise ({probe[:30]!r}); choose a model with the "
                "same tokenizer"
            )
