"""Duplicates are found whatever the case, punctuation and encoding, and say how their answers agree."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.questions.overlap import Agreement, agreement, find_overlap, fold
from searchparty.questions.types import Question


def question(number: int, text: str, *answers: str, dataset: str = "d", official: str | None = None) -> Question:
    return Question(str(number), text, answers, dataset, official_id=official)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who is Will Smith?", "who is  will-smith"),
        ("Café au lait?", "Cafe\u0301 AU LAIT"),
        ("STRASSE", "straße"),
        ("Ⅳ ﬁn", "iv fin"),
        ("hydro\u00adgen", "hydrogen"),
    ],
)
def test_texts_that_differ_in_form_alone_fold_alike(one: str, other: str) -> None:
    assert fold(one) == fold(other) != ""


def test_texts_that_differ_in_a_letter_or_digit_do_not_fold_alike() -> None:
    assert len({fold(text) for text in ("café", "cafe", "cafe 1", "cafe 2")}) == 4


@given(st.text())
def test_folding_is_settled_after_once_and_blind_to_composition(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("Paris",), ("paris.",), Agreement.SAME),
        (("A", "B"), ("B", "A", "A"), Agreement.SAME),
        (("Avicii",), ("Avicii", "Aloe Blacc"), Agreement.PARTIAL),
        (("1968",), ("1999",), Agreement.CONFLICT),
        (("---",), (")",), Agreement.CONFLICT),
        ((), ("x",), Agreement.UNKNOWN),
    ],
)
def test_answers_are_compared_as_sets(one: tuple[str, ...], other: tuple[str, ...], expected: Agreement) -> None:
    assert agreement(question(1, "q", *one), question(2, "q", *other)) is expected


def test_one_file_is_compared_with_itself() -> None:
    found = find_overlap(
        [question(1, "Who?", "a"), question(2, "other", "b"), question(3, "who", "a"), question(4, "WHO", "c")]
    )
    (group,) = found.groups
    assert (group.text, group.first, group.second) == ("Who?", ("d/1", "d/3", "d/4"), ())
    assert (group.pairs, found.pairs, group.answers) == (3, 3, Agreement.CONFLICT)
    assert found.count(Agreement.CONFLICT) == 1


def test_equal_answers_many_times_over_stay_the_same() -> None:
    found = find_overlap([question(number, "q", "a") for number in range(5)])
    assert (found.pairs, found.groups[0].answers) == (10, Agreement.SAME)


def test_two_files_share_texts_keys_and_official_ids() -> None:
    first = [question(1, "Who?", "a"), question(2, "twice", "b"), question(3, "Twice", "b"), question(9, "x", official="o")]
    second = [question(1, "who?", "a", "z"), question(7, "TWICE", "b"), question(8, "y", official="o")]
    found = find_overlap(first, second)
    assert found.sizes == (4, 3)
    assert [(group.first, group.second, group.answers) for group in found.groups] == [
        (("d/1",), ("d/1",), Agreement.PARTIAL),
        (("d/2", "d/3"), ("d/7",), Agreement.SAME),
    ]
    assert found.pairs == 3
    assert found.same_key == ("d/1",)
    assert found.same_key_other_text == ()
    assert found.same_official_id == ("d/o",)
    assert found.groups[0].pairs == 1


def test_equal_row_numbers_are_no_equal_questions() -> None:
    found = find_overlap([question(0, "a"), question(1, "b")], [question(0, "A"), question(1, "c")])
    assert found.same_key == ("d/0", "d/1")
    assert found.same_key_other_text == ("d/1",)
    assert found.same_official_id == ()


def test_an_official_id_meets_the_same_id_where_it_is_the_questions_own() -> None:
    found = find_overlap([question(5, "a")], [question(7, "b", official="5")])
    assert found.same_official_id == ("d/5",)
    assert find_overlap([question(5, "a"), question(7, "b", official="5")]).same_official_id == ("d/5",)


def test_duplicates_inside_each_of_two_files_are_no_overlap_between_them() -> None:
    assert find_overlap([question(1, "a"), question(2, "a")], [question(3, "b"), question(4, "b")]).groups == ()


def test_texts_without_letters_are_not_taken_for_each_other() -> None:
    assert find_overlap([question(1, "???"), question(2, "!!!")]).groups == ()
