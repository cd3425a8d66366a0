"""Tables in narrow terminals: in parts, and every number whole."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from searchparty.evaluation.wide_tables import LOOK, in_parts, print_tables


def table_of(columns: int, name: str = "2wikimultihopqa") -> Table:
    table = Table(title="quality", caption="of all", **LOOK)
    table.add_column("dataset", no_wrap=True)
    for number in range(columns):
        table.add_column(f"column\n{number}", justify="right", no_wrap=True)
    table.add_row(name, *(f"{number}.5\n[{number}.1, {number}.9]" for number in range(columns)))
    table.add_section()
    table.add_row("macro", *("–" for _ in range(columns)))
    return table


def printed(table: Table, width: int) -> str:
    stream = io.StringIO()
    print_tables(Console(file=stream, width=width), table)
    return stream.getvalue()


def test_a_table_that_fits_is_left_as_it_is() -> None:
    table = table_of(3)
    assert in_parts(table, 80) == [table]


@settings(deadline=None)
@given(st.integers(1, 24), st.integers(40, 120))
def test_no_line_is_wider_than_the_terminal_and_no_interval_is_cut(columns: int, width: int) -> None:
    said = printed(table_of(columns), width)
    assert max(map(len, said.splitlines())) <= width and "…" not in said
    assert all(said.count(f"[{number}.1, {number}.9]") == 1 for number in range(columns))


def test_each_part_repeats_the_first_column_and_the_title_stands_once() -> None:
    parts = in_parts(table_of(12), 60)
    assert len(parts) > 1 and all(list(part.columns[0].cells) == ["2wikimultihopqa", "macro"] for part in parts)
    assert [part.title for part in parts] == ["quality"] + [None] * (len(parts) - 1)
    assert [part.caption for part in parts] == [None] * (len(parts) - 1) + ["of all"]
    assert all(part.rows[0].end_section for part in parts)


def test_a_long_first_column_is_folded_and_loses_nothing() -> None:
    path = "/".join(["some-folder"] * 9)
    lines = [line.split("  ")[0].strip() for line in printed(table_of(2, path), 60).splitlines()]
    assert path in "".join(lines)
