"""Where a stop string ends a text. Knows nothing of tokens."""

from __future__ import annotations

from collections.abc import Sequence


def first_stop_end(text: str, stops: Sequence[str]) -> int | None:
    """The position just after the stop string that is completed first, None if there is none.

    An empty stop string never matches.
    """
    ends = [at + len(stop) for stop in stops if stop and (at := text.find(stop)) >= 0]
    return min(ends, default=None)
