"""Contract 5: groups by explicit ids."""

from __future__ import annotations

from dataclasses import replace

from playing import PARIS, good_lines, play_lines
from searchparty.episodes.groups import CandidateGroup, candidate_groups, group_episodes
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical


def test_contract_5_episodes_are_grouped_by_question_id_and_never_by_question_text() -> None:
    same_text = replace(PARIS, id="q2", golden_answers=("Lutetia",))
    episodes = [play_lines(Chained(), good_lines(), question=question) for question in (PARIS, same_text, PARIS)]
    groups = group_episodes(episodes)
    assert {group.question_key: len(members) for group, members in groups.items()} == {"nq/q1": 2, "nq/q2": 1}


def test_contract_5_candidates_are_grouped_by_call_and_calls_of_two_episodes_never_meet() -> None:
    answers = ["<answer>Paris</answer>", "<answer>Lyon</answer>"]
    episodes = [play_lines(Chained(candidates=2), good_lines(answerer=[answers])) for _ in range(2)]
    episodes[1].sample = 1
    groups = [group for episode in episodes for group in candidate_groups(episode, episode.transcript("answerer.1"))]
    assert groups == [CandidateGroup("nq/q1", 0, "answerer.1", 0), CandidateGroup("nq/q1", 1, "answerer.1", 0)]
    members = candidate_groups(episodes[0], episodes[0].transcript("answerer.1"))[groups[0]]
    assert [(span.candidate, span.text) for span in members] == list(enumerate(answers))


def test_contract_5_every_action_belongs_to_exactly_one_group_and_two_searchers_share_none() -> None:
    lines = good_lines(leader=["<task>a</task><task>b</task>", "<select>1</select>"], searcher=["<report>r</report>"])
    episode = play_lines(Hierarchical(), lines)
    keys = [key for transcript in episode.agents for key in candidate_groups(episode, transcript)]
    assert len(keys) == len(set(keys)) == sum(len(transcript.calls) for transcript in episode.agents)
