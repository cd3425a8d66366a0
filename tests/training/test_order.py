"""Which questions a step asks depends on nothing but the seed and the step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.training.order import derived_seed, questions_of_step

SIZES = {"count": st.integers(1, 40), "per_step": st.integers(1, 12), "seed": st.integers(0, 2**63 - 1)}


@given(**SIZES)
def test_a_pass_asks_each_question_at_most_once_and_all_but_the_few_left_over(count: int, per_step: int, seed: int) -> None:
    if per_step > count:
        with pytest.raises(ValueError, match=f"a step needs {per_step} questions, there are {count}"):
            questions_of_step(range(count), per_step, 1, seed)
        return
    steps = count // per_step
    for passed in range(3):
        asked = [
            question
            for step in range(passed * steps + 1, (passed + 1) * steps + 1)
            for question in questions_of_step(range(count), per_step, step, seed)
        ]
        assert len(asked) == len(set(asked)) == steps * per_step


@given(step=st.integers(1, 1000), **SIZES)
def test_a_step_asks_the_same_questions_whatever_was_asked_before(step: int, count: int, per_step: int, seed: int) -> None:
    per_step = min(per_step, count)
    first = questions_of_step(range(count), per_step, step, seed)
    questions_of_step(range(count), per_step, step + 1, seed)
    assert questions_of_step(range(count), per_step, step, seed) == first


def test_passes_and_seeds_have_orders_of_their_own() -> None:
    orders = [tuple(questions_of_step(range(20), 20, step, seed)) for seed in (0, 1, 2**40) for step in (1, 2)]
    assert len(set(orders)) == len(orders)


def test_parts_of_a_run_have_seeds_of_their_own() -> None:
    seeds = [derived_seed(0, "step", 1), derived_seed(0, "step", 2), derived_seed(0, "step1"), derived_seed(1, "step", 1)]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)
