"""A planner's executors in the generated world, and planners: scripts with noise, so that planning can be learned on a CPU.

What makes planning worth learning: the answer generator knows every year by heart and nothing else, so some questions need no
retrieval; it can follow one relation in one passage, so others need a search, and longer ones a decomposition; every passage
that does not help may mislead it, so a selection can pay. All chance comes from the request's seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from searchparty.models.types import GenerateRequest
from searchparty.world.conversation import Conversation, read_conversation
from searchparty.world.knowledge import Knowledge, Walk, compare
from searchparty.world.language import end_kind, read_facts, read_question, write_question
from searchparty.world.relations import RELATIONS, Kind
from searchparty.world.types import Chain, Form, Inquiry, Reference, World

MISLED = 0.04
"""Probability that a passage without use leads the answer astray, each by itself."""
SLIPS = 0.03
"""Probability that an executor's turn is of no use, whatever it read."""
_PASSAGE = re.compile(r"^Passage (\d+): .*\n(.*)$", re.MULTILINE)
_ANSWERED = re.compile(r"^Sub-question \d+: .*\nAnswer: (.*)$", re.MULTILINE)
WORKFLOWS = ("AG", "RA, AG", "QR, RA, AG", "RA, DS, AG", "QR, RA, DS, AG", "QDS", "QDP")
"""All that a planner may answer with, the cheapest first."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One request, taken apart."""

    conversation: Conversation
    inquiry: Inquiry | None
    chance: random.Random


