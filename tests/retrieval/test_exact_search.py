"""Exact search against plain arithmetic: the same rows, the same scores, the same order, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from searchparty.errors import UserError
from searchparty.retrieval.dense.deciding import Queries
from searchparty.retrieval.dense.exact import ExactSearch
from searchparty.retrieval.dense.placing import Shard, place
from searchparty.retrieval.dense.vectors import STORAGES, Storage, Vectors, store


def brute_force(queries: NDArray[np.float32], vectors: Vectors, k: int) -> list[tuple[list[int], list[float]]]:
    """Every score by itself in float64, rounded to float32; best first, ties by row."""
    rounded = queries.astype(np.float16) if vectors.values.dtype != np.float32 else queries
    best = []
    for query in rounded.astype(np.float64):
        scores = []
        for row in range(len(vectors)):
            sum_ = float((vectors.values[row].astype(np.float64) * query).sum())
            scores.append(np.float32(sum_ if vectors.scales is None else sum_ * float(vectors.scales[row])))
        order = sorted(range(len(vectors)), key=lambda row: (-scores[row], row))[:k]
        best.append((order, [float(scores[row]) for row in order]))
    return best


def found(search: ExactSearch, queries: NDArray[np.float32], k: int) -> list[tuple[list[int], list[float]]]:
    return [(one.rows.tolist(), one.scores.tolist()) for one in search.search(queries, k)]


def unit(generator: np.random.Generator, rows: int, dimension: int) -> NDArray[np.float32]:
    vectors = generator.normal(size=(rows, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [1, 3, 10, 500])
def test_hits_are_those_of_brute_force(storage: Storage, k: int) -> None:
    generator = np.random.default_rng(5)
    vectors, queries = store(unit(generator, 400, 48), storage), unit(generator, 7, 48)
    assert found(ExactSearch(vectors, block_rows=64, group_rows=4), queries, k) == brute_force(queries, vectors, k)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 90),
    dimension=st.integers(1, 20),
    distinct=st.integers(1, 90),
    k=st.integers(1, 100),
    blocks=st.integers(1, 90),
    group=st.integers(1, 30),
    storage=st.sampled_from(STORAGES),
)
def test_the_result_is_the_same_for_any_blocks_and_groups_however_many_vectors_are_equal(
    seed: int, rows: int, dimension: int, distinct: int, k: int, blocks: int, group: int, storage: Storage
) -> None:
    generator = np.random.default_rng(seed)
    originals = unit(generator, min(distinct, rows), dimension)
    vectors = store(originals[generator.integers(0, len(originals), rows)], storage)
    queries = np.concatenate([unit(generator, 2, dimension), originals[:1]])
    assert found(ExactSearch(vectors, block_rows=blocks, group_rows=group), queries, k) == brute_force(queries, vectors, k)


def test_long_runs_of_nearly_equal_vectors_are_decided_by_exact_scores() -> None:
    """More rows than are kept lie within the margin of error, so the second pass has to find them."""
    generator = np.random.default_rng(0)
    base = unit(generator, 1, 64)
    vectors = store((base + generator.normal(scale=1e-8, size=(3000, 64))).astype(np.float32), "float32")
    assert len({row.tobytes() for row in vectors.values}) > 1000
    for block_rows in (100, 4096):
        assert found(ExactSearch(vectors, block_rows=block_rows, group_rows=10), base, 5) == brute_force(base, vectors, 5)


def test_queries_of_any_length_are_ranked_alike() -> None:
    generator = np.random.default_rng(1)
    vectors, queries = store(unit(generator, 200, 16), "float16"), unit(generator, 4, 16)
    usual = found(ExactSearch(vectors), queries, 5)
    for exponent in (-40, 40):
        stretched = found(ExactSearch(vectors), np.ldexp(queries, exponent).astype(np.float32), 5)
        assert [rows for rows, _ in stretched] == [rows for rows, _ in usual]
        np.testing.assert_allclose([s for _, s in stretched], np.ldexp([s for _, s in usual], exponent), rtol=1e-6)


def test_eight_bits_keep_the_scores_near() -> None:
    generator = np.random.default_rng(2)
    originals, queries = unit(generator, 300, 96), unit(generator, 5, 96)
    [exact, rough] = [
        np.array([scores for _, scores in found(ExactSearch(store(originals, s)), queries, 10)]) for s in ("float32", "int8")
    ]
    np.testing.assert_allclose(rough, exact, atol=0.01)


def test_vectors_that_do_not_fit_a_device_are_refused_before_they_are_loaded() -> None:
    vectors = store(np.ones((1000, 1000), np.float32), "float16")
    with pytest.raises(UserError, match=r"device cpu: the vectors need 2\.1 GB there, 0\.5 GB are free; name more cards"):
        place(vectors, ["cpu"], lambda device: 500_000_000)


@pytest.mark.parametrize(
    ("devices", "fault"),
    [
        (["telephone"], "device telephone: no such device"),
        ([], "no device is named"),
        (["cuda:99"], "CUDA cards that torch can use"),
        (["meta"], "dense retrieval runs on cpu and cuda"),
    ],
)
def test_devices_that_cannot_be_used_are_refused(devices: list[str], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        place(store(np.ones((2, 2), np.float32), "float32"), devices)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("storage", STORAGES)
def test_a_card_gives_the_result_of_the_cpu(storage: Storage) -> None:
    generator = np.random.default_rng(3)
    vectors, queries = store(unit(generator, 20_000, 256), storage), unit(generator, 50, 256)
    assert found(ExactSearch(vectors, ["cuda"], 4096), queries, 10) == found(ExactSearch(vectors), queries, 10)


def test_shards_on_several_devices_give_one_ranking() -> None:
    """Several shards on the CPU stand in for several cards: the same rows, cut into parts."""
    generator = np.random.default_rng(4)
    vectors, queries = store(unit(generator, 500, 24), "int8"), unit(generator, 6, 24)
    whole = found(ExactSearch(vectors), queries, 9)
    assert found(ExactSearch(vectors, ["cpu"] * 4, block_rows=50, group_rows=8), queries, 9) == whole
    assert found(ExactSearch(vectors, ["cpu"] * 501), queries, 9) == whole


def test_sums_that_another_device_adds_up_in_another_order_change_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(8)
    vectors, queries = store(unit(generator, 300, 48), "float32"), unit(generator, 20, 48)
    expected = found(ExactSearch(vectors), queries, 300)
    in_order = Shard.sums

    def in_another_order(shard: Shard, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return in_order(shard, queries, rows) + torch.empty(rows.shape, dtype=torch.float64).uniform_(-1e-15, 1e-15)

    monkeypatch.setattr(Shard, "sums", in_another_order)
    assert found(ExactSearch(vectors), queries, 300) == expected


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), dimension=st.integers(20, 400), storage=st.sampled_from(STORAGES))
def test_a_score_that_is_called_certain_is_that_of_the_cpu(seed: int, dimension: int, storage: Storage) -> None:
    generator = np.random.default_rng(seed)
    vectors = store(unit(generator, 60, dimension), storage)
    queries = Queries.prepare(5 * unit(generator, 4, dimension), vectors)
    scales = 1.0 if vectors.scales is None else vectors.scales.astype(np.float64)
    products = queries.values[:, None].astype(np.float64) * vectors.values.astype(np.float64)
    one_after_the_other = np.cumsum(products[:, :, ::-1], axis=2)[:, :, -1] * scales
    scores, certain = queries.round(one_after_the_other, vectors)
    assert certain.all() if storage != "float32" else certain.mean() > 0.98
    for number in range(len(queries.values)):
        settled = certain[number]
        assert np.array_equal(scores[number, settled], queries.scores(number, vectors.values, vectors.scales)[settled])


def test_a_sum_beside_the_border_of_two_roundings_is_not_called_certain() -> None:
    vectors = store(np.eye(1, 8, dtype=np.float32), "float32")
    queries = Queries.prepare(np.ones((1, 8), np.float32), vectors)
    border = 0.5 + 2.0**-25 + 2.0**-53
    scores, certain = queries.round(np.array([[0.5, border, border + 2.0**-26]]), vectors)
    assert certain.tolist() == [[True, False, True]]
    assert scores[0, 0] == queries.factors[0] * 0.5
