"""The parts of a reward and how they are mixed, each with cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from credit_factories import BROKEN, RIGHT, WRONG, chained, floats, hierarchical, judge, mixed, sequence, side_by_side
from pydantic import ValidationError

from searchparty.credit.reward_mix import RewardMix
from searchparty.credit.rewards import (
    assignment,
    behaviour,
    divergences_from,
    exact_match,
    is_well_formed,
    team_result,
)
from searchparty.episodes.types import Episode, Retrieval

SEARCH, REPORT = "<search>q</search>", "<report>r</report>"


def test_the_team_is_right_if_one_candidate_is_and_candidates_are_judged_by_themselves() -> None:
    episode = chained(answers=[WRONG, RIGHT, BROKEN])
    judged = judge(episode).judged(episode)
    assert [exact_match(judged, number) for number in range(3)] == [0.0, 1.0, 0.0]
    assert team_result(judged) == 1.0
    assert team_result(judged[:1]) == 0.0
    assert team_result([]) == 0.0


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([REPORT], 0.0),
        ([SEARCH, REPORT], 0.5),
        ([SEARCH, SEARCH, REPORT], 1.0),
        ([SEARCH, SEARCH, SEARCH, REPORT], 1.0),
        ([SEARCH, "no action"], 0.0),
        ([SEARCH, SEARCH, SEARCH, SEARCH], 0.0),
    ],
)
def test_searching_before_the_report_is_good_behaviour(turns: list[str], expected: float) -> None:
    episode = chained(searcher=turns)
    assert behaviour(episode, episode.transcript("searcher.1")) == expected


def test_behaviour_counts_a_searchers_own_searches_only() -> None:
    tasks = ["<task>a</task><task>b</task>", "<select>1</select>"]
    episode = hierarchical(leader=tasks, searcher=[SEARCH, REPORT, REPORT])
    searches = {name: sum(one.agent == name for one in episode.retrievals) for name in ("searcher.1", "searcher.2")}
    assert sorted(searches.values()) == [0, 1]
    found = {name: behaviour(episode, episode.transcript(name)) for name in searches}
    assert found == {name: 0.5 * count for name, count in searches.items()}


def _searches(*steps: tuple[str, int]) -> Episode:
    episode = hierarchical(leader=["<task>a</task><task>b</task>", "<select>1</select>"], searcher=[REPORT])
    episode.retrievals = [Retrieval(agent, step, "q", 3, [], 0.0) for agent, step in steps]
    return episode


def test_assignment_counts_steps_with_a_search_and_not_searches() -> None:
    assert assignment(_searches(), "searcher") == 0.0
    assert assignment(_searches(("searcher.1", 2), ("searcher.2", 2)), "searcher") == pytest.approx(1 / 6)
    assert assignment(_searches(("searcher.1", 2), ("searcher.2", 3), ("searcher.1", 5)), "searcher") == pytest.approx(3 / 6)


def test_assignment_is_capped_at_six_steps_and_counts_searchers_alone() -> None:
    assert assignment(_searches(*(("searcher.1", step) for step in range(2, 8))), "searcher") == 1.0
    assert assignment(_searches(*(("searcher.1", step) for step in range(2, 11))), "searcher") == 1.0
    assert assignment(_searches(("leader.1", 1), ("searcher.1", 2)), "searcher") == pytest.approx(1 / 6)


def test_the_format_of_an_answer_is_judged_per_candidate_and_that_of_others_by_their_last_turn() -> None:
    episode = chained(answers=[BROKEN, RIGHT])
    judged = judge(episode).judged(episode)
    assert [is_well_formed(episode, episode.transcript("answerer.1"), judged, number) for number in (0, 1)] == [False, True]
    broken = chained(searcher=[SEARCH, "no action"])
    assert not is_well_formed(broken, broken.transcript("searcher.1"), [], 0)


def test_divergence_is_the_sum_of_log_ratios_over_trainable_tokens() -> None:
    pair = [sequence([0, 1, 1, 0, 1], [9.0, -1.0, -2.0, 9.0, -0.5]), sequence([1], [-4.0])]
    layout = side_by_side(pair).layout
    old_N = layout.collect([one.old_logprobs_T for one in pair])
    teacher_N = layout.collect([floats([5.0, -1.5, -1.0, -7.0, -0.75]), floats([-3.0])])
    assert divergences_from(old_N, teacher_N, layout) == pytest.approx([(-1 + 1.5) + (-2 + 1) + (-0.5 + 0.75), -1.0])


def test_the_chained_searcher_earns_nine_tenths_of_the_result_and_a_tenth_of_its_behaviour() -> None:
    mix = RewardMix(team_result=0.9, behaviour=0.1)
    _, shown = mixed(mix, team_result=1.0, behaviour=0.5)
    assert shown.pop("total") == shown.pop("outcome") == pytest.approx(0.95)
    assert shown == {"team_result": 1.0, "behaviour": 0.5, "well_formed": 1.0, "penalty": 0.0}
    assert mixed(mix, team_result=0.0, behaviour=1.0)[0].outcome == pytest.approx(0.1)


def test_an_invalid_format_earns_minus_one_whatever_else_was_earned() -> None:
    mix = RewardMix(team_result=0.9, behaviour=0.1)
    assert mixed(mix, team_result=1.0, behaviour=1.0, well_formed=False)[1]["total"] == -1.0
    lenient = RewardMix(team_result=0.9, invalid_format=None)
    assert mixed(lenient, team_result=1.0, well_formed=False)[1]["total"] == pytest.approx(0.9)


def test_the_divergence_from_the_teacher_is_subtracted_and_kept_apart() -> None:
    mix = RewardMix(team_result=0.9, assignment=0.1, teacher_kl=1e-3)
    reward, shown = mixed(mix, team_result=1.0, assignment=0.5, divergence=20.0)
    assert (reward.outcome, reward.penalty, shown["total"]) == pytest.approx((0.95, 0.02, 0.93))
    assert shown["teacher_divergence"] == 20.0


def test_a_sequence_that_was_not_scored_pays_no_penalty_and_shows_no_divergence() -> None:
    _, shown = mixed(RewardMix(exact_match=1.0, teacher_kl=1e-3), exact_match=1.0)
    assert shown["total"] == 1.0
    assert "teacher_divergence" not in shown


def test_means_are_over_the_sequences_that_have_a_part() -> None:
    mix = RewardMix(f1=1.0, teacher_kl=0.5, reference_kl=0.25)
    rewards = mix.mix(
        {"f1": [1.0, 0.0, 0.5]}.__getitem__,
        well_formed=[True, False, True],
        divergence_S=np.array([2.0, np.nan, 4.0]),
        reference_divergence_S=np.array([np.nan, np.nan, 8.0]),
    )
    assert rewards.total_S.tolist() == [0.0, -1.0, -3.5]
    assert rewards.means() == pytest.approx(
        {
            "f1": 0.5, "well_formed": 2 / 3, "teacher_divergence": 3.0, "reference_divergence": 8.0, "outcome": 0.5 / 3,
            "penalty": 1.0, "reference_penalty": 2.0, "total": -1.5,
        }
    )  # fmt: skip
    none_S = np.zeros(3, dtype=np.bool_)
    assert rewards.only(none_S).means() == {}


def test_a_score_from_outside_cannot_take_the_name_of_a_part() -> None:
    with pytest.raises(ValidationError, match="choose another name"):
        RewardMix(given={"behaviour": 1.0})


def test_a_changed_copy_of_a_mix_weighs_by_its_own_numbers() -> None:
    mix = RewardMix(team_result=1.0)
    assert mix.weights == {"team_result": 1.0}
    assert mix.model_copy(update={"team_result": 0.0, "f1": 0.5}).weights == {"f1": 0.5}
