"""What of an episode is counted."""

from __future__ import annotations

from playing import PARIS, good_lines, play_lines
from searchparty.diagnosis.facts import facts_of
from searchparty.evaluation.scorers import SCORERS
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical

SQUAD = SCORERS["squad"]


def test_queries_with_the_same_words_are_repeated_whatever_their_order() -> None:
    searches = ["<search>capital France</search>", "<search>France: the capital?</search>", "<search>Paris</search>"]
    facts = facts_of(play_lines(Chained(), good_lines(searcher=[*searches, "<report>Paris</report>"])), PARIS, SQUAD)
    assert (facts.searches, facts.repeated_searches, facts.empty_searches) == (3, 1, 0)
    assert facts.roles["searcher"].searches == 3


def test_rounds_are_the_assignments_of_the_leader() -> None:
    leader = ["<task>A?</task><task>B?</task>", "<task>C?</task>", "<select>1, 3</select>"]
    facts = facts_of(play_lines(Hierarchical(), good_lines(leader=leader)), PARIS, SQUAD)
    assert (facts.rounds, facts.reports, facts.reports_selected) == (2, 3, 2)
    broken = facts_of(play_lines(Hierarchical(), good_lines(leader=["<task>A?</task>", "hm"])), PARIS, SQUAD)
    assert broken.rounds == 1
    assert broken.roles["leader"].use.format_failures == {"no_tag": 1}
    assert facts_of(play_lines(Chained(), good_lines()), PARIS, SQUAD).rounds is None


def test_different_answers_of_a_call_are_counted_after_normalisation() -> None:
    answers = ["<answer>Paris</answer>", "<answer>the paris.</answer>", "<answer>Lyon</answer>", "no", "?"]
    facts = facts_of(play_lines(Chained(candidates=5), good_lines(answerer=[answers])), PARIS, SQUAD)
    assert (facts.candidates, facts.candidates_right, facts.answers) == (5, 2, {"paris", "lyon", None})
