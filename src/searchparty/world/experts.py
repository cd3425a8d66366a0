"""Experts: scripts that play every role of the built-in teams in the generated world, perfectly or with named mistakes.

An expert understands the world's language and knows how to take a question apart. What is true it takes from what it has read
in its own conversation and from nowhere else; only a guess without any evidence (the team direct) is drawn from the world's
names.
"""

from __future__ import annotations

from collections.abc import Sequence

from searchparty.models.scripted import Script
from searchparty.models.types import GenerateRequest
from searchparty.world.conversation import Conversation, read_conversation
from searchparty.world.executing import WorldExecutors, WorldPlanner
from searchparty.world.faults import TYPICAL, Dice, Faults, malformed
from searchparty.world.judging import WorldJudge
from searchparty.world.knowledge import Knowledge, Walk, compare
from searchparty.world.language import end_kind, read_facts, read_question, state, write_question
from searchparty.world.relations import REAL_NAME, RELATIONS, Kind
from searchparty.world.types import Chain, Fact, Form, Inquiry, Reference, World

NOTHING_FOUND = "nothing was found."
_TRIES_PER_TASK = 2
"""How often the Leader gives the same task."""


class Expert:
    """A script for `ScriptedEngine`. Any role but searcher and leader answers."""

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self._names = {kind: world.names(kind) for kind in Kind}
        self._faults = faults or Faults()

    def __call__(self, request: GenerateRequest) -> str | Sequence[str]:
        """One turn per candidate; each candidate errs on its own."""
        conversation = read_conversation(request.messages)
        turns = [self._turn(request.role, conversation, Dice(self._faults, request.seed, j)) for j in range(request.n)]
        return turns[0] if request.n == 1 else turns

    def _turn(self, role: str, conversation: Conversation, dice: Dice) -> str:
        play = {"searcher": self._search, "leader": self._lead}.get(role, self._answer)
        tag, contents = play(conversation, read_question(conversation.asked), dice)
        if dice.makes("malformed"):
            return malformed(tag, contents[0], dice.stream("malformed"))
        return "\n".join(f"<{tag}>{content}</{tag}>" for content in contents)

    def _search(self, conversation: Conversation, inquiry: Inquiry | None, dice: Dice) -> tuple[str, list[str]]:
        """Search for what the chains need next, all of them in one query; report once nothing is open or no query is left."""
        if inquiry is None:
            first = not conversation.own("search") and not conversation.must_finish
            return ("search", [conversation.asked or "unknown"]) if first else ("report", [NOTHING_FOUND])
        walks = _walks(inquiry, conversation.evidence)
        tried = conversation.own("search")
        is_open = any(walk.remaining for walk in walks) and not conversation.must_finish
        if is_open and not (tried and dice.makes("skip_search")):
            if dice.makes("naive_query") and conversation.asked not in tried:
                return "search", [conversation.asked]
            queries = [query for query in _queries(walks) if query not in tried]
            if queries:
                return "search", [queries[0]]
        facts = _used(walks)
        if facts and dice.makes("wrong_name"):
            facts[-1] = self._misread(facts[-1], conversation.evidence, dice)
        return "report", [" ".join(map(state, facts)) or NOTHING_FOUND]

    def _lead(self, conversation: Conversation, inquiry: Inquiry | None, dice: Dice) -> tuple[str, list[str]]:
        """Give a task for each open chain; then select the reports that the answer rests on."""
        given, reports = conversation.own("task"), conversation.reports()
        if inquiry is None:
            if not given and not conversation.must_finish:
                return "task", [conversation.asked or "unknown"]
            return "select", [", ".join(str(report.number) for report in reports) or "none"]
        walks = _walks(inquiry, "\n".join(report.text for report in reports))
        tasks = _tasks(inquiry, walks)
        may_give = not conversation.must_finish and all(given.count(task) < _TRIES_PER_TASK for task in tasks)
        if tasks and may_give and not (given and dice.makes("skip_task")):
            if not given and dice.makes("whole_task"):
                return "task", [conversation.asked]
            return "task", tasks
        needed = _needed_reports(conversation, _used(walks))
        return "select", [", ".join(map(str, self._misselect(needed, conversation, dice))) or "none"]

    def _answer(self, conversation: Conversation, inquiry: Inquiry | None, dice: Dice) -> tuple[str, list[str]]:
        """Follow the chains through the evidence; where they do not reach the end, say how far they got, or guess."""
        if inquiry is None:
            return "answer", ["unknown"]
        facts = read_facts(conversation.evidence)
        walks = _walks(inquiry, conversation.evidence)
        if any(walk.remaining for walk in walks):
            answer = walks[0].at.name if inquiry.form is Form.END and walks[0].used else self._guess(inquiry, dice)
        else:
            answer = walks[0].at.name if inquiry.form is Form.END else compare(inquiry, walks[0].at, walks[1].at)
        if facts and dice.makes("wrong_name"):
            others = [name for name in self._options(inquiry) if name != answer]
            answer = dice.stream("wrong_name").choice(others)
        return "answer", [answer]

    def _guess(self, inquiry: Inquiry, dice: Dice) -> str:
        return dice.stream("guess").choice(self._options(inquiry))

    def _options(self, inquiry: Inquiry) -> list[str]:
        """Everything that could be the answer, as far as the question tells."""
        if inquiry.form is Form.SAME:
            return ["yes", "no"]
        if inquiry.form is Form.FIRST:
            return [chain.start.name for chain in inquiry.chains]
        return self._names[end_kind(inquiry.chains[0])]

    def _misread(self, fact: Fact, evidence: str, dice: Dice) -> Fact:
        """The fact with another object: one of the same kind that was read, or any if none was."""
        kind = fact.object.kind
        read = {reference for other in read_facts(evidence) for reference in (other.subject, other.object)}
        names = {reference.name for reference in read if reference.kind is kind} or set(self._names[kind])
        others = sorted(names - {fact.object.name, fact.subject.name}) or self._names[kind]
        return Fact(fact.subject, fact.relation, Reference(kind, dice.stream("wrong_name").choice(others)))

    def _misselect(self, needed: list[int], conversation: Conversation, dice: Dice) -> list[int]:
        """The selection after its mistakes. A needed report that is left out is chosen by chance."""
        if needed and dice.makes("drop_report"):
            needed.remove(dice.stream("drop_report").choice(needed))
        if needed and dice.makes("wrong_report"):
            rng = dice.stream("wrong_report")
            others = [report.number for report in conversation.reports() if report.number not in needed]
            needed.remove(rng.choice(needed))
            needed += [rng.choice(others)] if others else []
        return sorted(needed)


