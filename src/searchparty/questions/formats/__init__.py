"""The registry of formats. A new format is one `Format` in a module of this folder and one line here."""

from __future__ import annotations

from searchparty.questions.formats.base import Format
from searchparty.questions.formats.cases import Cases, read_excerpt
from searchparty.questions.formats.multihop import HOTPOTQA, HOTPOTQA_HF, IRCOT, MUSIQUE, TWO_WIKI
from searchparty.questions.formats.native import NATIVE
from searchparty.questions.formats.retrieval_sets import BEIR, DPR_JSON, DPR_TSV
from searchparty.questions.formats.search_rl import AGENTIC_RAG, FLASHRAG, R1_SEARCHER, SEARCH_R1
from searchparty.questions.formats.single_hop import AMBIGQA, BAMBOOGLE, KILT, NQ_OPEN, POPQA

_PLAIN = (
    NATIVE,
    SEARCH_R1,
    AGENTIC_RAG,
    FLASHRAG,
    MUSIQUE,
    TWO_WIKI,
    HOTPOTQA_HF,
    HOTPOTQA,
    IRCOT,
    KILT,
    AMBIGQA,
    POPQA,
    DPR_TSV,
    DPR_JSON,
    BAMBOOGLE,
    R1_SEARCHER,
    BEIR,
    NQ_OPEN,
)
"""Tried in this order: a format stands before those whose test it would pass as well."""

CASES = Cases(
    name="cases",
    summary="a collection: JSON lines with why, each a question, a passage or a raw line",
    matches=lambda fields: "why" in fields,
    read=read_excerpt,
    others=_PLAIN,
)

FORMATS: dict[str, Format] = {form.name: form for form in (CASES, *_PLAIN)}
"""Every format by the name that `--format` takes, in the order in which they are tried."""