class WorldExecutors:
    """A script for `ScriptedEngine` that plays qds, qdp, qr, ds, ag and as."""

    def __init__(self, world: World, *, slips: float = SLIPS, misled: float = MISLED) -> None:
        """
        Args:
            slips: see `SLIPS`; 0 for executors without mistakes of their own.
            misled: see `MISLED`.
        """
        self._by_heart = [fact for fact in world.facts if fact.object.kind is Kind.YEAR]
        self._names = {kind: world.names(kind) for kind in Kind}
        self._slips, self._misled = slips, misled

    def __call__(self, request: GenerateRequest) -> str | Sequence[str]:
        """One turn per candidate."""
        conversation = read_conversation(request.messages)
        inquiry = read_question(conversation.asked)
        turns = [
            self._turn(request.role, _Turn(conversation, inquiry, random.Random(f"{request.seed} {candidate} executors")))
            for candidate in range(request.n)
        ]
        return turns[0] if request.n == 1 else turns

    def _turn(self, role: str, turn: _Turn) -> str:
        play = {"qds": _in_series, "qdp": _in_parallel, "qr": _query, "ds": _useful, "as": self._sum_up}.get(role, self._answer)
        slips = turn.chance.random() < self._slips
        return "…" if slips else play(turn)

    def _answer(self, turn: _Turn) -> str:
        """Follow the chains, one relation of each through what was read; the years are known anyway."""
        inquiry, evidence = turn.inquiry, turn.conversation.evidence
        if inquiry is None:
            return "<answer>unknown</answer>"
        walks = _walks(inquiry, Knowledge([*read_facts(evidence), *self._by_heart]))
        useless = len(_PASSAGE.findall(evidence)) - len(_needed(turn))
        led_astray = any(turn.chance.random() < self._misled for _ in range(useless))
        can = all(not walk.remaining and len(chain.relations) == 1 for walk, chain in zip(walks, inquiry.chains, strict=True))
        if can and not led_astray:
            ends = [walk.at for walk in walks]
            return f"<answer>{ends[0].name if inquiry.form is Form.END else compare(inquiry, *ends)}</answer>"
        return f"<answer>{self._guess(inquiry, turn.chance)}</answer>"

    def _sum_up(self, turn: _Turn) -> str:
        """From the answers to the sub-questions that `qds` and `qdp` would ask."""
        inquiry, answers = turn.inquiry, _ANSWERED.findall(turn.conversation.evidence)
        if inquiry is None or not answers:
            return "<answer>unknown</answer>"
        if inquiry.form is Form.END:
            return f"<answer>{answers[-1]}</answer>"
        kind = end_kind(inquiry.chains[0])
        ends = [Reference(kind, answers[len(answers) // 2 - 1]), Reference(kind, answers[-1])]
        comparable = inquiry.form is Form.SAME or all(end.name.isdecimal() for end in ends)
        if "unknown" in (ends[0].name, ends[1].name) or not comparable:
            return f"<answer>{self._guess(inquiry, turn.chance)}</answer>"
        return f"<answer>{compare(inquiry, *ends)}</answer>"

    def _guess(self, inquiry: Inquiry, chance: random.Random) -> str:
        if inquiry.form is Form.SAME:
            return chance.choice(["yes", "no"])
        if inquiry.form is Form.FIRST:
            return chance.choice([chain.start.name for chain in inquiry.chains])
        return chance.choice(self._names[end_kind(inquiry.chains[0])])


class WorldPlanner:
    """A script for the planner's role, with executors for the others: it sees what a question needs, or takes no notice."""

    def __init__(self, world: World, *, random_share: float = 0.0, malformed_share: float = 0.0) -> None:
        """
        Args:
            random_share: probability that any executable workflow is chosen, all with equal chance.
            malformed_share: probability that the turn breaks a rule.
        """
        self._executors = WorldExecutors(world)
        self._random_share, self._malformed_share = random_share, malformed_share

    def __call__(self, request: GenerateRequest) -> str | Sequence[str]:
        """The planner's turn, or an executor's."""
        if request.role != "planner":
            return self._executors(request)
        conversation = read_conversation(request.messages)
        inquiry, offered = read_question(conversation.asked), _offered(conversation.evidence)
        turns = [self._plan(inquiry, offered, random.Random(f"{request.seed} {number} planner")) for number in range(request.n)]
        return turns[0] if request.n == 1 else turns

    def _plan(self, inquiry: Inquiry | None, offered: Sequence[str], chance: random.Random) -> str:
        if chance.random() < self._malformed_share:
            return f"<workflow>{chance.choice(('AG, RA', 'DS, AG', 'QR, AG', 'RA'))}</workflow>"
        if chance.random() < self._random_share:
            return f"<workflow>{chance.choice(offered)}</workflow>"
        best = best_workflow(inquiry)
        return f"<workflow>{best if best in offered else 'RA, AG'}</workflow>"


def _offered(evidence: str) -> list[str]:
    """The workflows whose executors a planner was told that it may choose; all of them if it was told nothing."""
    named = set(re.findall(r"\b[A-Z]{2,3}\b", evidence))
    return [one for one in WORKFLOWS if named.issuperset(one.split(", "))] or list(WORKFLOWS)


def best_workflow(inquiry: Inquiry | None) -> str:
    """The cheapest workflow by which the executors can answer, mistakes aside."""
    if inquiry is None:
        return "RA, AG"
    long = any(len(chain.relations) > 1 for chain in inquiry.chains)
    if long:
        return "QDS"
    if end_kind(inquiry.chains[0]) is Kind.YEAR:
        return "AG"
    return "QDP" if len(inquiry.chains) > 1 else "RA, AG"


def _walks(inquiry: Inquiry, knowledge: Knowledge) -> list[Walk]:
    return [knowledge.walk(chain) for chain in inquiry.chains]


def _in_series(turn: _Turn) -> str:
    """One relation at a time, along one chain and then the other."""
    if turn.inquiry is None:
        return f"<question>{turn.conversation.asked}</question>"
    lines: list[str] = []
    for chain in turn.inquiry.chains:
        at = chain.start
        for noun in chain.relations:
            lines.append(f"<question>{write_question(Inquiry(Form.END, (Chain(at, (noun,)),)))}</question>")
            at = Reference(RELATIONS[noun].object, f"#{len(lines)}")
    return "\n".join(lines)


def _in_parallel(turn: _Turn) -> str:
    """A question for each chain."""
    if turn.inquiry is None:
        return f"<question>{turn.conversation.asked}</question>"
    return "\n".join(f"<question>{write_question(Inquiry(Form.END, (chain,)))}</question>" for chain in turn.inquiry.chains)


def _query(turn: _Turn) -> str:
    """Names and the words of the first relation."""
    if turn.inquiry is None:
        return f"<query>{turn.conversation.asked or 'unknown'}</query>"
    names = [chain.start.name for chain in turn.inquiry.chains]
    words = dict.fromkeys(word for chain in turn.inquiry.chains for word in RELATIONS[chain.relations[0]].query.split())
    return f"<query>{' '.join([*names, *words])}</query>"


def _useful(turn: _Turn) -> str:
    """The passages that say something of what the question names."""
    return f"<documents>{', '.join(map(str, _needed(turn))) or 'none'}</documents>"


def _needed(turn: _Turn) -> list[int]:
    """Numbers of the passages that state a fact which a chain's first steps use."""
    if turn.inquiry is None:
        return []
    evidence = turn.conversation.evidence
    used = {fact for walk in _walks(turn.inquiry, Knowledge(read_facts(evidence))) for fact in walk.used}
    return [int(number) for number, text in _PASSAGE.findall(evidence) if used.intersection(read_facts(text))]
