"""How an episode is drawn: in the order in which things happened, and harmless whatever it holds."""

from __future__ import annotations

import io

from rich.console import Console

from playing import FixedRetriever, good_lines, play_lines
from searchparty.episodes.picture import draw_episode
from searchparty.episodes.types import Episode
from searchparty.errors import Failure, FailureKind
from searchparty.teams.baselines import Rag
from searchparty.teams.chained import Chained


def drawn(episode: Episode, **options: bool) -> str:
    console = Console(file=io.StringIO(), width=120, markup=False)
    console.print(draw_episode(episode, **options))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def places(text: str, *words: str) -> list[int]:
    return [text.index(word) for word in words]


def test_a_search_stands_between_the_words_that_asked_for_it_and_the_passages_it_found() -> None:
    lines = good_lines(searcher=["<search>first query</search>", "<search>second query</search>", "<report>done</report>"])
    text = drawn(play_lines(Chained(), lines))
    order = places(text, "<search>first query", "“first query” →", "<search>second query", "“second query” →", "<report>done")
    assert order == sorted(order)


def test_a_search_before_the_first_turn_stands_before_it() -> None:
    text = drawn(play_lines(Rag(), good_lines()))
    order = places(text, "“What is the capital of France?” →", "saw", "wrote ▶")
    assert order == sorted(order)


def test_a_failed_search_is_drawn_last_with_its_reason() -> None:
    broken = Failure("retriever", FailureKind.TIMEOUT, "no reply in 30 s", 4)
    text = drawn(play_lines(Chained(), good_lines(), FixedRetriever(failure=broken)))
    order = places(text, "<search>capital of France", "failed: no reply in 30 s")
    assert order == sorted(order)


def test_candidates_are_numbered_from_one() -> None:
    text = drawn(play_lines(Chained(candidates=2), good_lines(answerer=[["<answer>A</answer>", "<answer>B</answer>"]])))
    assert "wrote ▶ [1]" in text
    assert "wrote ▶ [2]" in text
    assert text.count("[1]") == 1


def test_control_and_direction_characters_of_a_passage_never_reach_the_terminal() -> None:
    hostile = "a \x1b[2J \x07 \u202e \u200f \x9b b [bold]x[/]"
    text = drawn(play_lines(Chained(), good_lines(), FixedRetriever((hostile,))), tokens=True)
    assert not {"\x1b", "\x07", "\u202e", "\u200f", "\x9b"} & set(text)
    assert "[bold]x[/]" in text


def test_every_token_is_listed_with_id_and_log_probability() -> None:
    text = drawn(play_lines(Chained(), good_lines(answerer=["<answer>Q</answer>"])), tokens=True)
    assert "81 0.000" in text
