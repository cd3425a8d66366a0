"""How much each token counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.credit.reductions import REDUCTIONS, ReductionName, token_weights

# Three sequences: two of a chatty episode (3 and 1 tokens), one of a terse one (2 tokens).
TOKENS, EPISODES, ROLES = [3, 1, 2], ["chatty", "chatty", "terse"], ["searcher", "answerer", "searcher"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token-mean", [1 / 6, 1 / 6, 1 / 6]),
        ("sequence-mean", [1 / 9, 1 / 3, 1 / 6]),
        ("episode-mean", [1 / 8, 1 / 8, 1 / 4]),
    ],
)
def test_weights_over_all_roles_worked_by_hand(name: ReductionName, expected: list[float]) -> None:
    assert token_weights(name, "all", TOKENS, EPISODES, ROLES).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token-mean", [1 / 5, 1, 1 / 5]),
        ("sequence-mean", [1 / 6, 1, 1 / 4]),
        ("episode-mean", [1 / 6, 1, 1 / 4]),
    ],
)
def test_weights_per_role_worked_by_hand(name: ReductionName, expected: list[float]) -> None:
    assert token_weights(name, "role", TOKENS, EPISODES, ROLES).tolist() == pytest.approx(expected)


batches = st.lists(
    st.tuples(st.integers(1, 50), st.integers(0, 4), st.sampled_from(["leader", "searcher", "answerer"])),
    min_size=1,
    max_size=30,
)


@given(st.sampled_from(sorted(REDUCTIONS)), batches)
def test_weights_sum_to_1_in_all_or_per_role(name: ReductionName, batch: list[tuple[int, int, str]]) -> None:
    tokens, episodes, roles = (list(column) for column in zip(*batch, strict=True))
    for scope in ("all", "role"):
        weights = token_weights(name, scope, tokens, episodes, roles)
        for role in set(roles) if scope == "role" else [None]:
            share = sum(w * n for w, n, r in zip(weights, tokens, roles, strict=True) if role in (None, r))
            assert share == pytest.approx(1)


def test_no_sequences_have_no_weights() -> None:
    for name in REDUCTIONS:
        assert token_weights(name, "all", [], [], []).tolist() == []
