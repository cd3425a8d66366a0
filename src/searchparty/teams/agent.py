"""An agent: one instance of a role inside one episode, with a local history that is only ever appended to.

Knows its prompt, its model and its transcript; knows nothing of other agents, of scores or of training.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite

from searchparty.episodes.types import AgentEnd, Call, Span, SpanKind, StopReason, Transcript
from searchparty.errors import Failure, FailureKind
from searchparty.models.types import Completion, FinishReason, Generated, GenerateRequest, Message
from searchparty.teams.actions import Action, ActionProblem, TagRules, closing_tags, read_action
from searchparty.teams.cast import Part
from searchparty.teams.escaping import defuse_control_marks, escape_tags, without_surrogates


class EpisodeStopped(Exception):
    """Ends the episode at once with a recorded reason. Raised by agent and workspace, caught where the episode is played."""

    def __init__(self, reason: StopReason, detail: str | None = None) -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail


def call_seed(run_seed: int, question_key: str, sample: int, agent: str, call: int) -> int:
    """A 63-bit seed that depends on who asks and for the how-manieth time, and on nothing that runs beside it."""
    words = f"{run_seed}\x1f{question_key}\x1f{sample}\x1f{agent}\x1f{call}".encode()
    return int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "big") >> 1


class Agent:
    """Use `observe` or `tell` to add to the next user turn, then `act` to let the model speak.

    Attributes:
        transcript: the record of all that this agent saw and wrote.
    """

    def __init__(
        self,
        transcript: Transcript,
        part: Part,
        *,
        own_tags: Sequence[str],
        team_tags: Sequence[str],
        repeatable_tags: Sequence[str],
        next_seed: Callable[[int], int],
        current_step: Callable[[], int],
        on_span: Callable[[Transcript, Span], None],
    ) -> None:
        self.transcript = transcript
        self._part = part
        self._own_tags, self._team_tags, self._repeatable_tags = tuple(own_tags), tuple(team_tags), tuple(repeatable_tags)
        self._next_seed, self._current_step, self._on_span = next_seed, current_step, on_span
        self._pending: list[str] = []
        self._messages: list[Message] = []
        self._ids: list[int] | None = None
        self._last: Completion | None = None
        self._closed = False
        self._open()

    @property
    def name(self) -> str:
        """Role and running number, unique in the episode."""
        return self.transcript.agent

    def _open(self) -> None:
        opening = self._part.opening
        self._messages += opening.messages
        self._ids = None if opening.ids is None else list(opening.ids)
        self._append(Span(SpanKind.PROMPT, opening.text, opening.ids))

    def _append(self, span: Span) -> None:
        self.transcript.spans.append(span)
        self._on_span(self.transcript, span)

    def observe(self, text: str) -> None:
        """Add foreign text to the next user turn; the team's tags in it are escaped."""
        self._pending.append(escape_tags(text, self._team_tags))

    def tell(self, turn: str, **values: str) -> None:
        """Add a turn of the prompt file to the next user turn, its fields filled with foreign text, whose tags are escaped."""
        self._pending.append(self._part.prompt.render(turn, values, self._team_tags))

    async def act(self, *allowed: str, candidates: int = 1) -> Action | ActionProblem:
        """Let the model take one turn and read the action in it.

        Args:
            allowed: tags that are legal in this turn, of those that the team declares for the role; all of them if none is
            named. candidates: completions to sample. More than one ends this agent's history: they are alternatives.

        Returns:
            The action of the first candidate, or what is wrong with it. Both are recorded.

        Raises:
            EpisodeStopped: CONTEXT_FULL if the history leaves no room, MODEL_FAILED if the model gave no reply.
        """
        rules = TagRules(allowed or self._own_tags, self._repeatable_tags, self._own_tags)
        stop = self._stop_strings()
        first = (await self._sample(candidates, stop))[0]
        action = read_action(first.text, rules, starts_in_thinking=self.transcript.starts_in_thinking)
        self.transcript.problem = str(action) if isinstance(action, ActionProblem) else None
        return action

    async def try_to_act(self, *allowed: str) -> Action | ActionProblem:
        """As `act` with one candidate, but a history that leaves no room is a problem like any other.

        For agents without which the team can go on.
        """
        try:
            return await self.act(*allowed)
        except EpisodeStopped as stop:
            if stop.reason is not StopReason.CONTEXT_FULL:
                raise
            return ActionProblem.CONTEXT_FULL

    async def act_freely(self) -> str:
        """Let the model take one turn without tags and return its text."""
        return (await self._sample(1, ()))[0].text

    def finish(self, end: AgentEnd, problem: ActionProblem | None = None) -> None:
        """Record how this agent's part ended; it cannot act again."""
        self.transcript.end = end
        if problem is not None:
            self.transcript.problem = str(problem)
        self._closed = True

    async def _sample(self, candidates: int, stop: Sequence[str]) -> Sequence[Completion]:
        if self._closed:
            raise RuntimeError(f"{self.name} acted after its part had ended")
        self._close_user_turn()
        number = len(self.transcript.calls)
        sampling = replace(self._part.sampling, max_tokens=self._token_budget())
        seed, started = self._next_seed(number), time.perf_counter()
        given_ids = tuple(self._ids) if self._ids is not None else None
        request = GenerateRequest(tuple(self._messages), given_ids, sampling, seed, candidates, stop, self.transcript.role)
        try:
            reply = (await self._part.model.engine.generate([request]))[0]
        except Exception as error:  # an engine must not raise; one that does has failed this request and nothing else
            reply = Failure("model", FailureKind.SERVER_ERROR, f"{type(error).__name__}: {error}")
        if isinstance(reply, Generated):
            reply = _check_reply(request, reply)
        call = Call(
            step=self._current_step(), seed=seed, n=candidates, temperature=sampling.temperature, top_p=sampling.top_p,
            top_k=sampling.top_k, max_tokens=sampling.max_tokens, seconds=time.perf_counter() - started,
        )  # fmt: skip
        self.transcript.calls.append(call)
        if isinstance(reply, Failure):
            call.failure = reply
            full = reply.kind is FailureKind.CONTEXT_OVERFLOW
            self.finish(AgentEnd.CONTEXT_FULL if full else AgentEnd.FAILED)
            raise EpisodeStopped(
                StopReason.CONTEXT_FULL if full else StopReason.MODEL_FAILED, f"{self.name}: {reply.kind}: {reply.detail}"
            )
        self._record(call, number, reply)
        return reply.candidates

    def _stop_strings(self) -> tuple[str, ...]:
        """What ends a turn at its action. A thinking model gets none: it quotes the tags while it thinks, and a server that
        knows only strings would stop it there."""
        chat = self._part.model.chat
        if chat is not None and (chat.opens_thinking or chat.rewrites_history):
            return ()
        return closing_tags([tag for tag in self._own_tags if tag not in self._repeatable_tags])

    def _record(self, call: Call, number: int, reply: Generated) -> None:
        call.prompt_tokens, call.cached_tokens, call.output_tokens = (
            reply.prompt_tokens,
            reply.cached_tokens,
            reply.output_tokens,
        )
        if self._ids is not None:
            call.prompt_tokens = len(self._ids)
            call.output_tokens = sum(len(candidate.ids or ()) for candidate in reply.candidates)
        for index, candidate in enumerate(reply.candidates):
            reason = candidate.finish_reason.value
            self._append(
                Span(
                    SpanKind.ACTION,
                    without_surrogates(candidate.text),
                    candidate.ids,
                    candidate.logprobs,
                    number,
                    index,
                    reason,
                )
            )
        if len(reply.candidates) > 1:
            self._closed = True
            return
        self._last = reply.candidates[0]
        self._messages.append(Message("assistant", without_surrogates(self._last.text)))
        if self._ids is not None:
            self._ids += self._last.ids or ()

    def _close_user_turn(self) -> None:
        """Turn all that was observed since the last action into one observation span, with the template's markup around it."""
        text, chat = without_surrogates("\n\n".join(self._pending)), self._part.model.chat
        self._pending = []
        new_ids: list[int] = []
        if chat is not None:
            if self._last is not None:
                new_ids += chat.end_action(self._last.finish_reason is FinishReason.END)
            is_first = self._last is None and not self._part.prompt.examples
            new_ids += [*chat.user(text, first=is_first), *chat.begin_action()]
            assert self._ids is not None
            self._ids += new_ids
        else:
            text = defuse_control_marks(text)
        self._messages.append(Message("user", text))
        self._append(Span(SpanKind.OBSERVATION, text, new_ids if chat is not None else None))

    def _token_budget(self) -> int:
        """The sampling budget, cut to the room that the context window leaves. Never cuts the history itself."""
        window, wanted = self._part.model.context_tokens, self._part.sampling.max_tokens
        if window is None or self._ids is None:
            return wanted
        room = window - len(self._ids)
        if room < 1:
            self.finish(AgentEnd.CONTEXT_FULL)
            raise EpisodeStopped(
                StopReason.CONTEXT_FULL, f"{self.name}: the history of {len(self._ids)} tokens fills the window of {window}"
            )
        return min(wanted, room)


def _check_reply(request: GenerateRequest, reply: Generated) -> Generated | Failure:
    """The reply, or a failure if it is not what was agreed: n candidates, the same prompt, one log-probability per id."""
    fault = None
    if len(reply.candidates) != request.n:
        fault = f"{len(reply.candidates)} candidates came back, {request.n} were asked for"
    elif request.prompt_ids is not None:
        if reply.prompt_tokens is not None and reply.prompt_tokens != len(request.prompt_ids):
            fault = f"the model read {reply.prompt_tokens} prompt tokens, {len(request.prompt_ids)} were given"
        for candidate in reply.candidates:
            if candidate.ids is None:
                fault = "a completion came back without token ids"
            elif candidate.logprobs is not None and len(candidate.logprobs) != len(candidate.ids):
                fault = f"{len(candidate.logprobs)} log-probabilities for {len(candidate.ids)} tokens"
            elif candidate.logprobs is not None and not all(map(isfinite, candidate.logprobs)):
                fault = "a log-probability is not a finite number"
    return reply if fault is None else Failure("model", FailureKind.MALFORMED_REPLY, fault)
