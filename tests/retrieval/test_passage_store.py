"""Passages on disk: what is written is read back, by row and by id."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval_factories import passages_of

from searchparty.errors import UserError
from searchparty.retrieval.store import PassageStore, save_passages
from searchparty.retrieval.types import Passage

unicode_text = st.text(max_size=60)
passages_with_own_ids = st.lists(
    st.builds(Passage, unicode_text, unicode_text, unicode_text), min_size=1, unique_by=lambda p: p.id
)


@given(passages_with_own_ids)
def test_any_unicode_text_comes_back_by_row_and_by_id(passages: list[Passage]) -> None:
    with tempfile.TemporaryDirectory() as name:
        summary = save_passages(Path(name), enumerate(passages, start=1), Path("corpus"))
        store = PassageStore(Path(name))
        assert summary.passages == len(store) == len(passages)
        assert list(store) == passages
        assert [store.row_of(passage.id) for passage in passages] == list(range(len(passages)))


def test_an_unknown_id_has_no_row_and_a_row_outside_raises(tmp_path: Path) -> None:
    save_passages(tmp_path, enumerate(passages_of("x", "y"), start=1), Path("corpus"))
    store = PassageStore(tmp_path)
    assert store.row_of("p2") is None
    for row in (-1, 2):
        with pytest.raises(IndexError):
            store[row]


def test_duplicate_ids_are_refused_with_both_lines(tmp_path: Path) -> None:
    passages = [Passage(name, "", name) for name in ("a", "b", "c", "b", "a", "b")]
    with pytest.raises(
        UserError, match=r"corpus:40: passage id 'b' was already used on line 20 \(ids used more than once: 2\)"
    ):
        save_passages(tmp_path, zip(range(10, 70, 10), passages, strict=True), Path("corpus"))


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="corpus: holds no passage"):
        save_passages(tmp_path, iter([]), Path("corpus"))


def test_equal_passages_have_equal_hashes_and_other_orders_have_not(tmp_path: Path) -> None:
    passages = passages_of("x", "y")
    summaries = []
    for number, order in enumerate((passages, passages, passages[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        summaries.append(save_passages(folder, enumerate(order, start=1), Path("corpus")))
    assert summaries[0] == summaries[1]
    assert summaries[0].passages_sha256 != summaries[2].passages_sha256
    assert summaries[0].ids_sha256 != summaries[2].ids_sha256
