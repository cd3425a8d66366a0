"""The console that commands print to: as wide as the terminal, and of a fixed readable width in files and pipes."""

from __future__ import annotations

from rich.console import Console

WIDTH_OUTSIDE_TERMINALS = 110


def make_console(*, stderr: bool = False) -> Console:
    """A console for standard output or standard error."""
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=WIDTH_OUTSIDE_TERMINALS)
