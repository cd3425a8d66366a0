"""A document as one HTML page that needs nothing else: no script, no network, no font, no picture from outside.

Every text is escaped, and a content policy in the page forbids what escaping should have prevented.
"""

from __future__ import annotations

from html import escape

from searchparty.episodes.printable import printable
from searchparty.reporting.document import Document, Drawing, Section, Table, text_of

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; } h3 { font-size: 1.05rem; margin-top: 1.4rem; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; overflow-x: auto; }
figcaption { font-weight: 600; margin-bottom: .3rem; }
.drawing { background: #fff; } .drawing svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th { border-bottom: 1px solid; } td.n, th.n { text-align: right; white-space: nowrap; }
tr + tr td { border-top: 1px solid #8884; }
.note { font-size: .9em; opacity: .8; }
"""


def as_html(document: Document) -> str:
    """The page. Control characters are shown by their codes, everything else as it is."""
    body = "\n".join([f"<h1>{_text(document.title)}</h1>", *map(_section, document.sections)])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(document.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    heading = f"<h{section.level}>{_text(section.title)}</h{section.level}>"
    parts = [f"<p>{_text(sentence)}</p>" for sentence in section.sentences]
    return "\n".join([heading, *parts, *map(_table, section.tables), *map(_drawing, section.drawings)])


def _table(table: Table) -> str:
    kinds = [' class="n"' if is_number else "" for is_number in table.numeric]
    head = "".join(f"<th{kind}>{_text(name)}</th>" for name, kind in zip(table.columns, kinds, strict=True))
    rows = [
        "<tr>" + "".join(f"<td{kind}>{_text(text_of(cell))}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in table.rows
    ]
    notes = [f'<p class="note">{_text(note)}</p>' for note in table.notes]
    grid = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>"
    return "\n".join([f"<figure>\n<figcaption>{_text(table.title)}</figcaption>", grid, *notes, "</figure>"])


def _drawing(drawing: Drawing) -> str:
    return f'<figure class="drawing">\n<figcaption>{_text(drawing.title)}</figcaption>\n{drawing.svg}\n</figure>'


def _text(text: str) -> str:
    return escape(printable(text), quote=True)
