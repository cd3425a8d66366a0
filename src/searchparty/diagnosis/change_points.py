"""When did a series of numbers change: Pettitt's rank test, applied again on both sides of every change that it finds.

Knows numbers only. The test asks whether the ranks before some point differ from those after it. It needs no distribution, one
odd value cannot decide it, and ties only make it more careful.

For x of length n and the point after the k-th value, U_k = 2 · (sum of the ranks of the first k) − k · (n + 1), and
p = 2 · exp(−6 · max|U_k|² / (n³ + n²)). Source: Pettitt 1979, "A non-parametric approach to the change-point problem". If there
is a change, its place is where the two parts' ranks differ most for their sizes, where U_k² / (k · (n − k)) is largest: the
largest |U_k| itself is drawn towards the middle. Dividing again at every change found is binary segmentation (Vostrikova 1981);
then every change is tested once more between its neighbours, and dropped if it was only the shadow of another one.

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


@dataclass(frozen=True, slots=True)
class Change:
    """One change of level. Indices count values from 0."""

    at: int
    """The first value of the new level, at the best division in two."""
    first: int
    """The last value that still was at the old level, and..."""
    last: int
    """...the first that was at the new one: the change took place between the two. A quarter of the way counts as the level."""
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
    while True:
        ends = [0, *places, len(series)]
        tested = [pettitt(series[ends[number] : ends[number + 2]]) for number in range(len(places))]
        weakest = max(range(len(places)), key=lambda number: tested[number][1], default=None)
        if weakest is None or tested[weakest][1] <= false_alarms:
            return [
                _change(series, ends[number], place, ends[number + 2], tested[number][1]) for number, place in enumerate(places)
            ]
        del places[weakest]


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
    old, new = np.flatnonzero(way[:middle] <= 0.25), middle + np.flatnonzero(way[middle:] >= 0.75)
    first = start + int(old[-1]) if len(old) else place - 1
    return Change(place, first, start + int(new[0]) if len(new) else place, before, after, p)


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middles: FloatArray = ends - (counts - 1) / 2
    return middles[inverse]
