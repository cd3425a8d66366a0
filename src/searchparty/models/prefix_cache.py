"""Remembers the keys and values of token prefixes, in blocks, so that no prefix is computed twice.

A block is known by the block before it and its own ids, so a prefix that many sequences share is held once. Knows nothing of
models: a block's content is any tensor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch

BLOCK_TOKENS = 16
BlockKey = tuple[int, tuple[int, ...]]


class PrefixCache:
    """Least recently used blocks are forgotten first, and of one sequence the later blocks before the earlier ones."""

    def __init__(self, max_tokens: int) -> None:
        """`max_tokens` bounds what is held; below one block nothing is."""
        self._max_blocks = max_tokens // BLOCK_TOKENS
        self._blocks: OrderedDict[BlockKey, tuple[int, torch.Tensor]] = OrderedDict()
        self._next_number = 1

    def match(self, ids: Sequence[int]) -> list[torch.Tensor]:
        """The blocks of the longest known prefix of `ids` that leaves at least one token over."""
        keys, _ = self._known(ids[:-1])
        blocks = [self._blocks[key][1] for key in keys]
        self._touch(keys)
        return blocks

    def matched_tokens(self, ids: Sequence[int]) -> int:
        """How many tokens `match` would give, without counting as a use."""
        return len(self._known(ids[:-1])[0]) * BLOCK_TOKENS

    def missing(self, ids: Sequence[int]) -> BlockKey | None:
        """Names the first block of `ids` that is not known; None if all are. Two prompts that miss the same block share it."""
        keys, parent = self._known(ids)
        start = len(keys) * BLOCK_TOKENS
        block = tuple(ids[start : start + BLOCK_TOKENS])
        return (parent, block) if len(block) == BLOCK_TOKENS and self._max_blocks else None

    def insert(self, ids: Sequence[int], read: Callable[[int, int], torch.Tensor]) -> None:
        """Remember the whole blocks of `ids`; `read(start, stop)` gives the content of those that are new."""
        keys, parent = self._known(ids)
        for start in range(len(keys) * BLOCK_TOKENS, len(ids) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
            if len(keys) >= self._max_blocks:
                break
            stop = start + BLOCK_TOKENS
            key = (parent, tuple(ids[start:stop]))
            parent, self._next_number = self._next_number, self._next_number + 1
            self._blocks[key] = (parent, read(start, stop))
            keys.append(key)
        self._touch(keys)
        while len(self._blocks) > self._max_blocks:
            self._blocks.popitem(last=False)

    def clear(self) -> None:
        """Forget everything (the weights changed)."""
        self._blocks.clear()

    def _known(self, ids: Sequence[int]) -> tuple[list[BlockKey], int]:
        """Keys of the known blocks at the start of `ids`, and the number of the last (0 for none)."""
        keys: list[BlockKey] = []
        parent = 0
        for start in range(0, len(ids) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
            key = (parent, tuple(ids[start : start + BLOCK_TOKENS]))
            found = self._blocks.get(key)
            if found is None:
                break
            parent = found[0]
            keys.append(key)
        return keys, parent

    def _touch(self, keys: Sequence[BlockKey]) -> None:
        for key in reversed(keys):
            self._blocks.move_to_end(key)
