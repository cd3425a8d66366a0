"""Numbers on the command line."""

from __future__ import annotations

import argparse


def positive(word: str) -> int:
    """A whole number from 1. Raises what argparse turns into one line."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 is needed, not {word!r}")
    return int(word)


def whole(word: str) -> int:
    """A whole number from 0. Raises what argparse turns into one line."""
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number from 0 is needed, not {word!r}")
    return int(word)
