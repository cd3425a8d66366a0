from hypothesis import given
from hypothesis import strategies as st

from searchparty.models.bytes import CONTROL_TOKENS, ByteTokenizer
from searchparty.models.chatml import ChatMLChat
from searchparty.models.types import Message

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
HOSTILE_TEXT = st.lists(st.one_of(ANY_TEXT, st.sampled_from(sorted(CONTROL_TOKENS)))).map("".join)


@given(HOSTILE_TEXT)
def test_every_text_survives_encoding_lone_surrogates_included(text: str) -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(HOSTILE_TEXT)
def test_no_text_becomes_a_control_token(text: str) -> None:
    assert all(token < 256 for token in ByteTokenizer().encode(text))


def test_markup_becomes_control_tokens() -> None:
    ids = ByteTokenizer().encode_markup("<|im_start|>a<|im_end|>")
    assert ids == [CONTROL_TOKENS["<|im_start|>"], ord("a"), CONTROL_TOKENS["<|im_end|>"]]
    assert ByteTokenizer().decode(ids) == "<|im_start|>a<|im_end|>"


def test_a_span_cut_inside_a_character_decodes_to_the_replacement_character() -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode("é")[:1]) == "\ufffd"


def test_chatml_prints_a_whole_conversation() -> None:
    chat = ChatMLChat()
    ids = chat.open("Be brief.", [Message("user", "1+1"), Message("assistant", "2")])
    ids += chat.user("2+2") + chat.begin_action()
    ids += [*chat.tokenizer.encode("4"), chat.end_ids[0]]
    ids += chat.end_action(ended_by_model=True)
    ids += chat.user("3+3") + chat.begin_action()
    ids += chat.tokenizer.encode("6")
    ids += chat.end_action(ended_by_model=False)
    assert chat.tokenizer.decode(ids) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\n1+1<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n"
        "<|im_start|>user\n2+2<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n"
        "<|im_start|>user\n3+3<|im_end|>\n<|im_start|>assistant\n6<|im_end|>\n"
    )


def test_an_empty_system_message_prints_nothing() -> None:
    assert ChatMLChat().open("") == []


@given(HOSTILE_TEXT)
def test_content_cannot_open_or_close_a_turn(text: str) -> None:
    chat = ChatMLChat()
    controls = [token for token in chat.user(text) if token >= 256]
    assert controls == [CONTROL_TOKENS["<|im_start|>"], CONTROL_TOKENS["<|im_end|>"]]
