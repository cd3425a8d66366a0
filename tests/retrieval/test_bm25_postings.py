"""Postings made block by block are those of bm25s over the whole corpus, weights up to the rounding of the last bit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchparty.retrieval.bm25_postings import NumberedWords, write_postings
from searchparty.retrieval.building import no_progress
from searchparty.retrieval.mapped import map_array

TERMS = 6

passages_of_numbers = st.lists(st.lists(st.integers(0, TERMS - 1), max_size=12), min_size=1, max_size=20).map(
    # Every term of a vocabulary stands somewhere.
    lambda passages: [*passages, list(range(TERMS))]
)


@settings(max_examples=60, deadline=None)
@given(
    passages_of_numbers,
    st.permutations(range(TERMS)),
    st.integers(1, 40),
    st.sampled_from([(0.9, 0.4), (1.2, 0.75), (0.0, 1.0)]),
)
def test_blocks_of_any_size_give_the_postings_of_bm25s(
    passages: list[list[int]], final: list[int], block_words: int, parameters: tuple[float, float]
) -> None:
    k1, b = parameters
    words = np.array([number for passage in passages for number in passage], np.int32)
    numbered = NumberedWords(words, np.array([len(passage) for passage in passages], np.int32), np.array(final, np.int32))
    renumbered = [[final[number] for number in passage] for passage in passages]
    reference = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    reference.index((renumbered, {str(term): term for term in range(TERMS)}), create_empty_token=False, show_progress=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert write_postings(folder, numbered, k1, b, no_progress, block_words) == len(reference.scores["data"])
        assert map_array(folder / "posting_starts.npy").tolist() == reference.scores["indptr"].tolist()
        assert map_array(folder / "posting_rows.npy").tolist() == reference.scores["indices"].tolist()
        weights = map_array(folder / "posting_weights.npy")
        assert weights.tolist() == pytest.approx(reference.scores["data"].tolist(), rel=2**-23)
        ceilings = [
            weights[begin:end].max()
            for begin, end in zip(reference.scores["indptr"], reference.scores["indptr"][1:], strict=False)
        ]
        assert map_array(folder / "term_ceilings.npy").tolist() == ceilings
