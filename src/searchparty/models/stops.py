"""Where a stop string ends a text. Knows nothing of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def first_stop_end(text: str, stops: Sequence[str]) -> int | None:
    """The position just after the stop string that is completed first, None if there is none.

    A stop string inside thinking, from `<think>` to the next `</think>`, does not count: a model that thinks about its answer
    quotes the tags. An empty stop string never matches.
    """
    ends = [next((end for end in _ends(text, stop) if not _in_thinking(text, end - len(stop))), None) for stop in stops if stop]
    return min((end for end in ends if end is not None), default=None)


def _ends(text: str, stop: str) -> Iterator[int]:
    at = text.find(stop)
    while at >= 0:
        yield at + len(stop)
        at = text.find(stop, at + 1)


def _in_thinking(text: str, position: int) -> bool:
    return text.rfind("<think>", 0, position) > text.rfind("</think>", 0, position)
