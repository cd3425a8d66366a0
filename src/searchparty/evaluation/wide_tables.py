"""Tables that are wider than the terminal, in parts below each other, so that no number is cut and no interval torn.

Knows tables of texts, not what they say. Each part repeats the first column.
"""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table

LOOK: dict[str, Any] = {"title_justify": "left", "box": SIMPLE, "padding": (0, 1, 0, 0), "pad_edge": False, "show_edge": False}
_GAP = 2
"""Between two columns."""
_FIRST = 0.4
"""Most of the width that the first column takes where there is not room for all; it wraps then."""


def print_tables(console: Console, *tables: Table) -> None:
    """Print each as a whole, or where it is too wide in parts, with an empty line between tables."""
    for number, table in enumerate(tables):
        if number:
            console.print()
        for part in in_parts(table, console.width):
            console.print(part)


def in_parts(table: Table, width: int) -> list[Table]:
    """The table itself if it fits, else tables of some of its columns each."""
    needed = [_needed(column) for column in table.columns]
    if sum(needed) + _GAP * (len(needed) - 1) <= width:
        return [table]
    first = min(needed[0], int(_FIRST * width))
    parts: list[list[int]] = []
    room = 0
    for place in range(1, len(needed)):
        if needed[place] + _GAP > room:
            parts.append([])
            room = width - first
        parts[-1].append(place)
        room -= needed[place] + _GAP
    made = [_part(table, [0, *places], first) for places in parts]
    made[0].title, made[-1].caption = table.title, table.caption
    return made


def _needed(column: Column) -> int:
    lines = [line for text in (column.header, *column.cells) for line in str(text).split("\n")]
    return max(map(cell_len, lines), default=0)


def _part(table: Table, places: list[int], first: int) -> Table:
    part = Table(**LOOK)
    for place in places:
        column = table.columns[place]
        part.add_column(
            column.header, justify=column.justify, no_wrap=place > 0, max_width=None if place else first, overflow="fold"
        )
    cells = [list(table.columns[place].cells) for place in places]
    for row, texts in zip(table.rows, zip(*cells, strict=True), strict=True):
        part.add_row(*texts, end_section=row.end_section)
    return part
