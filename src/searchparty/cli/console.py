"""The console that commands print to: as wide as the terminal, and of a fixed readable width in files and pipes."""

from __future__ import annotations

from rich.console import Console

WIDTH_OUTSIDE_TERMINALS = 110


def make_console(*, stderr: bool = False) -> Console:
    """A console for standard output or standard error. It reads no markup: what it prints may come from anywhere."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH_OUTSIDE_TERMINALS
    return console
