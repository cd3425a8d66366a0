"""What an audit says: the tokens that break a rule, and how much was proved where none does.

Knows how to say it in a line; checks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path

from searchparty.credit.evidence import EpisodeKey
from searchparty.credit.types import SequenceKey
from searchparty.episodes.printable import printable


class Rule(StrEnum):
    """What is proved of every recorded step. The list is closed."""

    ROLES = "roles"
    """A signal is of an agent of its episode, in its role, which learns; every trainable sequence has one signal."""
    HISTORIES = "histories"
    """A signal's ids are the agent's own spans up to its candidate: a prompt, then observation and action in turn."""
    MASKS = "masks"
    """Tokens of action spans are trained, earlier turns once; no other token has an advantage, weight or log-probability."""
    IDS = "ids"
    """The teacher was given the ids that were sampled; log-probabilities are those recorded while sampling, and finite."""
    PREFIXES = "prefixes"
    """Candidates of one call follow the same ids, as many as the engine was given; it returned as many as are recorded."""
    GROUPS = "groups"
    """Each sequence was compared with those that the plan says, and one that was compared with nothing got no advantage."""
    REPORTS = "reports"
    """Each report is an action of its Searcher and reached its readers as an observation."""
    CREDIT = "credit"
    """Judged candidates, advantages, weights and returns, computed again, are those that were used."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken at one place. A field that is None means that the whole of it is wrong: all tokens, all agents."""

    rule: Rule
    what: str
    """What is wrong: an array or a fact."""
    found: str
    expected: str
    question_key: str | None = None
    sample: int | None = None
    agent: str | None = None
    candidate: int | None = None
    token: int | None = None
    """Position in the sequence, from 0."""
    near: str = ""
    """What a person reads around the token, and in which span it stands."""
    step: int | None = None
    stage: str = ""

    def __str__(self) -> str:
        """One line."""
        named = (
            ("stage", self.stage or None),
            ("step", self.step),
            ("question", self.question_key),
            ("sample", self.sample),
            ("agent", self.agent),
            ("candidate", self.candidate),
            ("token", self.token),
        )
        place = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        near = f"; near {self.near}" if self.near else ""
        line = f"{place}: {self.rule}: {self.what}: found {self.found}, expected {self.expected}{near}"
        return printable(line).replace("\n", "\\n").replace("\t", "\\t")


def of_episode(key: EpisodeKey, rule: Rule, what: str, found: object, expected: object, agent: str | None = None) -> Violation:
    """A violation that concerns an episode or one of its agents."""
    return Violation(rule, what, str(found), str(expected), key[0], key[1], agent)


def of_sequence(
    key: SequenceKey, rule: Rule, what: str, found: object, expected: object, token: int | None = None, near: str = ""
) -> Violation:
    """A violation in one sequence, at one token if that is known."""
    return Violation(rule, what, str(found), str(expected), key.question_key, key.sample, key.agent, key.candidate, token, near)


@dataclass
class Proved:
    """How much was looked at. Numbers, so that an audit of nothing does not look like one that passed."""

    steps: int = 0
    episodes: int = 0
    sequences: int = 0
    """Signals, each found to be what its episode says."""
    tokens: int = 0
    """Of these sequences, all of them."""
    trained_tokens: int = 0
    teacher_tokens: int = 0
    """Trained tokens whose ids are those that a teacher scored."""
    left_out: int = 0
    """Sequences without a signal, because a log-probability of the sampling policy is not finite."""
    unscored: int = 0
    """Sequences of roles that need a teacher and got no finite numbers from it; they learned nothing from it."""
    reports: int = 0
    """Reports found as an observation, once for every reader."""
    groups: int = 0
    singletons: int = 0
    """Of these, the groups that compared nothing; their advantages are 0."""
    judged: int = 0
    """Candidates judged again."""
    advantages: int = 0
    """Trained tokens whose advantage was computed again."""
    largest_difference: float = 0.0
    """Of the numbers computed again from those used, relative to the larger of the two; 0 if all are equal bit by bit."""

    def add(self, other: Proved) -> None:
        """Count what another audit proved."""
        for one in fields(self):
            if one.name == "largest_difference":
                self.largest_difference = max(self.largest_difference, other.largest_difference)
            else:
                setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass
class StepAudit:
    """One step."""

    violations: Sequence[Violation]
    """In the order in which they were found: the first names the first token that breaks a rule."""
    proved: Proved

    @property
    def violation(self) -> Violation | None:
        """The first; None if no rule is broken."""
        return self.violations[0] if self.violations else None


@dataclass
class StageAudit:
    """One stage of a run."""

    name: str
    kind: str
    proved: Proved = field(default_factory=Proved)
    note: str = ""
    """Why there is nothing to prove; empty if there is."""


@dataclass
class AuditReport:
    """A run. It stops at the first violation."""

    path: Path
    stages: list[StageAudit] = field(default_factory=list)
    violation: Violation | None = None
