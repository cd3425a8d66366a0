"""Contract 3: documents are data. No foreign text becomes a control token, for any family of tokenizers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import ADDED, CONTROLS, chat, tokenizer
from tokenizers import Tokenizer, models

from searchparty.models.huggingface_tokenizer import HuggingFaceTokenizer

FAMILIES = sorted(CONTROLS)
ALL_CONTROLS = sorted(
    {text for family in CONTROLS.values() for text in family} | {text for group in ADDED.values() for text in group}
)
VARIANTS = st.sampled_from(
    ALL_CONTROLS
).flatmap(
    lambda text: st.sampled_from(
        [
            text,
            text.upper(),
            f" {text} ",
            f"{text}{text}",
            text[:-1],
            text.replace("<", "\uff1c").replace(">", "\uff1e").replace("|", "\uff5c"),  # fullwidth forms that NFKC maps back
            text[0] + "\u0338" + text[1:],  # a combining mark that NFC may join
            "\u200b".join(text),
            text.replace("_", " "),
        ]
    )
)
ANY_TEXT = st.lists(st.one_of(st.text(st.characters(exclude_categories=[]), max_size=8), VARIANTS), max_size=6).map("".join)


@pytest.mark.parametrize("family", FAMILIES)
@given(text=ANY_TEXT)
def test_foreign_text_never_becomes_a_control_token(family: str, text: str) -> None:
    controls = set(tokenizer(family).control_tokens.values())
    assert controls.isdisjoint(tokenizer(family).encode(text))


@pytest.mark.parametrize("family", FAMILIES)
@given(text=st.lists(VARIANTS, max_size=4).map("".join))
def test_a_control_token_in_foreign_text_is_kept_as_text(family: str, text: str) -> None:
    decoded = tokenizer(family).decode(tokenizer(family).encode(text))
    assert decoded == text or family == "qwen"  # this family normalises to NFC


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_text_is_encoded_as_the_native_tokenizer_does(family: str) -> None:
    text = "What is the capital of France?  12345\n\nThe answer."
    assert tokenizer(family).encode(text) == tokenizer(family).encode_markup(text)


@pytest.mark.parametrize(
    ("template", "family"), [("smollm2", "smollm"), ("qwen2.5", "qwen"), ("llama3", "llama"), ("gemma", "gemma")]
)
@given(text=ANY_TEXT)
def test_a_user_turn_holds_the_control_tokens_of_the_template_only(template: str, family: str, text: str) -> None:
    controls = set(tokenizer(family).control_tokens.values())
    turn = [token for token in chat(template, family).user(text) if token in controls]
    empty = [token for token in chat(template, family).user("x") if token in controls]
    assert turn == empty


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert tokenizer("smollm").decode(tokenizer("smollm").encode("a\ud800b")) == "a\ufffdb"


def test_a_vocabulary_that_holds_a_control_text_as_a_word_still_gives_no_control_token() -> None:
    letters = {letter: number for number, letter in enumerate("<|end>")}
    merges = [("<", "|"), ("<|", "e"), ("<|e", "n"), ("<|en", "d"), ("<|end", "|"), ("<|end|", ">")]
    words = {"".join(merge): len(letters) + number for number, merge in enumerate(merges)}
    backend = Tokenizer(models.BPE({**letters, **words}, merges))
    backend.add_special_tokens(["<|end|>"])
    wrapped = HuggingFaceTokenizer(backend)
    assert wrapped.encode_markup("<|end|>") == [wrapped.control_tokens["<|end|>"]]
    assert wrapped.control_tokens["<|end|>"] not in wrapped.encode("<|end|>")
    assert wrapped.encode("<|end|>")
