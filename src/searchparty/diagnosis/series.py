"""The courses of a training stage: what was measured at each step, and when it changed.

Reads lines of `metrics.jsonl`. What a line does not say at a step, or says by no finite number, leaves a gap there and nowhere
else; the second is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from searchparty.diagnosis.change_points import FALSE_ALARMS, find_changes

EPISODES = "episodes in %"
BEHAVIOUR = {
    "no_search": ("episodes without a search", EPISODES),
    "searches": ("searches per episode", "searches per episode"),
    "answered": ("episodes with a well-formed answer", EPISODES),
    "exact_match": ("exact match", EPISODES),
    "output_tokens": ("output tokens per episode", "tokens per episode"),
}
"""Measures of all episodes of a step: how they are called, and their unit."""
LEARNING = {
    "entropy": ("entropy", "nats a token"),
    "approx_kl": ("KL from the sampling policy", "nats a token"),
    "clip_fraction": ("share of clipped tokens", "tokens in %"),
}
"""Of each role's update."""
WATCHED = "watched by the alarms, in %"
LEAST_SHARE = 0.05
"""A share that moved less is not worth telling."""
LEAST_RELATIVE = 0.1
"""Any other number must have moved by so much of the larger level."""


@dataclass(frozen=True, slots=True)
class Series:
    """One number over the steps at which it was measured."""

    kind: str
    """`step` for training, `development` for evaluations in between."""
    name: str
    unit: str
    """What its numbers count; those in % are shares from 0 to 1."""
    steps: list[int]
    values: list[float]

    @property
    def is_share(self) -> bool:
        """Whether its numbers are from 0 to 1."""
        return self.unit.endswith("in %")


@dataclass(frozen=True, slots=True)
class BehaviourChange:
    """One change, in steps."""

    kind: str
    name: str
    is_share: bool
    after_step: int
    """The last step that still was at the old level..."""
    by_step: int
    """...and the first at the new one."""
    before: float
    after: float
    p: float


def series_of(lines: Iterable[Mapping[str, Any]]) -> list[Series]:
    """The series of one stage's lines, in the order in which their names first occur."""
    found: dict[tuple[str, str], Series] = {}
    for line in lines:
        kind, step = str(line["kind"]), int(line["step"])
        for name, unit, value in _numbers(line):
            if not isfinite(value):
                continue
            series = found.setdefault((kind, name), Series(kind, name, unit, [], []))
            series.steps.append(step)
            series.values.append(value)
    return list(found.values())


def not_finite(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """What was no finite number, NaN above all, and at which steps: a line for each name."""
    steps: dict[str, list[int]] = {}
    for line in lines:
        for name, _, value in _numbers(line):
            if not isfinite(value):
                steps.setdefault(name, []).append(int(line["step"]))
    return [
        f"{name}: no finite number at {len(found)} steps, the first of them step {min(found)}; changes are sought in the others"
        for name, found in steps.items()
    ]


def changes_of(series: Sequence[Series], *, false_alarms: float = FALSE_ALARMS) -> list[BehaviourChange]:
    """When behaviour changed, in the order of steps. The chance of a false alarm is for all series together (Bonferroni)."""
    changes = []
    for one in series:
        for change in find_changes(one.values, false_alarms=false_alarms / len(series)):
            if _is_worth_telling(one, change.before, change.after):
                between = (one.steps[change.first], one.steps[change.last])
                changes.append(
                    BehaviourChange(one.kind, one.name, one.is_share, *between, change.before, change.after, change.p)
                )
    return sorted(changes, key=lambda change: (change.by_step, change.p))


def _is_worth_telling(series: Series, before: float, after: float) -> bool:
    if series.is_share:
        return abs(after - before) >= LEAST_SHARE
    return abs(after - before) >= LEAST_RELATIVE * max(abs(before), abs(after))


def _numbers(line: Mapping[str, Any]) -> Iterable[tuple[str, str, float]]:
    everything = line.get("datasets", {}).get("all", {})
    for key, (name, unit) in BEHAVIOUR.items():
        if isinstance(everything.get(key), int | float):
            yield name, unit, float(everything[key])
    for name, share in line.get("watched", {}).items():
        if name not in {known for known, _ in BEHAVIOUR.values()}:
            yield str(name), WATCHED, float(share)
    for role, numbers in line.get("roles", {}).items():
        update = (numbers or {}).get("update") or {}
        for key, (name, unit) in LEARNING.items():
            if isinstance(update.get(key), int | float):
                yield f"{name} of {role}", unit, float(update[key])
