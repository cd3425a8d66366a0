"""Whether every report went the one way that it may: written by its Searcher, observed by whoever reads it.

Reads texts, because that is what travels between agents; that the tokens of an observation are not trained is shown by the
masks. Any agent whose tags include `report` counts as a Searcher, whatever its team.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from searchparty.credit.sequences import last_turn_taken
from searchparty.episodes.types import AgentEnd, Episode, SpanKind, Transcript
from searchparty.teams.actions import Action, TagRules, read_action
from searchparty.training.audit_report import Proved, Rule, Violation, of_episode

SHOWN = 60
"""Characters of a report in a line."""


def report_faults(episode: Episode, proved: Proved) -> Iterator[Violation]:
    """Reports that did not reach a reader, as an observation, in whole."""
    for reporter, report, readers in _journeys(episode):
        for reader in readers:
            if _observes(reader, report):
                proved.reports += 1
            else:
                shown = report if len(report) <= SHOWN else f"{report[:SHOWN]} …"
                what = f"observations of {reader.agent}"
                found = f"none holds the report of {reporter.agent}"
                place = (episode.question_key, episode.sample)
                yield of_episode(place, Rule.REPORTS, what, found, repr(shown), reporter.agent)


def _journeys(episode: Episode) -> Iterator[tuple[Transcript, str, list[Transcript]]]:
    """Every report with its writer and those who must have observed it: who gave the task or took over, and whom it was
    selected for. An agent that acted no more after the report was written has observed nothing."""
    searchers = [transcript for transcript in episode.agents if "report" in transcript.tags]
    for number, searcher in enumerate(searchers, start=1):
        report = _action(searcher, "report") if searcher.end is AgentEnd.FINISHED else None
        if report is None:
            continue
        readers = [one for one in episode.agents if one.agent == searcher.parent or one.parent == searcher.agent]
        for reader in list(readers):
            if number in _selected(reader):
                readers += [one for one in episode.agents if one.parent == reader.agent and one not in searchers]
        yield searcher, report, [one for one in readers if _last_step(one) > _last_step(searcher)]


def _selected(leader: Transcript) -> Iterable[int]:
    """Numbers of the reports that a Leader selected, in the order in which its Searchers were created."""
    selection = _action(leader, "select") if "select" in leader.tags and leader.end is AgentEnd.FINISHED else None
    return [int(number) for number in re.findall(r"\d+", selection or "")]


def _action(transcript: Transcript, tag: str) -> str | None:
    """The content of the agent's last turn, if that is this action."""
    turn = last_turn_taken(transcript)
    if not turn:
        return None
    rules = TagRules((tag,), known=tuple(transcript.tags))
    action = read_action(turn[0].text, rules, starts_in_thinking=transcript.starts_in_thinking)
    return action.content if isinstance(action, Action) else None


def _last_step(transcript: Transcript) -> int:
    return max((call.step for call in transcript.calls if call.failure is None), default=0)


def _observes(reader: Transcript, text: str) -> bool:
    wanted = _unescaped(text)
    return any(wanted in _unescaped(span.text) for span in reader.spans if span.kind is SpanKind.OBSERVATION)


def _unescaped(text: str) -> str:
    """The text as it was before its tags and control marks were made harmless."""
    return text.replace("&lt;", "<").replace("&#91;", "[")
