"""The passages that a team was shown, with the text that it saw.

A record of a search holds ids and titles; the text stands in the observation that followed, in the form that
`teams.evidence.format_passages` gives it. Where a team shows passages in another form, the text is unknown and left empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from searchparty.episodes.types import Episode, Retrieval, SpanKind
from searchparty.questions.types import Question

_END = "\n\x1f\n"
"""Stands between two observations."""


@dataclass(frozen=True, slots=True)
class SeenPassage:
    """One passage, as it was first shown with its text."""

    id: str
    title: str
    text: str
    """Empty if it is not known."""


def seen_passages(episode: Episode) -> list[SeenPassage]:
    """Every passage that was found in an episode, each once, in the order of finding."""
    found: dict[str, SeenPassage] = {}
    for transcript in episode.agents:
        shown = _END.join(span.text for span in transcript.spans if span.kind is SpanKind.OBSERVATION)
        for passage in _shown_passages(shown, [one for one in episode.retrievals if one.agent == transcript.agent]):
            if passage.id not in found or (passage.text and not found[passage.id].text):
                found[passage.id] = passage
    order = {hit.id: hit.title for retrieval in episode.retrievals for hit in retrieval.hits}
    return [found.get(id) or SeenPassage(id, title, "") for id, title in order.items()]


def golden_passages(question: Question, seen: Iterable[SeenPassage]) -> list[SeenPassage | None]:
    """For each supporting passage of a question the one that was seen, or None; empty if the source names none.

    Ids decide where a question has them, else titles, letter case aside.
    """
    passages = list(seen)
    if question.supporting_ids:
        by_id = {passage.id: passage for passage in passages}
        return [by_id.get(wanted) for wanted in question.supporting_ids]
    by_title = {passage.title.strip().casefold(): passage for passage in reversed(passages)}
    return [by_title.get(title.strip().casefold()) for title in question.supporting_titles]


def _shown_passages(shown: str, searches: Sequence[Retrieval]) -> Iterator[SeenPassage]:
    """The passages of one agent's searches, looked up one after another in what it observed."""
    at = 0
    for search in searches:
        for rank, hit in enumerate(search.hits, start=1):
            heading = f"Passage {rank}: {hit.title}\n"
            begin = shown.find(heading, at)
            if begin < 0:
                yield SeenPassage(hit.id, hit.title, "")
                continue
            at = begin + len(heading)
            ends = [shown.find(mark, at) for mark in (f"\nPassage {rank + 1}: ", _END)]
            yield SeenPassage(hit.id, hit.title, shown[at : min((end for end in ends if end >= 0), default=len(shown))].strip())
