"""Remembers the newest answers of a server as the bytes that are sent, up to a limit of memory. Knows nothing of retrieval."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

Key = tuple[Hashable, int, str]
"""Form of the answer, k, query."""

_OVERHEAD = 300
"""Bytes that an entry takes besides its texts, about."""


class Memo:
    """Answers by key; the one that was not asked for longest is forgotten first. For one thread."""

    def __init__(self, most_bytes: int) -> None:
        """Args:
        most_bytes: of all answers and their queries together; 0 remembers nothing.
        """
        self._left = most_bytes
        self._answers: OrderedDict[Key, bytes] = OrderedDict()

    def get(self, key: Key) -> bytes | None:
        """The answer, if it is still known."""
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: Key, answer: bytes) -> None:
        """Remember an answer, and forget others for it."""
        if key in self._answers:
            return
        self._answers[key] = answer
        self._left -= _size(key, answer)
        while self._left < 0:
            self._left += _size(*self._answers.popitem(last=False))


def _size(key: Key, answer: bytes) -> int:
    return 4 * len(key[2]) + len(answer) + _OVERHEAD
