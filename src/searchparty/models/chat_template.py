"""Takes any chat template apart into the pieces of a `PieceChat`, and proves that the pieces say the same as the template.

A template is known here only as a function from messages to text: conversations of unique words are rendered and cut at those
words. Knows no template language, no model and no library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from searchparty.errors import UserError
from searchparty.models.chat import PieceChat, Pieces, Turn
from searchparty.models.markup import split_at_controls
from searchparty.models.types import Message, Tokenizer

Render = Callable[[Sequence[Message], bool], str]
"""Messages and whether to add the generation prompt, to text. Raises any exception for a conversation that it refuses."""

SYSTEM, FIRST_QUESTION, FIRST_ANSWER, SECOND_QUESTION, SECOND_ANSWER, THIRD_QUESTION = (
    "Qsystemz", "Qoneaskz", "Qoneanswerz", "Qtwoaskz", "Qtwoanswerz", "Qthreeaskz",
)  # fmt: skip
"""Contents of the probe conversations: plain words that no template prints by itself."""
SPACE_PROBE = " \n\t "


def template_chat(name: str, tokenizer: Tokenizer, render: Render, other_end_ids: Sequence[int] = ()) -> PieceChat:
    """The chat format of one template, checked against the template.

    A template without a system role gets the system message, and two line ends, at the head of the first user turn.

    Raises:
        UserError: if appending cannot reproduce what the template prints.
    """
    render = _with_system_role(render)
    pieces = _take_apart(name, tokenizer, render)
    chat = PieceChat(name, tokenizer, pieces, other_end_ids=other_end_ids)
    _check_prompts(chat, render)
    chat.rewrites_history = not all(_prints_as_sampled(pieces, render, action) for action in _actions(pieces))
    return chat


def _with_system_role(render: Render) -> Render:
    """`render` itself, or for a template that refuses or drops a system message one that puts it before the first question."""
    with suppress(Exception):  # a template says no by raising whatever it likes
        if SYSTEM in render([Message("system", SYSTEM), Message("user", FIRST_QUESTION)], True):
            return render

    def folded(messages: Sequence[Message], generation: bool) -> str:
        if len(messages) > 1 and messages[0].role == "system":
            system, user, *rest = messages
            messages = [Message("user", f"{system.content}\n\n{user.content}"), *rest]
        return render(messages, generation)

    return folded


def _take_apart(name: str, tokenizer: Tokenizer, render: Render) -> Pieces:
    words = [SYSTEM, FIRST_QUESTION, FIRST_ANSWER, SECOND_QUESTION]
    head, after_system, after_question, after_answer, tail = _cut(name, render, words, True)
    *_, user_after = _cut(name, render, words, False)
    *_, assistant_after = _cut(name, render, words[:3], False)
    start, _ = _cut(name, render, [FIRST_QUESTION], True)

    user_before = _without_prefix(name, after_answer, assistant_after, "a finished answer is closed differently in the history")
    generation_prompt = _without_prefix(name, tail, user_after, "the generation prompt changes what stands before it")
    assistant_before = _without_prefix(name, after_question, user_after, "a question is closed differently once it is answered")
    if not start.endswith(user_before):
        raise _refusal(name, "the first question is opened differently from later ones")
    system_in_first_user = not after_system.endswith(user_before)
    if not system_in_first_user:
        after_system = after_system.removesuffix(user_before)

    return Pieces(
        system=_turn(render, 0, Turn(head, after_system)),
        no_system=start.removesuffix(user_before),
        user=_turn(render, 3, Turn(user_before, user_after)),
        assistant=_turn(render, 2, Turn(assistant_before, assistant_after)),
        generation_prompt=generation_prompt,
        end_of_turn=_end_of_turn(name, tokenizer, assistant_after),
        system_in_first_user=system_in_first_user,
    )


def _conversation(contents: Sequence[str]) -> list[Message]:
    """Alternating turns; the first content is the system message if the conversation starts with it."""
    messages = [Message("system", contents[0])] if SYSTEM in contents[0] else []
    for place, content in enumerate(contents[len(messages) :]):
        messages.append(Message("assistant" if place % 2 else "user", content))
    return messages


def _cut(name: str, render: Render, words: Sequence[str], generation: bool) -> list[str]:
    """The template's own text before, between and after the words: one part more than there are words."""
    try:
        text = render(_conversation(words), generation)
    except Exception as error:
        raise _refusal(name, f"it fails on an ordinary conversation ({type(error).__name__}: {error})") from error
    places = [text.find(word) for word in words]
    if any(text.count(word) != 1 for word in words) or places != sorted(places):
        raise _refusal(name, "it drops, repeats or moves messages")
    ends = [0, *(place + len(word) for place, word in zip(places, words, strict=True))]
    return [text[end:place] for end, place in zip(ends, [*places, len(text)], strict=True)]


