"""A teacher must have the student's tokens, and says how likely they were to it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from searchparty.errors import UserError
from searchparty.models.bytes import ByteTokenizer
from searchparty.training.teacher import check_same_tokenizer


class Words:
    """A tokenizer of single characters, with the ids that it is given."""

    def __init__(self, vocabulary: Mapping[str, int], shift: int = 0) -> None:
        self._vocabulary, self._shift = dict(vocabulary), shift
        self.control_tokens: Mapping[str, int] = {}

    def vocabulary(self) -> dict[str, int]:
        return self._vocabulary

    def encode(self, text: str) -> list[int]:
        return [ord(letter) + self._shift for letter in text]


def refused(teacher: Words | None, student: Words | None = None) -> str:
    with pytest.raises(UserError) as error:
        check_same_tokenizer(student or Words({"a": 1, "b": 2}), teacher, "big", "teacher")  # type: ignore[arg-type]
    (line,) = error.value.lines
    return line


def test_equal_maps_that_cut_alike_pass() -> None:
    check_same_tokenizer(Words({"a": 1, "b": 2}), Words({"b": 2, "a": 1}), "big")  # type: ignore[arg-type]
    check_same_tokenizer(ByteTokenizer(), ByteTokenizer(), "bytes")


def test_the_first_token_with_another_id_is_named() -> None:
    assert "teacher big: has another tokenizer than the policy: 2 tokens differ, the first is 'a' (policy: 1, teacher: 2)" in (
        refused(Words({"a": 2, "b": 1}))
    )


def test_a_token_that_only_one_of_them_has_is_a_difference() -> None:
    assert "1 tokens differ, the first is 'c' (policy: None, teacher: 3)" in refused(Words({"a": 1, "b": 2, "c": 3}))


def test_equal_maps_that_cut_text_otherwise_are_refused() -> None:
    assert "has the policy's ids, but cuts text otherwise" in refused(Words({"a": 1, "b": 2}, shift=1))


def test_a_tokenizer_that_is_not_known_says_where_to_give_it() -> None:
    assert refused(None) == "teacher big: its tokenizer is not known; give the folder or name under teacher.tokenizer"
