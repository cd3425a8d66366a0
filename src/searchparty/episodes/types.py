"""What one team did with one question, token by token.

Training, evaluation, audit and viewer all read these records and nothing else. A span is born with its kind; whether a token
may be trained is read from that kind and from nowhere else (contract 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from searchparty.errors import Failure

SCHEMA_VERSION = 1


class SpanKind(StrEnum):
    """Where the tokens of a span come from."""

    PROMPT = "prompt"
    """System message and worked examples: the same in every episode."""
    OBSERVATION = "observation"
    """A user turn: the task, passages, reports, feedback; with the template's markup around it."""
    ACTION = "action"
    """Sampled by the policy. The only kind that is ever trained."""


@dataclass(slots=True)
class Span:
    """Consecutive tokens of one origin. Fields after `ids` are set for actions only."""

    kind: SpanKind
    text: str
    """What a person reads. For actions the decoded completion; never encoded again."""
    ids: Sequence[int] | None
    """Token ids exactly as the engine was given or returned them; None if the model exchanges text only."""
    logprobs: Sequence[float] | None = None
    """Log-probability of each id under the distribution it was drawn from; None if the engine offers none."""
    call: int | None = None
    """Index into the transcript's `calls`."""
    candidate: int | None = None
    """Which of that call's candidates, from 0."""
    finish_reason: str | None = None
    """Why the completion ended: `end`, `stop` or `length`."""


@dataclass(slots=True)
class Call:
    """One request to a model."""

    step: int
    """The environment step in which the agent acted, from 1."""
    seed: int
    n: int
    """Candidates asked for."""
    temperature: float
    top_p: float
    top_k: int
    max_tokens: int
    """Token budget of this call, after it was fitted into the context window."""
    seconds: float
    """Wall time from request to reply, waiting for a place in a batch included."""
    prompt_tokens: int | None = None
    """Length of the whole history given; None if the engine does not say."""
    cached_tokens: int | None = None
    """How many of them came from a prefix cache; None if unknown."""
    output_tokens: int | None = None
    """Sampled tokens, all candidates together; None if the engine exchanges text only."""
    failure: Failure | None = None


class AgentEnd(StrEnum):
    """How one agent's part ended."""

    FINISHED = "finished"
    """It did what its role is there for: reported, selected, answered."""
    INVALID_ACTION = "invalid_action"
    """Its turn held no well-formed action."""
    LIMIT = "limit"
    """It was told to finish with this turn and did not."""
    CONTEXT_FULL = "context_full"
    """Its history left no room for another turn."""
    FAILED = "failed"
    """A model or retriever gave it no usable reply."""
    LEFT = "left"
    """The episode ended while it was still at work."""


@dataclass(slots=True)
class Transcript:
    """One agent's local history: an append-only list of spans.

    If the agent's last call asked for several candidates, its action spans stand at the end side by side: alternatives that all
    follow the same prefix. No other call has more than one.
    """

    agent: str
    """Unique in the episode: role and running number, `searcher.2`."""
    role: str
    model: str
    """Identity of the model that played it."""
    parent: str | None = None
    """The agent that gave it its task; None for the first."""
    spans: list[Span] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    """The tags that the role may write: its turns are read with them, whoever reads."""
    starts_in_thinking: bool = False
    """Whether the model's template opens `<think>` in the prompt, so that each turn begins inside it."""
    end: AgentEnd = AgentEnd.LEFT
    problem: str | None = None
    """What was wrong with its last turn, from the closed list of action problems; None if nothing was."""

    def last_turn(self) -> list[Span]:
        """The action spans of the last call: one, or one per candidate. Empty if the agent never acted."""
        if not self.calls:
            return []
        return [span for span in self.spans if span.call == len(self.calls) - 1]


@dataclass(slots=True)
class RetrievedPassage:
    """One hit. Its text, as the agent saw it, stands in the observation that followed."""

    id: str
    title: str
    score: float


@dataclass(slots=True)
class Retrieval:
    """One search: who asked what, and what came back. `hits` is empty if nothing was found or the retriever failed."""

    agent: str
    step: int
    query: str
    k: int
    hits: list[RetrievedPassage]
    seconds: float
    failure: Failure | None = None