def _walks(inquiry: Inquiry, evidence: str) -> list[Walk]:
    knowledge = Knowledge(read_facts(evidence))
    return [knowledge.walk(chain) for chain in inquiry.chains]


def _used(walks: Sequence[Walk]) -> list[Fact]:
    return list(dict.fromkeys(fact for walk in walks for fact in walk.used))


def _queries(walks: Sequence[Walk]) -> list[str]:
    """Queries for what the open chains need next, the best first; later ones use other words.

    A stage name has no page that says more than whose it is, so that is looked up first, and by itself: a query for two things
    at once finds both only if neither has many near misses.
    """
    wanted = dict.fromkeys((walk.at, REAL_NAME) for walk in walks if walk.remaining and walk.at.is_stage_name)
    wanted = wanted or dict.fromkeys((walk.at, walk.remaining[0]) for walk in walks if walk.remaining)
    names = [thing.name for thing, _ in wanted]
    # A word that stands twice in a query counts twice, and would outweigh the names.
    words = dict.fromkeys(word for _, noun in wanted for word in RELATIONS[noun].query.split())
    return [
        " ".join([*names, *words]),
        " ".join(f"{thing.mention} {noun}" for thing, noun in wanted),
        " ".join(names),
    ]


def _tasks(inquiry: Inquiry, walks: Sequence[Walk]) -> list[str]:
    """A question for the next part of each open chain.

    One relation at a time, but two of a chain that has three or more left and of each side of a comparison: the rounds of the
    hierarchical team would not suffice otherwise.
    """
    tasks = []
    for walk in walks:
        if walk.remaining:
            part = 2 if len(walk.remaining) > 2 or inquiry.form is not Form.END else 1
            tasks.append(write_question(Inquiry(Form.END, (Chain(walk.at, walk.remaining[:part]),))))
    return list(dict.fromkeys(tasks))


def _needed_reports(conversation: Conversation, facts: Sequence[Fact]) -> list[int]:
    """For each fact the first report that holds it."""
    needed: list[int] = []
    for fact in facts:
        holders = [report.number for report in conversation.reports() if fact in read_facts(report.text)]
        needed += holders[:1]
    return list(dict.fromkeys(needed))


def world_scripts(world: World) -> dict[str, Script]:
    """The scripts of a world by name: `world-expert` makes no mistakes, `world-imperfect` the typical ones; `world-judge`
    scores reports. `world-executors` plays the executors of a planner, `world-planner` the planner too, perfectly, and
    `world-planner-imperfect` with mistakes."""
    return {
        "world-expert": Expert(world),
        "world-imperfect": Expert(world, TYPICAL),
        "world-judge": WorldJudge(world),
        "world-executors": WorldExecutors(world),
        "world-planner": WorldPlanner(world),
        "world-planner-imperfect": WorldPlanner(world, random_share=0.7, malformed_share=0.1),
    }
