"""When did a series of numbers change: Pettitt's rank test, applied again on both sides of every change that it finds.

Knows numbers only. The test asks whether the ranks before some point differ from those after it. It needs no distribution, one
odd value cannot decide it, and ties only make it more careful.

For x of length n and the point after the k-th value, U_k = 2 · (sum of the ranks of the first k) − k · (n + 1), and
p = 2 · exp(−6 · max|U_k|² / (n³ + n²)). Source: Pettitt 1979, "A non-parametric approach to the change-point problem". If there
is a change, its place is where the two parts' ranks differ most for their sizes, where U_k² / (k · (n − k)) is largest: the
largest |U_k| itself is drawn towards the middle. Dividing again at every change found is binary segmentation (Vostrikova 1981);
then every change is tested once more between its neighbours, and dropped if it was only the shadow of another one.

A long way up or down is found as a staircase. Two neighbouring changes in one direction are one that takes its time if the
values between them go themselves, by a line fitted to them, at least a quarter of the way from the middle of the first stair
to the middle of the second. A noisy slope may still be told in two parts.

False alarms: the first test decides whether there is any change, so a series whose values are exchangeable gives an alarm
with a chance of at most `false_alarms`, and several series together too if each gets its share of it. Values that drift or that
depend on their predecessors are not exchangeable: a slow rise is found as a change, which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FALSE_ALARMS = 0.01
"""Chance that a run in which nothing changes is said to have changed."""
QUARTER = 0.25
"""So near to a level counts as at it, and a line that goes so much of a way is on it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of level. Indices count values from 0."""

    first: int
    """The last value that still was at the old level, and..."""
    last: int
    """...the first that was at the new one: the change took place between the two. Within a quarter of the way counts as at a
    level."""
    before: float
    """Median of the values before."""
    after: float
    p: float


def find_changes(values: Sequence[float] | FloatArray, *, false_alarms: float = FALSE_ALARMS) -> list[Change]:
    """The changes in a series, in order; see above for the method and what `false_alarms` promises.

    Raises:
        ValueError: a value is not finite, or `false_alarms` is not between 0 and 1.
    """
    series = np.asarray(values, float)
    if not np.all(np.isfinite(series)):
        raise ValueError("finite values are needed")
    if not 0 < false_alarms < 1:
        raise ValueError(f"a chance between 0 and 1 is needed, got {false_alarms}")
    places = sorted(_divide(series, 0, len(series), false_alarms))
    while places:
        ends = [0, *places, len(series)]
        tested = [pettitt(series[ends[number] : ends[number + 2]])[1] for number in range(len(places))]
        weakest = int(np.argmax(tested))
        if tested[weakest] <= false_alarms:
            around = zip(ends, places, ends[2:], tested, strict=False)
            return _without_stairs(series, [_change(series, *one) for one in around], places)
        del places[weakest]
    return []


def pettitt(values: FloatArray) -> tuple[int, float]:
    """Where a series is best divided in two, as the index of the first value of the second part, and the p of the test.

    Fewer than two values give 0 and 1.
    """
    n = len(values)
    if n < 2:
        return 0, 1.0
    sizes = np.arange(1, n)
    parts = 2 * np.cumsum(_ranks(values))[:-1] - sizes * (n + 1)
    p = min(1.0, 2 * exp(-6 * float(np.abs(parts).max()) ** 2 / (n**3 + n**2)))
    return 1 + int(np.argmax(parts**2 / (sizes * (n - sizes)))), p


def fewest_values(false_alarms: float) -> int:
    """How long a series must be before any change in it can be told: where a clean step in its middle reaches the p."""
    n = 2
    while 2 * exp(-6 * (n * n / 4) ** 2 / (n**3 + n**2)) > false_alarms:
        n += 2
    return n


def _divide(series: FloatArray, start: int, end: int, level: float) -> Iterator[int]:
    place, p = pettitt(series[start:end])
    if p <= level:
        yield start + place
        yield from _divide(series, start, start + place, level)
        yield from _divide(series, start + place, end, level)


def _change(series: FloatArray, start: int, place: int, end: int, p: float) -> Change:
    before, after = float(np.median(series[start:place])), float(np.median(series[place:end]))
    way = np.zeros(end - start) if before == after else (series[start:end] - before) / (after - before)
    middle = place - start
    old, new = np.flatnonzero(way[:middle] <= QUARTER), middle + np.flatnonzero(way[middle:] >= 1 - QUARTER)
    first = start + int(old[-1]) if len(old) else place - 1
    return Change(first, start + int(new[0]) if len(new) else place, before, after, p)


def _without_stairs(series: FloatArray, changes: Sequence[Change], places: Sequence[int]) -> list[Change]:
    """The changes, those of one staircase together."""
    kept: list[Change] = []
    for number, change in enumerate(changes):
        if number and _is_a_slope(series, changes[number - 1], change, places[number - 1], places[number]):
            start = kept.pop()
            change = Change(start.first, change.last, start.before, change.after, min(start.p, change.p))
        kept.append(change)
    return kept


def _is_a_slope(series: FloatArray, one: Change, other: Change, start: int, end: int) -> bool:
    """Whether the values from `start` to `end`, between two changes, are on their way from one to the other."""
    if (one.after > one.before) != (other.after > other.before):
        return False
    if end - start < 2:
        return True
    way = (other.before + other.after - one.before - one.after) / 2
    rise = float(np.polyfit(np.arange(end - start), series[start:end], 1)[0]) * (end - start)
    return rise / way >= QUARTER


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middles: FloatArray = ends - (counts - 1) / 2
    return middles[inverse]