class StopReason(StrEnum):
    """How an episode ended. The list is closed; every episode has exactly one (contract 8)."""

    ANSWERED = "answered"
    """The answering agent's last turn holds a well-formed answer."""
    INVALID_ANSWER = "invalid_answer"
    """The answering agent spoke, but its last turn holds no well-formed answer."""
    INVALID_ACTION = "invalid_action"
    """An agent that the team cannot do without took no well-formed action."""
    NO_REPORT = "no_report"
    """The only Searcher was told to report and did not."""
    NO_SELECTION = "no_selection"
    """The Leader was told to select reports and did not."""
    STEP_LIMIT = "step_limit"
    """The budget of environment steps was used up before an answer."""
    CONTEXT_FULL = "context_full"
    """The history of an agent that the team cannot do without no longer fits its model."""
    MODEL_FAILED = "model_failed"
    """A model gave no usable reply; the episode says nothing about the team and is tried again on resume."""
    RETRIEVER_FAILED = "retriever_failed"
    """The retriever gave no usable reply; likewise tried again on resume."""
    TEAM_ERROR = "team_error"
    """The team's own code raised an exception; `detail` holds it."""

    @property
    def is_service_failure(self) -> bool:
        """Whether a service failed rather than the team, so that a resumed run tries the episode again."""
        return self in (StopReason.MODEL_FAILED, StopReason.RETRIEVER_FAILED)


@dataclass(slots=True)
class ExecutorUse:
    """One executor at work within a workflow."""

    executor: str
    """Its abbreviation, `RA`."""
    agent: str | None
    """The agent that played it; None for an executor that is no model, as the search is."""
    problem: str | None = None
    """Why it gave nothing usable, from a closed list; None if it did its work. Its declared fallback was used instead."""


@dataclass(slots=True)
class PlannerTurn:
    """One turn of a planner: the workflow that it chose for a question or sub-question, and what became of it."""

    agent: str | None
    """The planner's agent; this is its only turn. Executors of the workflow, and planners of its sub-questions, name it as
    their parent. None if the workflow is fixed and nobody planned."""
    question: str
    """What it was asked to plan for, earlier answers filled in."""
    executors: list[str]
    """Abbreviations in the planned order; empty if no workflow could be read."""
    broken_rule: str | None = None
    """The rule of the workflow grammar that the plan breaks; None if it is well-formed and executable."""
    uses: list[ExecutorUse] = field(default_factory=list)
    """The executors that worked, in order."""
    sub_questions: int = 0
    """Sub-questions that a decomposition gave; 0 without one."""
    serial: bool = False
    """Whether they were answered one after another."""
    answer: str | None = None
    """The answer to this question that the workflow came to; None if it came to none."""


@dataclass(slots=True)
class Episode:
    """One team's attempt at one question."""

    question_key: str
    """Dataset and id of the question; golden answers are deliberately not here."""
    dataset: str
    question: str
    sample: int
    """Which of the repeated attempts at this question, from 0."""
    seed: int
    """The run's seed; every call's seed derives from it, the question, the sample, the agent and the call's number."""
    team: str
    agents: list[Transcript]
    """In order of creation."""
    retrievals: list[Retrieval]
    """In order of asking."""
    stop_reason: StopReason
    steps: int
    """Environment steps used: synchronous rounds in which every active agent acted once."""
    answering_agent: str | None
    """The agent whose last turn is the answer; None if the episode ended before any."""
    detail: str | None
    """One line more about the ending, for a person."""
    token_exact: bool
    """Whether every span has its ids (contract 1)."""
    template_rewrites_history: bool
    """Whether a model's own chat template would have changed earlier turns, which the transcripts do not."""
    started: str
    """UTC, ISO 8601."""
    seconds: float
    schema_version: int = SCHEMA_VERSION
    planner_turns: list[PlannerTurn] = field(default_factory=list)
    """In order of planning; empty for teams without a planner."""

    def transcript(self, agent: str) -> Transcript:
        """The transcript of the agent of that name. Raises KeyError if there is none."""
        for transcript in self.agents:
            if transcript.agent == agent:
                return transcript
        raise KeyError(f"episode of {self.question_key} has no agent {agent}")
