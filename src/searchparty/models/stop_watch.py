"""Which token completes a stop string, told without decoding a completion again for each of its tokens.

Knows ids, their texts and stop strings; does not know an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchparty.models.stops import first_stop_end


class StopWatch:
    """Asked once for every sampled token, of hundreds of completions in turn; see `stops.first_stop_end` for what counts."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._texts: dict[int, str] = {}

    def completed(self, ids: Sequence[int], stops: Sequence[str]) -> bool:
        """Whether the text of `ids` holds a stop string, given that it held none without its last token."""
        if not any(stop and self._may_end(stop, ids[-1]) for stop in stops):
            return False
        # Every token is at least one byte, so a stop string that the last token completed lies within as many tokens.
        window = max(len(stop.encode("utf-8", "replace")) for stop in stops) + 1
        found = first_stop_end(self._decode(ids[-window:]), stops) is not None
        return found and first_stop_end(self._decode(ids), stops) is not None

    def _may_end(self, stop: str, token: int) -> bool:
        """Whether `stop` may end in `token`.

        Its last character does if that is a single byte. A space is never ruled out: some tokenizers print none for a token
        that stands alone.
        """
        last = stop[-1]
        if not last.isascii() or last.isspace():
            return True
        text = self._texts.get(token)
        if text is None:
            text = self._texts[token] = self._decode([token])
        return last in text
