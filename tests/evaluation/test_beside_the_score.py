"""What is reported beside the score: loose spelling, a second reading of malformed turns, and the bound of perfect repair."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playing import good_lines, play_lines
from searchparty.evaluation.lenient import lenient_answer
from searchparty.evaluation.loose import fold_spelling
from searchparty.evaluation.scorers import SCORERS, Scorer, scorer_named
from searchparty.evaluation.scoring import ScoredEpisode, score_episode
from searchparty.teams.chained import Chained

SQUAD = scorer_named("squad")


@pytest.mark.parametrize(
    ("prediction", "golden"),
    [
        ("São Paulo", "Sao Paulo"), ("Sa\u0303o Paulo", "São Paulo"), ("1914–18", "1914-18"), ("“Heroes”", '"Heroes"'),
        ("Louis Ⅳ", "louis iv"), ("Ｐａｒｉｓ", "Paris"), ("STRASSE", "Straße"), ("O’Brien", "O'Brien"),
        ("Hydro\u00adgen", "hydrogen"),
        ("Malmø", "Malmo"), ("Wałęsa", "Walesa"), ("2−1", "2-1"),
    ],
)  # fmt: skip
def test_spelling_does_not_count_in_the_loose_column(prediction: str, golden: str) -> None:
    assert SQUAD.loose_exact_match(prediction, [golden]) == SQUAD.loose_exact_match(golden, [prediction]) == 1.0


@pytest.mark.parametrize(
    ("prediction", "golden"), [("Lyon", "Paris"), ("ten", "10"), ("हिंदी", "हद"), ("U.S. A", "US of A"), ("", "Paris")]
)
def test_what_differs_by_more_than_spelling_stays_wrong(prediction: str, golden: str) -> None:
    assert SQUAD.loose_exact_match(prediction, [golden]) == 0.0


@given(st.text(max_size=12), st.lists(st.text(max_size=12), min_size=1, max_size=3), st.sampled_from(sorted(SCORERS)))
def test_the_loose_column_is_never_below_the_score_and_gives_nothing_for_saying_nothing(
    prediction: str, golden: list[str], name: str
) -> None:
    scorer: Scorer = SCORERS[name]
    assert scorer.loose_exact_match(prediction, golden) >= scorer.exact_match(prediction, golden)
    assert scorer.loose_exact_match(None, golden) == 0.0
    if not scorer.script.normalise(fold_spelling(scorer.script.normalise(prediction))):
        assert scorer.loose_exact_match(prediction, golden) == scorer.exact_match(prediction, golden)


@pytest.mark.parametrize(
    ("turn", "answer"),
    [
        ("<answer>Paris", "Paris"),
        ("<Answer >Paris</Answer>", "Paris"),
        ('<answer type="s">Paris</answer>', "Paris"),
        ("<answer>London</answer> wait, <answer>Paris</answer>", "Paris"),
        ("<answer><answer>Paris</answer></answer>", "Paris"),
        ("<answer>Paris</answer> I am sure.", "Paris"),
        ("<think>maybe <answer>London</answer></think> The answer is **Paris**.", "Paris"),
        ("so \\boxed{London}, no: \\boxed{Paris}", "Paris"),
        ("Final answer: \\boxed{\\text{Paris}}.", "Paris"),
        ("so \\boxed{\\text{Paris}}, as said", "Paris"),
        ("<answer></answer> The answer is Paris", None),
        ("Answer:\nParis", "Paris"),
        ("Answer: “Paris”", "Paris"),
        ("<think>it is <answer>Paris</answer>", "Paris"),
        ("I do not know.", None),
        ("<answer></answer>", None),
        ("", None),
    ],
)
def test_a_malformed_turn_is_read_again_by_fixed_rules(turn: str, answer: str | None) -> None:
    assert lenient_answer(turn) == answer


def test_the_second_reading_cannot_see_golden_answers() -> None:
    assert list(inspect.signature(lenient_answer).parameters) == ["turn"]


@given(st.text(max_size=60))
def test_any_text_can_be_read_again(turn: str) -> None:
    found = lenient_answer(turn)
    assert found is None or found.strip() == found != ""


def scored(answer: str, **lines: list[str]) -> ScoredEpisode:
    return score_episode(play_lines(Chained(), good_lines(answerer=[answer], **lines)), ("Paris",), SQUAD)


def columns(one: ScoredEpisode) -> tuple[float, float, float]:
    return one.exact_match, one.lenient_exact_match, one.repaired_exact_match


def test_columns_beside_the_score_by_ending() -> None:
    assert columns(scored("<answer>Paris</answer>")) == (1.0, 1.0, 1.0)
    assert columns(scored("<answer>Lyon</answer>")) == (0.0, 0.0, 0.0)
    assert columns(scored("The answer is Paris.")) == (0.0, 1.0, 1.0)
    assert columns(scored("The answer is Lyon.")) == (0.0, 0.0, 1.0)
    assert columns(scored("<answer>Paris</answer>", searcher=["no tag at all"])) == (0.0, 0.0, 1.0)


def test_a_well_formed_answer_is_not_read_again() -> None:
    one = scored("<answer>\\boxed{Paris}</answer>")
    assert (one.answer, one.lenient_answer, one.lenient_exact_match) == ("\\boxed{Paris}", "\\boxed{Paris}", 0.0)


def test_the_bound_does_not_repair_what_has_no_right_answer() -> None:
    episode = play_lines(Chained(), good_lines(answerer=["no tag"]))
    assert score_episode(episode, ("The",), SQUAD).repaired_exact_match == 0.0
