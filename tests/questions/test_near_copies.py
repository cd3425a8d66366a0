"""Questions that are nearly the same: an answer and a run of words in common."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.cli.main import main
from searchparty.questions.near_copies import find_near_copies
from searchparty.questions.overlap import fold, shared_with
from searchparty.questions.types import Question

NILE = "which river flows through the capital city of egypt into the sea"


def one(key: str, text: str, *answers: str, official: str | None = None) -> Question:
    return Question(key, text, answers, "nq", official_id=official)


def test_an_answer_and_eight_words_in_a_row_make_a_near_copy() -> None:
    first = [one("a", f"{NILE}?", "Nile", "the Nile")]
    second = [one("b", f"Tell me {NILE.title()}, please", "NILE")]
    (found,) = find_near_copies(first, second)
    assert (found.first, found.second, found.answer) == ("nq/a", "nq/b", "nile")
    assert found.words == "which river flows through the capital city of"


@pytest.mark.parametrize(
    "other",
    [
        one("b", f"Tell me {NILE}", "Congo"),
        one("b", "which river flows through the capital city", "Nile"),
        one("b", f"Which River flows through: {NILE.removeprefix('which river flows through ')}", "Nile"),
        one("b", f"Tell me {NILE}"),
        one("b", "", "Nile"),
        one("b", f"Tell me {NILE}", "yes"),
    ],
    ids=["another answer", "seven words", "the same text", "no answer", "no words", "yes"],
)
def test_one_of_the_two_alone_or_the_same_text_makes_none(other: Question) -> None:
    assert find_near_copies([one("a", NILE, "Nile", "yes")], [other]) == ()


WORDS = st.lists(st.sampled_from(["a", "b"]), min_size=0, max_size=6).map(" ".join)
SOME = st.lists(st.tuples(WORDS, st.sampled_from(["x", "y"])), max_size=5)


@given(SOME, SOME)
def test_near_copies_are_those_of_comparing_every_pair(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> None:
    first, second = ([one(str(number), *row) for number, row in enumerate(rows)] for rows in (ours, theirs))

    def runs(text: str) -> set[str]:
        words = text.split()
        return {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}

    expected = {
        (one.key, other.key)
        for one in first
        for other in second
        if one.golden_answers == other.golden_answers
        and runs(one.text) & runs(other.text)
        and fold(one.text) != fold(other.text)
    }
    assert {(pair.first, pair.second) for pair in find_near_copies(first, second, run=3)} == expected


def test_shared_questions_are_those_of_one_text_or_one_stated_official_id_and_not_of_one_key() -> None:
    tested = [one("1", "who was first?", "x"), one("2", "who was last?", "x", official="dev7"), one("3", "where?", "x")]
    learned = [one("9", "Who was FIRST", "y"), one("dev7", "who came last?", "x"), one("3", "when?", "x")]
    assert shared_with(learned, tested) == ("nq/9", "nq/dev7")


def write(path: Path, questions: list[Question]) -> str:
    rows = [
        {"id": one.id, "question": one.text, "golden_answers": one.golden_answers, "dataset": one.dataset} for one in questions
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_on_the_command_line_near_copies_are_shown_and_shared_questions_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = write(tmp_path / "train.jsonl", [one("a", f"{NILE} there", "Nile"), one("b", "who was first?", "x")])
    test = write(tmp_path / "test.jsonl", [one("t", NILE, "Nile"), one("u", "Who was first", "x")])
    assert main(["questions", "overlap", train, test]) == 0
    assert "near copies: 1 pair with an answer and 8 words in a row in common\n  nq/a ~ nq/t: " in capsys.readouterr().out
    assert main(["questions", "overlap", train, test, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["near_copies"][0]["second"] == "nq/t"
    out = tmp_path / "out.jsonl"
    assert main(["questions", "convert", train, "-o", str(out), "--without", test]) == 0
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["a"]
    assert "1 question left out" in capsys.readouterr().err
    assert main(["questions", "convert", str(out), "-o", str(tmp_path / "none.jsonl"), "--without", str(out)]) == 2
    assert "every question of it" in capsys.readouterr().err and not (tmp_path / "none.jsonl").exists()
