"""Splitting a piece of chat template at the control tokens in it. Knows no particular template or tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache


@lru_cache(maxsize=64)
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Matches any control token; of two that start at the same place, the longer one."""
    return re.compile("(" + "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) + ")")


def split_at_controls(text: str, controls: Collection[str]) -> list[str]:
    """The parts of `text`, control tokens at the odd places: `[plain, control, plain, ...]`. Plain parts may be empty."""
    return _pattern(frozenset(controls)).split(text) if controls else [text]


def encode_around_controls(text: str, controls: Mapping[str, int], encode: Callable[[str], list[int]]) -> list[int]:
    """Ids of `text`: control tokens by name, what lies between them through `encode`."""
    ids: list[int] = []
    for place, part in enumerate(split_at_controls(text, controls.keys())):
        if place % 2:
            ids.append(controls[part])
        elif part:
            ids.extend(encode(part))
    return ids
