"""The reports of an episode, and which of them reached whoever answered."""

from __future__ import annotations

import re
from dataclasses import dataclass

from searchparty.episodes.types import AgentEnd, Episode, Transcript
from searchparty.teams.actions import Action, TagRules, read_action


@dataclass(frozen=True, slots=True)
class Reports:
    """What Searchers wrote. Any agent whose tags include `report` counts as one, whatever its team."""

    written: dict[int, str]
    """Number, from 1 in the order of creation of the Searchers, to text; those that gave none are left out."""
    selected: tuple[int, ...]
    """Numbers of those that the answering agent was given: chosen by a Leader, or all where nobody chooses."""

    @property
    def selected_text(self) -> str:
        """The selected reports one after another."""
        return "\n".join(self.written[number] for number in self.selected if number in self.written)

    @property
    def text(self) -> str:
        """All reports one after another."""
        return "\n".join(self.written.values())


def reports_of(episode: Episode) -> Reports | None:
    """The reports of an episode; None for a team in which nobody reports."""
    searchers = [transcript for transcript in episode.agents if "report" in transcript.tags]
    leaders = [transcript for transcript in episode.agents if "select" in transcript.tags]
    if not searchers and not leaders:
        return None
    contents = {number: last_action(searcher, "report") for number, searcher in enumerate(searchers, start=1)}
    written = {number: report for number, report in contents.items() if report is not None}
    if not leaders:
        return Reports(written, tuple(written))
    chosen = last_action(leaders[0], "select") or ""
    numbers = dict.fromkeys(int(number) for number in re.findall(r"[0-9]{1,9}", chosen))
    return Reports(written, tuple(number for number in numbers if number in written))


def last_action(transcript: Transcript, tag: str) -> str | None:
    """The content of a finished agent's last turn, if it is this action."""
    turn = transcript.last_turn()
    if not turn or transcript.end is not AgentEnd.FINISHED:
        return None
    rules = TagRules((tag,), known=tuple(transcript.tags))
    action = read_action(turn[0].text, rules, starts_in_thinking=transcript.starts_in_thinking)
    return action.content if isinstance(action, Action) else None
