import torch
from hypothesis import given
from hypothesis import strategies as st

from searchparty.models.prefix_cache import BLOCK_TOKENS, PrefixCache

SEQUENCES = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=4 * BLOCK_TOKENS), max_size=8)


def content(ids: list[int], start: int, stop: int) -> torch.Tensor:
    """A block's content depends on everything before it, as keys and values do."""
    return torch.tensor(ids[:stop])


def insert(cache: PrefixCache, ids: list[int]) -> None:
    cache.insert(ids, lambda start, stop: content(ids, start, stop))


@given(SEQUENCES, st.lists(st.integers(0, 1), min_size=1, max_size=4 * BLOCK_TOKENS), st.integers(0, 300))
def test_what_is_found_is_what_the_prefix_gave(sequences: list[list[int]], asked: list[int], most: int) -> None:
    cache = PrefixCache(most)
    for ids in sequences:
        insert(cache, ids)
    blocks = cache.match(asked)
    assert len(blocks) * BLOCK_TOKENS < len(asked)
    assert len(blocks) * BLOCK_TOKENS <= most
    for number, block in enumerate(blocks):
        assert block.tolist() == asked[: (number + 1) * BLOCK_TOKENS]


def test_the_longest_known_prefix_is_found_and_one_token_is_left_to_read() -> None:
    cache = PrefixCache(1000)
    ids = list(range(3 * BLOCK_TOKENS))
    insert(cache, ids)
    assert len(cache.match(ids)) == 2
    assert len(cache.match([*ids, 1])) == 3
    assert len(cache.match([*ids[: BLOCK_TOKENS + 8], 7777, *ids[BLOCK_TOKENS:]])) == 1


def test_the_least_recently_used_sequence_is_forgotten_and_its_end_first() -> None:
    cache = PrefixCache(4 * BLOCK_TOKENS)
    old, used, new = ([start + place for place in range(2 * BLOCK_TOKENS)] for start in (0, 1000, 2000))
    insert(cache, old)
    insert(cache, used)
    cache.match([*old, 0])
    insert(cache, new[:BLOCK_TOKENS])
    assert [len(cache.match([*ids, 0])) for ids in (old, used)] == [2, 1]


def test_prompts_that_miss_the_same_block_are_told_apart_from_others() -> None:
    cache = PrefixCache(1000)
    common = list(range(BLOCK_TOKENS))
    one, two, other = ([*common, start, *common] for start in (1, 1, 2))
    assert cache.missing(one) == cache.missing(other) == cache.missing(common) is not None
    insert(cache, common)
    assert cache.missing(one) == cache.missing(two) != cache.missing(other)
    assert cache.missing(common) is None
