"""Which of the well-known question sets a name, an id or a path speaks of. Knows nothing of formats or records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

SPELLINGS = {
    "nq": ("nq", "naturalquestions", "nqopen", "efficientqa"),
    "triviaqa": ("triviaqa", "trivia", "tqa"),
    "popqa": ("popqa",),
    "ambigqa": ("ambigqa", "ambig", "ambignq"),
    "hotpotqa": ("hotpotqa", "hotpot"),
    "2wikimultihopqa": ("2wikimultihopqa", "2wikimultihop", "2wikimqa", "2wiki"),
    "musique": ("musique",),
    "bamboogle": ("bamboogle",),
}
"""The name used here, and the words by which others call the same set, in lower case."""

_KNOWN = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}

_ID_PATTERNS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"[2-4]hop\d?__"), "musique"),
    (re.compile(r"5a[0-9a-f]{22}$"), "hotpotqa"),
    (re.compile(r"[0-9a-f]{12}11e[ab][0-9a-f]{16}$"), "2wikimultihopqa"),
)
"""Ids that one set alone has: hop prefixes, the object ids of HotpotQA's database, the time-based UUIDs of 2Wiki."""


def dataset_in_name(name: str) -> str | None:
    """The one known set that `name` speaks of (`sewon/ambig_qa` is ambigqa); None if it names none or more than one."""
    words = [word for word in re.split(r"[^0-9a-z]+", name.lower()) if word]
    words += [first + second for first, second in pairwise(words)]
    found = {_KNOWN[word] for word in words if word in _KNOWN}
    return found.pop() if len(found) == 1 else None


def our_spelling(name: str) -> str:
    """The known set that `name` speaks of, else `name` itself."""
    return dataset_in_name(name) or name


def dataset_in_id(record_id: str) -> str | None:
    """The set whose ids look like `record_id`, or None."""
    return next((name for pattern, name in _ID_PATTERNS if pattern.match(record_id)), None)


def dataset_in_path(path: Path) -> str | None:
    """The set that the file's name speaks of or that its folder is called after (`nq/test.jsonl`), or None."""
    return dataset_in_name(path.name) or _KNOWN.get(path.parent.name.lower())
