import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import chat, render, tokenizer

from searchparty.errors import UserError
from searchparty.models.chat import PieceChat
from searchparty.models.chat_template import template_chat
from searchparty.models.types import Message

APPEND_ONLY = [("smollm2", "smollm"), ("qwen2.5", "qwen"), ("qwen3-instruct", "qwen"), ("llama3", "llama"), ("gemma", "gemma")]
REWRITING = [("qwen3-thinking", "qwen"), ("qwen3-hybrid", "qwen")]
EXAMPLES = [Message("user", "1+1?"), Message("assistant", "<answer>2</answer>")]
CONTENT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(lambda text: "<" not in text)


def finished(chat: PieceChat, system: str, turns: list[tuple[str, str]], *, ended_by_model: bool = True) -> list[int]:
    """A conversation as an agent writes it: asked, sampled, asked, sampled."""
    ids = chat.open(system)
    for number, (question, answer) in enumerate(turns):
        ids += chat.user(question, first=number == 0) + chat.begin_action()
        ids += chat.tokenizer.encode(answer) + ([chat.end_ids[0]] if ended_by_model else [])
        ids += chat.end_action(ended_by_model)
    return ids


def as_messages(system: str, turns: list[tuple[str, str]]) -> list[Message]:
    messages = [Message("system", system)] if system else []
    for question, answer in turns:
        messages += [Message("user", question), Message("assistant", answer)]
    return messages


def folded(template: str, messages: list[Message]) -> list[Message]:
    if template == "gemma" and messages[0].role == "system":
        return [Message("user", f"{messages[0].content}\n\n{messages[1].content}"), *messages[2:]]
    return messages


@pytest.mark.parametrize("ended_by_model", [True, False])
@pytest.mark.parametrize("system", ["Be brief.", ""])
@pytest.mark.parametrize(("template", "family"), APPEND_ONLY)
def test_appended_turns_print_as_the_template_prints_the_finished_conversation(
    template: str, family: str, system: str, ended_by_model: bool
) -> None:
    turns = [("What is the capital?", "Paris."), ("Of Peru?", "Lima."), ("Of Japan?", "Tokyo.")]
    ids = finished(chat(template, family), system, turns, ended_by_model=ended_by_model)
    assert tokenizer(family).decode(ids) == render(template, folded(template, as_messages(system, turns)), False)
    assert not chat(template, family).rewrites_history


@pytest.mark.parametrize(("template", "family"), APPEND_ONLY + REWRITING)
def test_a_prompt_with_worked_examples_prints_as_the_template_prints_it(template: str, family: str) -> None:
    chat_format = chat(template, family)
    ids = chat_format.open("Be brief.", EXAMPLES) + chat_format.user("2+2?") + chat_format.begin_action()
    messages = folded(template, [Message("system", "Be brief."), *EXAMPLES, Message("user", "2+2?")])
    assert tokenizer(family).decode(ids) == render(template, messages, True)


@pytest.mark.parametrize(("template", "family"), [pair for pair in APPEND_ONLY if pair[0] != "gemma"])
@given(system=CONTENT.filter(str.strip), question=CONTENT, answer=CONTENT)
def test_ids_of_a_prompt_are_those_of_the_whole_text_tokenised_at_once(
    template: str, family: str, system: str, question: str, answer: str
) -> None:
    chat_format = chat(template, family)
    examples = [Message("user", question), Message("assistant", answer)]
    ids = chat_format.open(system, examples) + chat_format.user(question) + chat_format.begin_action()
    messages = [Message("system", system), *examples, Message("user", question)]
    assert ids == tokenizer(family).encode_markup(render(template, messages, True))


@pytest.mark.parametrize(("template", "family"), REWRITING)
def test_a_template_that_drops_earlier_thoughts_is_appended_to_and_says_so(template: str, family: str) -> None:
    chat_format = chat(template, family)
    assert chat_format.rewrites_history
    opened = "<think>\n" if template == "qwen3-thinking" else ""
    thought = "<think>\nhm\n</think>\n\nParis"
    ids = chat_format.open("Be brief.") + chat_format.user("Capital?", first=True) + chat_format.begin_action()
    ids += tokenizer(family).encode_markup(thought.removeprefix(opened))
    ids.append(chat_format.end_ids[0])
    ids += chat_format.end_action(ended_by_model=True)
    assert tokenizer(family).decode(ids) == render(template, as_messages("Be brief.", [("Capital?", thought)]), False)


def test_the_default_system_message_is_printed_when_none_is_given() -> None:
    assert "You are Qwen" in tokenizer("qwen").decode(chat("qwen2.5", "qwen").open(""))
    assert "You are Qwen" not in tokenizer("qwen").decode(chat("qwen2.5", "qwen").open("Be brief."))


def test_the_beginning_of_text_is_printed_exactly_once() -> None:
    ids = finished(chat("llama3", "llama"), "Be brief.", [("a", "b"), ("c", "d")])
    assert ids.count(tokenizer("llama").control_tokens["<|begin_of_text|>"]) == 1


def test_contents_are_stripped_where_the_template_strips_them() -> None:
    llama = tokenizer("llama").decode(chat("llama3", "llama").user(" \n hi \n"))
    qwen = tokenizer("qwen").decode(chat("qwen2.5", "qwen").user(" \n hi \n"))
    assert llama == "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
    assert qwen == "<|im_start|>user\n \n hi \n<|im_end|>\n"


def test_a_template_that_moves_the_system_message_is_refused() -> None:
    with pytest.raises(UserError, match="moving-system: the chat template cannot be followed by appending"):
        chat("moving-system", "qwen")


def test_a_template_that_fails_is_refused_in_one_line() -> None:
    def broken(messages: object, generation: bool) -> str:
        raise KeyError("tools")

    with pytest.raises(UserError, match="fails on an ordinary conversation") as caught:
        template_chat("broken", tokenizer("qwen"), broken)
    assert len(caught.value.lines) == 1


def test_a_turn_without_an_end_token_is_refused() -> None:
    def plain(messages: list[Message], generation: bool) -> str:
        return "".join(f"{message.role}: {message.content}\n" for message in messages) + ("assistant: " if generation else "")

    with pytest.raises(UserError, match="does not start with a control token"):
        template_chat("plain", tokenizer("qwen"), plain)
