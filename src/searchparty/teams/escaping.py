"""Making foreign text harmless before a model reads it (contract 3).

Passages, questions and other agents' reports are data. Two things could make them more: a team's own tags, which would look
like an action, and the control tokens of a model's chat template. Control tokens are handled where ids are made (foreign
text is encoded with special tokens off); only where a model is sent plain text must they be defused here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_CONTROL_MARKS = re.compile(
    r"<(?=[|｜])"  # <|im_end|>, <|eot_id|>, <｜end▁of▁sentence｜>
    r"|<(?=/?s>)|<(?=bos>|eos>|pad>|unk>)"
    r"|<(?=(?:start|end)_of_turn>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
    r"|<(?=<SYS>>|</SYS>>)"
)

_SURROGATES = re.compile("[\ud800-\udfff]")


def escape_tags(text: str, tags: Iterable[str]) -> str:
    """Replace the `<` of every opening or closing form of the given tags, in any case and spacing, by `&lt;`.

    All other text, HTML included, stays as it is.
    """
    names = tuple(tags)
    if not names or "<" not in text:
        return text
    return _openings(names).sub("&lt;", text)


@lru_cache(maxsize=64)
def _openings(names: tuple[str, ...]) -> re.Pattern[str]:
    """Matches the `<` of the tags. A team has one set of them, so it is compiled once per team."""
    return re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(map(re.escape, names))})\b)", re.IGNORECASE)


def defuse_control_marks(text: str) -> str:
    """Replace the first character of what common chat templates use as control tokens by its HTML entity.

    For models that are sent text, where a server would read such marks as control tokens.
    """
    return _CONTROL_MARKS.sub(lambda mark: "&lt;" if mark[0] == "<" else "&#91;", text)


def without_surrogates(text: str) -> str:
    """The text with every lone surrogate, which no file and no server can take, replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