def _without_prefix(name: str, text: str, prefix: str, otherwise: str) -> str:
    if not text.startswith(prefix):
        raise _refusal(name, otherwise)
    return text[len(prefix) :]


def _turn(render: Render, place: int, turn: Turn) -> Turn:
    """`turn` with the sides on which the template strips the content of the message at `place`."""
    words = [SYSTEM, FIRST_QUESTION, FIRST_ANSWER, SECOND_QUESTION]
    word = words[place]
    words[place] = SPACE_PROBE + word + SPACE_PROBE
    text = render(_conversation(words), False)
    at, end = text.find(word), text.find(word) + len(word)
    strips_left = not text[:at].endswith(SPACE_PROBE) and text[:at].endswith(turn.before)
    strips_right = not text[end:].startswith(SPACE_PROBE) and text[end:].startswith(turn.after)
    return Turn(turn.before, turn.after, strips_left, strips_right)


def _end_of_turn(name: str, tokenizer: Tokenizer, assistant_after: str) -> str:
    parts = split_at_controls(assistant_after, tokenizer.control_tokens.keys())
    if len(parts) < 3 or parts[0]:
        raise _refusal(name, f"it closes an answer with {assistant_after!r}, which does not start with a control token")
    return parts[1]


def _check_prompts(chat: PieceChat, render: Render) -> None:
    """Every kind of prompt must come out of the pieces exactly as the template prints it, as text and as ids.

    Where system message and first question share a turn they are encoded apart, so there only the text must agree.
    """
    words = [SYSTEM, FIRST_QUESTION, FIRST_ANSWER, SECOND_QUESTION, SECOND_ANSWER, THIRD_QUESTION]
    for contents in (words[:2], words[:4], words, words[1:2], words[1:4], words[1:]):
        messages = _conversation(contents)
        system = messages[0].content if messages[0].role == "system" else ""
        *examples, question = messages[1:] if system else messages
        ids = chat.open(system, examples)
        ids += chat.user(question.content, first=not examples)
        ids += chat.begin_action()
        expected = render(messages, True)
        if chat.tokenizer.decode(ids) != chat.tokenizer.decode(chat.tokenizer.encode_markup(expected)):
            raise _refusal(chat.name, f"a prompt of {len(messages)} messages comes out differently when it is only appended to")
        shared_turn = chat.pieces.system_in_first_user and (system or not examples)
        if not shared_turn and ids != chat.tokenizer.encode_markup(expected):
            raise _refusal(chat.name, "its tokenizer joins template and content into one token")


def _actions(pieces: Pieces) -> list[tuple[str, str]]:
    """Two probe answers in the form in which a model samples them: plain, and with thinking before it."""
    thought = "Qthoughtz\n</think>\n\n"
    if "<think>" not in pieces.generation_prompt:
        thought = f"<think>\n{thought}"
    return [(FIRST_ANSWER, SECOND_ANSWER), (thought + FIRST_ANSWER, thought + SECOND_ANSWER)]


def _prints_as_sampled(pieces: Pieces, render: Render, answers: tuple[str, str]) -> bool:
    """Whether the template prints the finished conversation of two sampled answers as appending gives it."""
    first, second = answers
    messages = _conversation([SYSTEM, FIRST_QUESTION, first, SECOND_QUESTION, second])
    # Where the template itself prints white space before an answer ("[/INST] "), the model samples that space.
    space = pieces.assistant.before.removeprefix(pieces.generation_prompt)
    space = space if space.isspace() else ""
    asked = render(messages[:2], True)
    appended = asked + space + first + pieces.assistant.after
    appended += pieces.user.before + SECOND_QUESTION + pieces.user.after + pieces.generation_prompt
    appended += space + second + pieces.assistant.after
    return render(messages, False) == appended


def _refusal(name: str, reason: str) -> UserError:
    return UserError(
        f"{name}: the chat template cannot be followed by appending: {reason}; choose a model with another template"
    )
