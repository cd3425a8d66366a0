from hypothesis import given
from hypothesis import strategies as st

from searchparty.models.passes import split_into_passes


def test_prompts_of_like_length_share_a_pass_and_others_do_not() -> None:
    assert split_into_passes([3, 40, 41, 45, 200], most_filling=10, most_tokens=1000) == [range(1), range(1, 4), range(4, 5)]


def test_a_prompt_longer_than_a_pass_goes_alone() -> None:
    assert split_into_passes([50, 50, 50], most_filling=0, most_tokens=100) == [range(1), range(1, 3)]
    assert split_into_passes([99, 300], most_filling=1000, most_tokens=100) == [range(1), range(1, 2)]


@given(st.lists(st.integers(1, 300), max_size=30).map(sorted), st.integers(0, 200), st.integers(1, 2000))
def test_every_prompt_is_read_once_within_the_bounds(lengths: list[int], most_filling: int, most_tokens: int) -> None:
    runs = split_into_passes(lengths, most_filling, most_tokens)
    assert [place for run in runs for place in run] == list(range(len(lengths)))
    for run in runs:
        longest = lengths[run[-1]]
        assert len(run) == 1 or len(run) * longest <= most_tokens
        assert sum(longest - lengths[place] for place in run) <= most_filling


@given(st.lists(st.integers(1, 300), min_size=1, max_size=30).map(sorted), st.integers(0, 200), st.integers(1, 2000))
def test_no_run_could_have_taken_the_prompt_before_it(lengths: list[int], most_filling: int, most_tokens: int) -> None:
    for run in split_into_passes(lengths, most_filling, most_tokens)[1:]:
        longer = [lengths[run[0] - 1], *(lengths[place] for place in run)]
        filling = sum(longer[-1] - length for length in longer)
        assert filling > most_filling or len(longer) * longer[-1] > most_tokens
