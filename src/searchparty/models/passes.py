"""Which of several prompts are read in one forward pass. Knows their lengths only.

A pass fills every prompt up to the longest in it. A further pass costs time too, so a little filling is cheaper than none.
"""

from __future__ import annotations

from collections.abc import Sequence


def split_into_passes(lengths: Sequence[int], most_filling: int, most_tokens: int) -> list[range]:
    """Cut prompts, given by ascending length, into runs of consecutive ones.

    Args:
        most_filling: tokens of filling that one pass may have.
        most_tokens: tokens, filling included, that one pass may have; a single longer prompt makes a run of its own.
    """
    runs: list[range] = []
    stop = len(lengths)
    while stop:
        longest, filling, start = lengths[stop - 1], 0, stop - 1
        while start:
            filling += longest - lengths[start - 1]
            if filling > most_filling or (stop - start + 1) * longest > most_tokens:
                break
            start -= 1
        runs.append(range(start, stop))
        stop = start
    return runs[::-1]
