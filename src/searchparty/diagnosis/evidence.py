"""The way of the evidence through a team, and at which interface a wrong episode lost it.

found → in a report → in a selected report, or shown to the Answerer → in the answer. Of each wrong episode the furthest place
is looked for that the evidence reached; the interface behind it is where it was lost. Three definitions, all about words and
none about meaning:

1. A text *holds the evidence* if it names a golden answer. Where that says nothing, because the answer is yes or no or stands
   in the question, it must carry every golden passage.
2. A text *carries* a passage if it names the passage's title, a closing `(film)` aside, and at least one more content word of
   it that stands neither in the title nor in the question.
3. The evidence is *found* if every golden passage is among the hits; where the source names none, if a passage that was shown
   holds the evidence.

A report that says the same in other words is missed, one that names the right thing for a wrong reason is counted: read the
episodes that are named. Nothing here is ever a score or a reward.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from searchparty.diagnosis.passages import SeenPassage, golden_passages, seen_passages
from searchparty.diagnosis.reports import Reports
from searchparty.diagnosis.words import content_words, names, words_of
from searchparty.episodes.types import Episode, SpanKind, StopReason
from searchparty.questions.types import Question

_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)\s*$")


class Interface(StrEnum):
    """Where an episode that earned nothing went wrong. The list is closed, and every such episode has exactly one."""

    SERVICE = "service"
    """A model, the retriever or the team's own code failed: says nothing about the roles."""
    FORMAT = "format"
    """The episode ended without a well-formed answer: a turn in the wrong form, a budget used up, a window full."""
    NO_SEARCH = "no_search"
    """An answer was given although nobody had searched."""
    RETRIEVAL = "retrieval"
    """Searches did not find the evidence: queries, or the retriever."""
    REPORT = "report"
    """It was found, and no report holds it."""
    SELECTION = "selection"
    """It was there, and the Answerer did not get all of it: the selected reports do not hold it, or carry fewer golden passages
    than all together; in a team without reports, what the Answerer was shown does not hold it."""
    ANSWER = "answer"
    """The Answerer had it, and answered something else."""
    UNKNOWN = "unknown"
    """The question names no passages, and its answer is none that can be looked for."""


@dataclass(frozen=True, slots=True)
class Journey:
    """How far the evidence of one episode came. None where it cannot be said, or where the team has no such place."""

    golden: int
    """Golden passages that the question names."""
    golden_found: int
    golden_reported: int | None
    """Of these, the ones that the reports carry; None for a team without reports."""
    golden_selected: int | None
    found: bool | None
    reported: bool | None
    selected: bool | None
    shown: bool | None
    """Whether what the answering agent observed holds the evidence; for teams without reports."""


def journey_of(episode: Episode, question: Question, reports: Reports | None) -> Journey:
    """Follow the evidence of one question through one episode; `reports` are those of the episode."""
    seen = seen_passages(episode)
    golden = golden_passages(question, seen)
    found_golden = [passage for passage in golden if passage is not None]
    texts = [] if reports is None else [reports.text, reports.selected_text]
    carried = [sum(carries(text, passage, question.text) for passage in found_golden) for text in texts]
    held = [_holds(text, question, golden) for text in texts]
    found = len(found_golden) == len(golden) if golden else _any_holds(seen, question)
    return Journey(
        golden=len(golden),
        golden_found=len(found_golden),
        golden_reported=carried[0] if carried else None,
        golden_selected=carried[1] if carried else None,
        found=found,
        reported=held[0] if held else None,
        selected=held[1] if held else None,
        shown=_holds(_observed(episode), question, golden) if reports is None else None,
    )


def lost_at(episode: Episode, journey: Journey) -> Interface:
    """At which interface an episode that earned nothing lost the evidence."""
    if episode.stop_reason.is_service_failure or episode.stop_reason is StopReason.TEAM_ERROR:
        return Interface.SERVICE
    if episode.stop_reason is not StopReason.ANSWERED:
        return Interface.FORMAT
    if not episode.retrievals and could_search(episode):
        return Interface.NO_SEARCH
    has_reports = journey.golden_reported is not None
    left_out = (journey.golden_selected or 0) < (journey.golden_reported or 0)
    if journey.found and not has_reports:
        return Interface.SELECTION if journey.shown is False else Interface.ANSWER
    if journey.selected and not left_out:
        return Interface.ANSWER
    if journey.reported:
        return Interface.SELECTION
    if journey.found is None or (has_reports and journey.reported is None):
        return Interface.UNKNOWN
    if journey.found:
        return Interface.REPORT
    return Interface.RETRIEVAL if episode.retrievals else Interface.ANSWER


def could_search(episode: Episode) -> bool:
    """Whether a role of the team may search; false for one that answers from memory."""
    return bool(episode.planner_turns) or any({"search", "task"} & set(transcript.tags) for transcript in episode.agents)


def carries(text: str, passage: SeenPassage, question: str) -> bool:
    """Whether a text says something of a passage: definition 2 above."""
    if not names(text, _DISAMBIGUATION.sub("", passage.title) or passage.title):
        return False
    known = set(words_of(passage.title)) | set(words_of(question))
    more = content_words(passage.text) - known
    return not more or bool(more & set(words_of(text)))


def telling_answers(question: Question) -> list[str]:
    """The golden answers that can be looked for in a text: not yes or no, nor what the question itself names."""
    return [
        answer
        for answer in question.golden_answers
        if words_of(answer) and words_of(answer) not in (("yes",), ("no",)) and not names(question.text, answer)
    ]


def _observed(episode: Episode) -> str:
    """Everything that the answering agent was told and shown."""
    if episode.answering_agent is None:
        return ""
    spans = episode.transcript(episode.answering_agent).spans
    return "\n".join(span.text for span in spans if span.kind is SpanKind.OBSERVATION)


def _holds(text: str, question: Question, golden: Sequence[SeenPassage | None]) -> bool | None:
    """Definition 1; None if neither answers nor passages can be looked for."""
    answers = telling_answers(question)
    if answers:
        return any(names(text, answer) for answer in answers)
    if not golden:
        return None
    return all(passage is not None and carries(text, passage, question.text) for passage in golden)


def _any_holds(seen: Sequence[SeenPassage], question: Question) -> bool | None:
    answers = telling_answers(question)
    if not answers:
        return None
    return any(names(f"{passage.title}\n{passage.text}", answer) for passage in seen for answer in answers)
