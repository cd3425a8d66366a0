"""What one episode used, by kind: tokens of each class, retrieval calls, turns; and what that costs.

Reads records only. Wall time is apart: it says more about the machine than about the team. A call that failed used nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from searchparty.costs.prices import Price, Prices
from searchparty.episodes.types import Call, Episode, PlannerTurn, Transcript

MILLION = 1e6
SUMMARY = "AS"
"""Follows every decomposition, and is chosen by nobody."""
SHOWN_EXECUTORS = 8
"""Of a broken workflow, which may name thousands."""


@dataclass(slots=True)
class Tokens:
    """Tokens by what they cost. None where a model does not say."""

    uncached_input: int | None = 0
    cached_input: int | None = 0
    """Of a server that does not say, 0: all its input then counts as uncached."""
    output: int | None = 0

    def add(self, call: Call) -> None:
        """Count one call."""
        if call.failure is not None:
            return
        cached = call.cached_tokens or 0
        self.uncached_input = _plus(self.uncached_input, None if call.prompt_tokens is None else call.prompt_tokens - cached)
        self.cached_input = _plus(self.cached_input, cached)
        self.output = _plus(self.output, call.output_tokens)

    @property
    def total(self) -> int | None:
        """All of them."""
        return _plus(_plus(self.uncached_input, self.cached_input), self.output)

    def usd(self, price: Price) -> float | None:
        """What they cost; None if their number is not known."""
        if self.uncached_input is None or self.cached_input is None or self.output is None:
            return None
        cached = price.input if price.cached_input is None else price.cached_input
        return (self.uncached_input * price.input + self.cached_input * cached + self.output * price.output) / MILLION


@dataclass(slots=True)
class Spending:
    """What an episode, or a part of one, used."""

    by_role: dict[tuple[str, str], Tokens] = field(default_factory=dict)
    """Role and model to its tokens."""
    searches: int = 0
    """Retrieval calls, failed ones left out."""
    turns: int = 1
    """As MAO-ARAG counts them: 1, and as many more as rounds follow a decomposition: one for a parallel one, one for each
    sub-question of a serial one."""
    seconds: float = 0.0
    """Wall time."""

    @property
    def tokens(self) -> int | None:
        """Of all roles and classes."""
        total: int | None = 0
        for tokens in self.by_role.values():
            total = _plus(total, tokens.total)
        return total

    def usd(self, prices: Prices) -> float | None:
        """What it costs. None if a model has no price or does not say how many tokens it used."""
        total = self.searches * prices.search
        for (_, model), tokens in self.by_role.items():
            price = prices.of(model)
            cost = None if price is None else tokens.usd(price)
            if cost is None:
                return None
            total += cost
        return total


def spending_of(episode: Episode) -> Spending:
    """What a whole episode used."""
    spent = _of_agents(episode.agents)
    spent.searches = sum(retrieval.failure is None for retrieval in episode.retrievals)
    spent.turns = 1 + sum(turn.sub_questions if turn.serial else int(turn.sub_questions > 0) for turn in episode.planner_turns)
    spent.seconds = episode.seconds
    return spent


def workflow_of(episode: Episode) -> str:
    """The workflow of the episode's own question; `broken: RULE` for one that could not be carried out, `none: STOP_REASON` if
    the episode ended before there was one, the team's name for a team that plans none."""
    if not episode.planner_turns:
        return episode.team
    first = episode.planner_turns[0]
    if first.broken_rule is not None:
        return f"broken: {first.broken_rule}"
    return ", ".join(first.executors) or f"none: {episode.stop_reason}"


def workflow_tree(episode: Episode) -> list[str]:
    """One line for each planner turn, sub-questions further in: question, chosen workflow, answer.

    Where other executors worked than were chosen (a fallback, an episode that ended early) they follow the workflow; then those
    whose work was of no use.
    """
    depth: dict[str, int] = {}
    parents = {transcript.agent: transcript.parent for transcript in episode.agents}
    lines = []
    for turn in episode.planner_turns:
        above = parents.get(turn.agent) if turn.agent is not None else None
        level = 0 if above is None else depth.get(above, 0) + 1
        if turn.agent is not None:
            depth[turn.agent] = level
        problems = "".join(f"; {use.executor} of no use ({use.problem})" for use in turn.uses if use.problem)
        lines.append(f"{'  ' * level}{turn.question}  [{_course(turn)}]  {turn.answer or 'no answer'}{problems}")
    return lines


def _course(turn: PlannerTurn) -> str:
    """The chosen workflow, and what worked where that is something else. The summary follows any decomposition."""
    chosen, worked = turn.executors, [use.executor for use in turn.uses]
    if turn.broken_rule is not None:
        more = ["…"] if len(chosen) > SHOWN_EXECUTORS else []
        written = f": {', '.join([*chosen[:SHOWN_EXECUTORS], *more])}" if chosen else ""
        return f"broken ({turn.broken_rule}){written}"
    arrows = " → ".join(worked) or "none"
    as_chosen = worked == ([*chosen, SUMMARY] if turn.sub_questions else chosen)
    return arrows if as_chosen else f"{' → '.join(chosen)}; worked: {arrows}"


def _of_agents(agents: Iterable[Transcript]) -> Spending:
    spent = Spending()
    for transcript in agents:
        tokens = spent.by_role.setdefault((transcript.role, transcript.model), Tokens())
        for call in transcript.calls:
            tokens.add(call)
    return spent


def _plus(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
