"""The closed language that the tiny policy reads and writes, collected from episodes in which it is used.

Knows how text is cut into pieces; not how pieces are numbered (`tokenizer`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from searchparty.world.names import NAME_PATTERN, SYLLABLES

TAGS = tuple(f"<{slash}{tag}>" for tag in ("task", "select", "search", "report", "answer") for slash in ("", "/"))
"""Each is one token."""
PIECE = rf"{'|'.join(TAGS)}| ?[A-Za-z]+| ?[0-9]{{1,2}}| ?[^A-Za-z0-9\s]|\s"
"""Regular expression of a piece: a tag, a word or sign with the blank before it, one or two digits, or a white space. A year is
two pieces, so that years of a century begin alike."""
_NAME = re.compile(rf" ?{NAME_PATTERN}")
_PIECE = re.compile(PIECE)


def pieces(texts: Iterable[str]) -> list[str]:
    """Every piece that occurs in `texts`, in order of code points; names are left out, for syllables spell them."""
    found = {piece for text in texts for piece in _PIECE.findall(text)}
    return sorted(piece for piece in found if not _NAME.fullmatch(piece))


def fixed_pieces() -> list[str]:
    """Pieces that are in the vocabulary whether they occur or not: tags, syllables and pairs of digits."""
    return [*TAGS, *SYLLABLES, *(f" {syllable}" for syllable in SYLLABLES), *(f"{pair:02d}" for pair in range(100))]
