from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from searchparty.models.bytes import ByteTokenizer
from searchparty.models.stop_watch import StopWatch
from searchparty.models.stops import first_stop_end

PIECES = ["<think>", "</think>", "</a>", "a", ">", " ", "é", "b ", "日本", "<", "\n"]


class Pairs:
    """Decodes ids of two bytes each: tokens that hold more than the end of a stop string."""

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(token.to_bytes(2, "big") for token in ids).decode("utf-8", "replace")


def completed_at(decode: Pairs | ByteTokenizer, ids: Sequence[int], stops: Sequence[str]) -> tuple[int | None, int | None]:
    """After how many tokens the watch sees a stop string, and after how many the text holds one."""
    watch, lengths = StopWatch(decode.decode), range(1, len(ids) + 1)
    seen = next((length for length in lengths if watch.completed(ids[:length], stops)), None)
    held = next((length for length in lengths if first_stop_end(decode.decode(ids[:length]), stops) is not None), None)
    return seen, held


texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
stops = st.lists(st.sampled_from(["</a>", "b ", "é", "日本", "a>", "\n", ""]), max_size=3)


@given(texts, stops)
def test_a_stop_string_is_seen_at_the_token_that_completes_it(text: str, stops: list[str]) -> None:
    seen, held = completed_at(ByteTokenizer(), ByteTokenizer().encode(text), stops)
    assert seen == held


@given(texts, stops)
def test_a_token_may_hold_the_end_of_a_stop_string_and_more(text: str, stops: list[str]) -> None:
    raw = text.encode()
    ids = [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw) - 1, 2)]
    seen, held = completed_at(Pairs(), ids, stops)
    assert seen == held


def test_a_token_without_the_last_character_of_a_stop_string_costs_one_decoding_for_all_times() -> None:
    decoded: list[list[int]] = []

    def decode(ids: Sequence[int]) -> str:
        decoded.append(list(ids))
        return ByteTokenizer().decode(ids)

    watch = StopWatch(decode)
    assert not any(watch.completed([97] * length, ["</a>", "</b>"]) for length in range(1, 500))
    assert decoded == [[97]]
