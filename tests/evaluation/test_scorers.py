"""The scorers that runs use: no free points, and the properties that a score must have whatever the texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.errors import UserError
from searchparty.evaluation.normalise import normalise_answer, normalise_triviaqa
from searchparty.evaluation.scorers import SCORERS, Scorer, scorer_named, unusable_golds

WORDS = st.sampled_from(["the", "A", "an", "yes", "No", "noanswer", "Paris", "paris.", "1,000", "!!!", "’", "_", "Σ", "é"])
TEXTS = st.one_of(st.lists(WORDS, max_size=5).map(" ".join), st.text(max_size=20))
GOLDS = st.lists(TEXTS, max_size=4)
SOME_SCORER = st.sampled_from(list(SCORERS.values()))

every_scorer = pytest.mark.parametrize("scorer", SCORERS.values(), ids=list(SCORERS))


@every_scorer
@pytest.mark.parametrize("prediction", [None, "", " \n", "the", "---", "The The"])
def test_saying_nothing_never_scores(scorer: Scorer, prediction: str | None) -> None:
    for golds in (["The The"], ["---", ")"], [""], [], ["the", "Paris"], ["Paris"]):
        score = scorer.score(prediction, golds)
        assert (score.exact_match, score.f1, score.cover_exact_match) == (0.0, 0.0, 0.0)
        assert scorer.f1_joined(prediction, golds) == 0.0


@every_scorer
def test_a_question_is_unscorable_when_no_golden_answer_survives_normalisation(scorer: Scorer) -> None:
    assert not scorer.score("The The", ["The The", "!!!"]).scorable
    assert not scorer.score("Paris", []).scorable
    assert scorer.score("Paris", ["The The", "Paris"]).scorable


@every_scorer
def test_an_unusable_golden_answer_is_named_and_its_usable_neighbour_still_counts(scorer: Scorer) -> None:
    golds = ["!!!", "Paris", "the"]
    assert unusable_golds(golds, scorer) == ("!!!", "the")
    assert scorer.score("paris", golds).exact_match == 1.0
    assert scorer.score("Rome", golds).cover_exact_match == 0.0


def test_which_golden_answers_are_unusable_depends_on_the_normaliser() -> None:
    assert unusable_golds(["’"], SCORERS["triviaqa"]) == ("’",)
    assert unusable_golds(["’"], SCORERS["squad"]) == ()


def test_only_the_hotpotqa_rule_denies_partial_credit_around_yes_and_no() -> None:
    assert SCORERS["squad"].f1("Yes, they are both American", ["yes"]) == pytest.approx(1 / 3)
    assert SCORERS["hotpotqa"].f1("Yes, they are both American", ["yes"]) == 0.0
    assert SCORERS["hotpotqa"].f1("No", ["no"]) == 1.0


def test_joined_f1_asks_for_every_golden_answer_at_once() -> None:
    scorer = SCORERS["squad"]
    assert scorer.f1_joined("Paris and London", ["Paris", "London"]) == pytest.approx(0.8)
    assert scorer.f1_joined("Paris", ["Paris", "London"]) == pytest.approx(2 / 3)
    assert scorer.f1("Paris", ["Paris", "London"]) == 1.0


def test_cover_exact_match_rewards_hedging_and_hits_inside_words() -> None:
    assert SCORERS["squad"].cover_exact_match("Paris or London", ["London"]) == 1.0
    assert SCORERS["squad"].cover_exact_match("nobody knows", ["no"]) == 1.0
    assert SCORERS["squad"].cover_exact_match("London", ["London or Paris"]) == 0.0


def test_a_single_string_in_place_of_the_list_is_refused() -> None:
    with pytest.raises(TypeError, match="list of strings"):
        SCORERS["squad"].score("p", "Paris")
    with pytest.raises(TypeError, match="list of strings"):
        unusable_golds("Paris", SCORERS["squad"])


def test_an_unknown_scorer_is_refused_with_the_nearest_name() -> None:
    assert scorer_named("musique") is SCORERS["musique"]
    with pytest.raises(UserError, match="did you mean hotpotqa"):
        scorer_named("HotPot")
    with pytest.raises(UserError, match=r"squad, hotpotqa, 2wiki, musique, triviaqa$"):
        scorer_named("xyz")


@given(SOME_SCORER, TEXTS, GOLDS.flatmap(lambda golds: st.tuples(st.just(golds), st.permutations(golds))))
def test_the_order_of_golden_answers_does_not_matter(
    scorer: Scorer, prediction: str, golds: tuple[list[str], list[str]]
) -> None:
    assert scorer.score(prediction, golds[0]) == scorer.score(prediction, golds[1])


@given(SOME_SCORER, TEXTS, GOLDS)
def test_white_space_in_the_prediction_does_not_matter(scorer: Scorer, prediction: str, golds: list[str]) -> None:
    spaced = f"\n {prediction.replace(' ', '  ')}\t"
    assert scorer.score(spaced, golds) == scorer.score(prediction, golds)


@given(SOME_SCORER, TEXTS, GOLDS)
def test_scores_lie_between_0_and_1_and_exact_match_implies_the_weaker_ones(
    scorer: Scorer, prediction: str, golds: list[str]
) -> None:
    score = scorer.score(prediction, golds)
    assert score.exact_match in (0.0, 1.0)
    assert 0.0 <= score.f1 <= 1.0
    assert score.exact_match <= score.f1
    assert score.exact_match <= score.cover_exact_match


@given(SOME_SCORER, TEXTS)
def test_a_usable_golden_answer_given_word_for_word_scores_everything(scorer: Scorer, gold: str) -> None:
    score = scorer.score(gold, [gold])
    expected = float(score.scorable)
    assert (score.exact_match, score.f1, score.cover_exact_match) == (expected, expected, expected)
    assert scorer.f1_joined(gold, [gold]) == expected


@given(SOME_SCORER, TEXTS, GOLDS, TEXTS)
def test_a_further_golden_answer_never_lowers_a_score(scorer: Scorer, prediction: str, golds: list[str], further: str) -> None:
    before, after = scorer.score(prediction, golds), scorer.score(prediction, [*golds, further])
    assert before.exact_match <= after.exact_match
    assert before.f1 <= after.f1
    assert before.cover_exact_match <= after.cover_exact_match


@given(TEXTS)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    for normalise in (normalise_answer, normalise_triviaqa):
        assert normalise(normalise(text)) == normalise(text)


def test_articles_go_after_punctuation_so_that_letters_joined_by_it_count_as_one_word() -> None:
    assert normalise_answer("a-n apple, The: end") == "apple end"
    assert normalise_triviaqa("a-n apple, The: end") == "n apple end"
