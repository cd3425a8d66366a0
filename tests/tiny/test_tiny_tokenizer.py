from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.models.huggingface import load_chat
from searchparty.models.types import Message, Tokenizer
from searchparty.tiny import shipped_model
from searchparty.tiny.language import pieces
from searchparty.world import WorldParameters, make_world


@cache
def tokenizer() -> Tokenizer:
    return load_chat(shipped_model(), "tiny").tokenizer


def tokens(text: str) -> list[str]:
    return [tokenizer().decode([number]) for number in tokenizer().encode(text)]


@given(st.text())
def test_any_text_is_encoded_without_loss(text: str) -> None:
    assert tokenizer().decode(tokenizer().encode(text)) == text


@given(st.text(alphabet="abdiozu <>/|?.,:\n19searchtkim_end"))
def test_text_that_is_nearly_of_the_language_is_encoded_without_loss(text: str) -> None:
    assert tokenizer().decode(tokenizer().encode(text)) == text


@given(st.text(), st.sampled_from(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]), st.text())
def test_no_text_becomes_a_control_token(before: str, control: str, after: str) -> None:
    assert not set(tokenizer().encode(before + control + after)) & set(tokenizer().control_tokens.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the director of the film sabo is saboza lu.",
         ["the", " director", " of", " the", " film", " sa", "bo", " is", " sa", "bo", "za", " lu", "."]),
        ("<search>zado film released</search>", ["<search>", "za", "do", " film", " released", "</search>"]),
        (" born in the year 1937", [" born", " in", " the", " year", " 19", "37"]),
        ("<select>1, 3</select>", ["<select>", "1", ",", " 3", "</select>"]),
    ],
)  # fmt: skip
def test_words_tags_and_syllables_are_single_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_the_vocabulary_knows_every_word_of_any_world() -> None:
    world = make_world(WorldParameters(seed=4242, train=50, dev=1, test=1))
    texts = [passage.contents for passage in world.passages] + [question.text for question in world.questions["train"]]
    missing = [piece for piece in pieces(texts) if len(tokens(piece)) != 1]
    assert missing == []


def test_the_chat_template_is_plain_chatml() -> None:
    chat = load_chat(shipped_model(), "tiny")
    ids = [*chat.open("find facts", [Message("user", "a"), Message("assistant", "b")]), *chat.user("c"), *chat.begin_action()]
    printed = (
        "<|im_start|>system\nfind facts<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
        "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chat.tokenizer.decode(ids) == printed
    assert not chat.rewrites_history
