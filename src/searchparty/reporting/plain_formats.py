"""A document as Markdown, and single tables as CSV and LaTeX. Every text is escaped for its format."""

from __future__ import annotations

import csv
import io
import re

from searchparty.episodes.printable import printable
from searchparty.reporting.document import Document, Number, Section, Table, text_of

_MARKDOWN = re.compile(r"([\\`*_\[\]|~$#<>&!])")
_BLOCK = re.compile(r"^(?:[-+](?= |-|$)|=+$|\d{1,9}(?=[.)](?: |$)))")
"""What at the beginning of a line would make of it an item, a rule or the underline of a heading."""
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "–": "--", "β": r"$\beta$", "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip
"""The last three, since a row that begins with a bracket or a star would be read as an option of the row before."""
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Those of East Asian width are read as formulas where that is the language of the spreadsheet."""


def as_markdown(document: Document) -> str:
    """The document with its tables; drawings are named by the file that holds them."""
    return "\n\n".join([f"# {_markdown(document.title)}", *map(_section, document.sections)]) + "\n"


def as_csv(table: Table) -> str:
    """One table as data: numbers as they were computed, and two more columns for the ends of intervals where there are any.

    Texts that a spreadsheet would take for a formula begin with an apostrophe.
    """
    with_ends = [
        any(isinstance(row[place], Number) and row[place].low is not None for row in table.rows)  # type: ignore[union-attr]
        for place in range(len(table.columns))
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    heads: list[str] = []
    for name, ends in zip(table.columns, with_ends, strict=True):
        heads += [name, f"{name} low", f"{name} high"] if ends else [name]
    writer.writerow(map(_csv_text, heads))
    for row in table.rows:
        cells: list[str] = []
        for cell, ends in zip(row, with_ends, strict=True):
            if isinstance(cell, Number):
                parts = [cell.value, cell.low, cell.high] if ends else [cell.value]
                cells += ["" if part is None else repr(float(part)) for part in parts]
            else:
                cells += [_csv_text(cell), "", ""] if ends else [_csv_text(cell)]
        writer.writerow(cells)
    return stream.getvalue()


def as_latex(table: Table) -> str:
    """One table as `tabular`, with the rules of the package booktabs."""
    shape = "".join("r" if is_number else "l" for is_number in table.numeric)
    rows = [" & ".join(_latex(text_of(cell)) for cell in row) + r" \\" for row in table.rows]
    head = " & ".join(_latex(name) for name in table.columns) + r" \\"
    notes = [f"% {line}" for line in (table.title, *table.notes)]
    lines = [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*(_one_line(note) for note in notes), *lines]) + "\n"


def _section(section: Section) -> str:
    parts = [f"{'#' * section.level} {_markdown(section.title)}"]
    if section.sentences:
        parts.append("\n".join(f"- {_markdown_line(sentence)}" for sentence in section.sentences))
    parts += map(_markdown_table, section.tables)
    parts += [f"{_markdown_line(drawing.title)}: `{drawing.name}.svg`" for drawing in section.drawings]
    return "\n\n".join(parts)


def _markdown_table(table: Table) -> str:
    lines = [
        f"**{_markdown(table.title)}**",
        "",
        f"| {' | '.join(map(_markdown, table.columns))} |",
        "|---" * len(table.columns) + "|",
    ]
    lines += ["| " + " | ".join(_markdown(text_of(cell)) for cell in row) + " |" for row in table.rows]
    for note in table.notes:
        lines += ["", _markdown_line(note)]
    return "\n".join(lines)


def _markdown(text: str) -> str:
    """Escaped by backslashes, the characters of HTML by entities, since some renderers read HTML before backslashes."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return _MARKDOWN.sub(lambda found: entities.get(found[1], rf"\{found[1]}"), _one_line(text))


def _markdown_line(text: str) -> str:
    """As `_markdown`, where the text begins a line or an item."""
    return _BLOCK.sub(lambda found: f"{found[0]}\\" if found[0].isdecimal() else f"\\{found[0]}", _markdown(text))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in _one_line(text))


def _csv_text(text: str) -> str:
    shown = printable(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) or shown.startswith("\t") else shown


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())
