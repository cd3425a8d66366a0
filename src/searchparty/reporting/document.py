"""What a report is made of, before it has a format: sections of sentences, tables and drawings.

All texts are plain: whatever stands in them, markup included, is shown as it is. Escaping is each format's own business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Number:
    """A number with how it is shown. The ends are those of its 95 % interval."""

    value: float | None
    """As it was computed; None if it is not known."""
    digits: int = 1
    scale: float = 1.0
    """What it is multiplied by to be shown: 100 for per cent. Data formats get the value as it is."""
    low: float | None = None
    high: float | None = None
    signed: bool = False

    @property
    def text(self) -> str:
        """`41.2 [37.0, 45.1]`, or a dash."""
        if self.value is None:
            return "–"
        sign = "+" if self.signed else ""
        value, *ends = (
            f"{self.scale * end:{sign},.{self.digits}f}" for end in (self.value, self.low, self.high) if end is not None
        )
        return f"{value} [{', '.join(ends)}]" if len(ends) == 2 else value


Cell = str | Number


def text_of(cell: Cell) -> str:
    """What a person reads in a cell."""
    return cell if isinstance(cell, str) else cell.text


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. Every row has a cell for every column."""

    name: str
    """For files: small letters and hyphens, unique in a document."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse a row of another length: a cell would stand under a wrong heading."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row of {len(row)} cells under {len(self.columns)} columns")

    @property
    def numeric(self) -> list[bool]:
        """Of each column, whether it holds numbers only."""
        return [bool(self.rows) and all(isinstance(row[at], Number) for row in self.rows) for at in range(len(self.columns))]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing made by this program."""

    name: str
    title: str
    svg: str
    """One `svg` element, ready to stand inside a page."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document with its heading."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    drawings: Sequence[Drawing] = ()
    level: int = 2


@dataclass(frozen=True, slots=True)
class Document:
    """The whole."""

    title: str
    sections: list[Section] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        """All of them, in order."""
        return [table for section in self.sections for table in section.tables]

    @property
    def drawings(self) -> list[Drawing]:
        """All of them, in order."""
        return [drawing for section in self.sections for drawing in section.drawings]
