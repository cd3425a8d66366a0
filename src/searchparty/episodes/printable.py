"""Foreign text made safe to print: no control character of a passage may reach the terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text with every control and text-direction character shown by its code; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(character if _is_safe(character) else f"\\x{ord(character):02x}" for character in text)


def brief(text: str, length: int = 160) -> str:
    """As `printable`, in one line of at most `length` characters and a mark where there was more."""
    line = " ".join(printable(text).split())
    return line if len(line) <= length else f"{line[:length]} …"


def _is_safe(character: str) -> bool:
    if character in "\n\t":
        return True
    return (
        unicodedata.category(character) not in ("Cc", "Cs")
        and character not in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )
