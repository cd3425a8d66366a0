"""Prompted Critic: an LLM reads each report and says how good it is, from 0 to 10.

The score covers the whole of the agent's history alike, which is what distinguishes this comparison from token-level
distillation. Knows prompts and a model; what the score is used for is decided by credit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from searchparty.credit.findings import Finding, FindingKind
from searchparty.credit.gathering import says_something
from searchparty.credit.types import SequenceKey
from searchparty.episodes.types import AgentEnd, Episode, SpanKind, Transcript
from searchparty.errors import Failure
from searchparty.models.loading import Model, load_model
from searchparty.models.types import GenerateRequest, Message, Sampling
from searchparty.teams.prompts import Prompt, load_prompt
from searchparty.training.order import derived_seed
from searchparty.training.recipe import JudgeSpec

BEST = 10
_SCORE = re.compile(r"<score>\s*(\d{1,2}(?:\.\d+)?)\s*</score>")
TAGS = ("score", "think")


@dataclass(frozen=True)
class Judgement:
    """What a judge said of the agents of a batch."""

    scores: dict[SequenceKey, float]
    """From 0 to 1."""
    failures: list[str]
    """A line for each report that got no usable score; it counts as 0."""

    def findings(self) -> list[Finding]:
        """Whether the judge was silent, which must not pass for bad reports (contract 9)."""
        if not self.failures:
            return []
        silent = len(self.failures) == len(self.scores)
        detail = (
            f"the judge gave {len(self.failures)} of {len(self.scores)} reports no usable score, so they count as 0: "
            f"{self.failures[0]}"
        )
        return [Finding(FindingKind.NOTHING_SCORED if silent else FindingKind.PARTLY_SCORED, None, detail)]


class Judge:
    """An open judge; `close` frees its model."""

    def __init__(self, spec: JudgeSpec, model: Model, prompt: Prompt) -> None:
        self._spec = spec
        self._model = model
        self._prompt = prompt

    async def score(self, episodes: Sequence[Episode], seed: int) -> Judgement:
        """Judge every finished agent of the judged roles. Equal reports of equal tasks are judged with equal seeds."""
        asked: list[tuple[SequenceKey, GenerateRequest]] = []
        for episode in episodes:
            if says_something(episode):
                for transcript in episode.agents:
                    if transcript.role in self._spec.roles and transcript.end is AgentEnd.FINISHED:
                        key = SequenceKey(episode.question_key, episode.sample, transcript.agent, 0)
                        asked.append((key, self._request(episode, transcript, seed)))
        replies = await self._model.engine.generate([request for _, request in asked]) if asked else []
        scores, failures = {}, []
        for (key, _), reply in zip(asked, replies, strict=True):
            text = None if isinstance(reply, Failure) else reply.candidates[0].text
            score = None if text is None else read_score(text)
            scores[key] = 0.0 if score is None else score
            if score is None:
                why = reply.detail if isinstance(reply, Failure) else f"no <score> from 0 to {BEST} in {text!r:.80}"
                failures.append(f"{key.question_key}, sample {key.sample}, {key.agent}: {why}")
        return Judgement(scores, failures)

    def _request(self, episode: Episode, transcript: Transcript, seed: int) -> GenerateRequest:
        told = [span.text for span in transcript.spans if span.kind is SpanKind.OBSERVATION]
        report = next((span.text for span in reversed(transcript.spans) if span.kind is SpanKind.ACTION), "")
        values = {"question": episode.question, "task": told[0] if told else "", "report": report}
        content = self._prompt.render("report", values, TAGS)
        messages = [Message("system", self._prompt.system)] if self._prompt.system else []
        messages.append(Message("user", content))
        chat = self._model.chat
        ids = None
        if chat is not None and self._model.engine.exchanges_ids:
            ids = [*chat.open(self._prompt.system, ()), *chat.user(content), *chat.begin_action()]
        sampling = Sampling(**self._spec.sampling.model_dump())
        return GenerateRequest(tuple(messages), ids, sampling, derived_seed(seed, "judge", content), 1, ("</score>",), "judge")

    async def close(self) -> None:
        """Free the model."""
        await self._model.engine.close()


def open_judge(spec: JudgeSpec) -> Judge:
    """Load the judge's prompt and model. Raises UserError if either does not fit."""
    return Judge(spec, load_model(**spec.model.model_dump()), judge_prompt(spec.prompt))


def judge_prompt(path: Path | None) -> Prompt:
    """The judge's prompt file, or the built-in one. Raises UserError if it lacks the turn `report`."""
    if path is None:
        with resources.as_file(resources.files("searchparty.training") / "judge.yaml") as file:
            return load_prompt(file)
    prompt = load_prompt(path)
    prompt.render("report", {"question": "", "task": "", "report": ""}, TAGS)
    return prompt


def read_score(text: str) -> float | None:
    """The last `<score>` of a judge's reply as a share of the best; None if there is none from 0 to the best."""
    found = _SCORE.findall(text)
    score = float(found[-1]) / BEST if found else None
    return score if score is not None and score <= 1 else None
