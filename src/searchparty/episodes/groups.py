"""Which samples may be compared with each other, by explicit ids carried in the records (contract 5).

Episodes of one question form a group (the Leader's); candidates of one call in one episode form another (the
Answerer's). Never by question text, position or shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from searchparty.episodes.types import Episode, Span, Transcript


class EpisodeGroup(NamedTuple):
    """Episodes of one question."""

    question_key: str


class CandidateGroup(NamedTuple):
    """Candidates of one call of one agent in one episode."""

    question_key: str
    sample: int
    agent: str
    call: int


def episode_group(episode: Episode) -> EpisodeGroup:
    """The group in which an episode as a whole is compared."""
    return EpisodeGroup(episode.question_key)


def candidate_groups(episode: Episode, transcript: Transcript) -> dict[CandidateGroup, list[Span]]:
    """The action spans of an agent by the call that sampled them, in the order of their candidates."""
    groups: dict[CandidateGroup, list[Span]] = {}
    for span in transcript.spans:
        if span.call is not None:
            key = CandidateGroup(episode.question_key, episode.sample, transcript.agent, span.call)
            groups.setdefault(key, []).append(span)
    return groups


def group_episodes(episodes: Iterable[Episode]) -> dict[EpisodeGroup, list[Episode]]:
    """Episodes by group. A group of one teaches nothing by comparison; the caller counts and shows such groups."""
    groups: dict[EpisodeGroup, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode_group(episode), []).append(episode)
    return groups
