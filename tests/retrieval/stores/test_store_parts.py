"""Parts of the stores that need no client: addresses, and BM25 as sparse vectors."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from searchparty.errors import UserError
from searchparty.retrieval.stores.address import StoreAddress, parse_store_address
from searchparty.retrieval.stores.sparse import passage_vector, query_vector


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("qdrant+http://host:6333/wiki", StoreAddress("qdrant", "http://host:6333", False, "wiki")),
        ("opensearch+https://host/search/wiki/", StoreAddress("opensearch", "https://host/search", False, "wiki")),
        ("qdrant+file:runs/q/wiki", StoreAddress("qdrant", "runs/q", True, "wiki")),
        ("qdrant+file:/a/b", StoreAddress("qdrant", "/a", True, "b")),
    ],
)
def test_an_address_names_program_place_and_collection(text: str, address: StoreAddress) -> None:
    assert parse_store_address(text, "TOKEN") == address
    assert str(address) == text.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        "milvus+http://host/wiki",
        "qdrant+http://host:6333",
        "qdrant+http://host:6333/",
        "qdrant+file:wiki",
        "qdrant+file:/",
        "opensearch+file:a/b",
        "opensearch+ftp://host/wiki",
        "qdrant+http://user:s3cret@host/wiki",
        "qdrant+",
    ],
)
def test_any_other_address_is_refused_in_one_line_without_its_password(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_store_address(text, "TOKEN")
    assert len(caught.value.lines) == 1 and "s3cret" not in str(caught.value)


WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4), min_size=1, max_size=30)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(WORDS, st.floats(0.1, 3), st.floats(0, 1))
def test_the_weights_of_a_passage_are_those_of_bm25(words: list[str], k1: float, b: float) -> None:
    vector = passage_vector(words, k1, b, 10.0)
    for word in set(words):
        [number] = query_vector([word])
        count = words.count(word)
        assert vector[number] == pytest.approx(count / (count + k1 * (1 - b + b * len(words) / 10.0)))
    assert sum(query_vector(words).values()) == len(words)
