"""Scores and counts of episodes, and the numbers of a run made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from playing import PARIS, FixedRetriever, good_lines, play_lines
from searchparty.episodes.types import SpanKind
from searchparty.errors import UserError
from searchparty.evaluation.intervals import MICRO, bootstrap_means
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import ScoredEpisode, score_episode
from searchparty.evaluation.summary import summarise
from searchparty.questions.types import Question
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical

SQUAD = scorer_named("squad")


def scored(answer: str, dataset: str = "nq", key: str = "q1", sample: int = 0) -> ScoredEpisode:
    question = Question(key, PARIS.text, ("Paris",), dataset)
    episode = play_lines(Chained(), good_lines(answerer=[answer]), question=question)
    episode.sample = sample
    return score_episode(episode, question.golden_answers, SQUAD)


RIGHT, WRONG = "<answer>Paris</answer>", "<answer>Lyon</answer>"


def test_only_the_answering_agents_last_turn_is_scored() -> None:
    lines = good_lines(searcher=["<search>Paris</search>", "<report>Paris <answer>Paris</answer></report>"], answerer=[WRONG])
    result = score_episode(play_lines(Chained(), lines), ("Paris",), SQUAD)
    assert (result.answer, result.exact_match) == ("Lyon", 0.0)


def test_every_candidate_has_its_own_score_and_the_first_is_the_answer() -> None:
    episode = play_lines(Chained(candidates=3), good_lines(answerer=[[WRONG, RIGHT, "Paris"]]))
    result = score_episode(episode, ("Paris",), SQUAD)
    assert [candidate.exact_match for candidate in result.candidates] == [0.0, 1.0, 0.0]
    assert [candidate.problem for candidate in result.candidates] == [None, None, "no_tag"]
    assert (result.answer, result.exact_match) == ("Lyon", 0.0)


def test_tokens_are_counted_with_and_without_repeated_history() -> None:
    episode = play_lines(Hierarchical(), good_lines())
    result = score_episode(episode, ("Paris",), SQUAD)
    for role in ("leader", "searcher", "answerer"):
        (transcript,) = [one for one in episode.agents if one.role == role]
        use = result.roles[role]
        observed = sum(len(span.ids or ()) for span in transcript.spans if span.kind is not SpanKind.ACTION)
        sampled = sum(len(span.ids or ()) for span in transcript.spans if span.kind is SpanKind.ACTION)
        assert (use.unique_input_tokens, use.output_tokens) == (observed, sampled)
        assert use.input_tokens == sum(call.prompt_tokens or 0 for call in transcript.calls)
    assert (result.roles["answerer"].input_tokens or 0) == result.roles["answerer"].unique_input_tokens
    assert (result.roles["searcher"].input_tokens or 0) > (result.roles["searcher"].unique_input_tokens or 0)


def test_token_counts_of_a_text_only_model_are_unknown_and_not_zero() -> None:
    episode = play_lines(Chained(), good_lines(), exchanges_ids=False)
    result = score_episode(episode, ("Paris",), SQUAD)
    assert result.roles["answerer"].output_tokens is None
    summary = summarise([result], team="t", model="m", scorer="squad", samples=1)
    whole = summary.behaviour["all"]
    assert whole.output_tokens is None and "output_tokens" not in whole.intervals and "searches" in whole.intervals


def test_empty_searches_are_told_from_searches() -> None:
    result = score_episode(play_lines(Chained(), good_lines(), FixedRetriever(())), ("Paris",), SQUAD)
    assert (result.searches, result.empty_searches, result.failed_searches) == (1, 1, 0)


def test_rates_over_two_samples_by_hand() -> None:
    episodes = [
        scored(RIGHT, key="a", sample=0), scored(WRONG, key="a", sample=1),
        scored(RIGHT, key="b", sample=0), scored(RIGHT, key="b", sample=1),
        scored(WRONG, "pop", "c", 0), scored(WRONG, "pop", "c", 1),
    ]  # fmt: skip
    summary = summarise(episodes, team="t", model="m", scorer="squad", samples=2)
    nq, pop, macro = (summary.quality[name] for name in ("nq", "pop", "macro"))
    assert (nq.exact_match.value, nq.pass_at_k.value, nq.all_k_right.value) == (0.75, 1.0, 0.5)
    assert (pop.exact_match.value, macro.exact_match.value, macro.pass_at_k.value) == (0.0, 0.375, 0.5)
    assert list(summary.quality) == ["nq", "pop", "macro", "micro"]
    assert summary.behaviour["all"].episodes == 6


def test_fewer_attempts_than_were_made_are_told_without_bias() -> None:
    """One of four attempts right: two of the four hold it in half of their choices."""
    episodes = [scored(RIGHT if sample == 0 else WRONG, "nq", key, sample) for key in ("a", "b") for sample in range(4)]
    quality = summarise(episodes, team="t", model="m", scorer="squad", samples=4).quality["macro"]
    assert {k: one.value for k, one in quality.pass_at.items()} == {"2": 0.5}
    assert (quality.exact_match.value, quality.pass_at_k.value) == (0.25, 1.0)


def test_every_mean_of_behaviour_has_the_interval_of_drawing_questions_again() -> None:
    episodes = [
        replace(scored(RIGHT, dataset, f"{dataset}/{key}", sample), searches=searches + sample, steps=3)
        for dataset, all_searches in (("nq", (0, 1, 5)), ("world", (2, 2)))
        for key, searches in enumerate(all_searches)
        for sample in range(2)
    ]
    behaviour = summarise(episodes, team="t", model="m", scorer="squad", samples=2).behaviour
    by_question = {"nq": np.array([0.5, 1.5, 5.5]), "world": np.array([2.5, 2.5])}
    expected = bootstrap_means(by_question)
    nq, micro = expected.datasets["nq"], expected.pools[MICRO]
    assert behaviour["nq"].intervals["searches"] == (nq.low, nq.high)
    assert behaviour["all"].searches == pytest.approx(2.5) and behaviour["all"].intervals["searches"] == (micro.low, micro.high)
    assert behaviour["all"].intervals["steps"] == (3.0, 3.0)
    low, high = behaviour["all"].intervals["answered"]
    assert low < high == behaviour["all"].answered == 1.0


def test_a_rate_of_nought_or_one_still_has_an_interval_with_width() -> None:
    summary = summarise([scored(WRONG, key=str(n)) for n in range(20)], team="t", model="m", scorer="squad", samples=1)
    rate = summary.quality["nq"].exact_match
    assert rate.low == rate.value == 0.0
    assert 0.1 < rate.high < 0.25
    assert summary.quality["macro"].exact_match == rate


def test_a_question_with_a_missing_sample_is_refused_and_not_averaged_over() -> None:
    with pytest.raises(UserError, match="nq/a: 1 of 2 samples are there"):
        summarise([scored(RIGHT, key="a")], team="t", model="m", scorer="squad", samples=2)


def test_format_failures_are_counted_by_role_and_kind() -> None:
    lines = good_lines(leader=["<task>a</task><task>b</task>", "<select>2</select>"], searcher=["no", "<report>r</report>"])
    result = score_episode(play_lines(Hierarchical(), lines), ("Paris",), SQUAD)
    summary = summarise([result], team="t", model="m", scorer="squad", samples=1)
    assert summary.roles["searcher"].format_failures == {"no_tag": 1}
    assert summary.roles["leader"].format_failures == {}
    assert summary.roles["searcher"].agents == 2
